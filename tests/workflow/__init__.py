"""Workflow files (RFC-0015 section 7)."""
