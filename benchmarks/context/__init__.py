"""Measures compiled contexts: evidence in the context, common prefixes, and speed."""
