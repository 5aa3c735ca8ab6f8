"""The records of memorywall. This package does no I/O."""
