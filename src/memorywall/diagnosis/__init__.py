"""Checks an installation, for `memorywall doctor`, and describes its state."""
