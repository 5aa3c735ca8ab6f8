"""Kinds of values: a schema and pure functions for each kind.

A new kind is one `KindSpec` in one file and one line in `registry.KINDS`.
"""
