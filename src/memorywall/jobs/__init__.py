"""Housekeeping. Every step is idempotent: it may run anywhere, any number of times, at once."""
