"""The nouns of memorywall. This package does no I/O."""
