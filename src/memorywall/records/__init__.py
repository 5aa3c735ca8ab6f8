"""The nouns of memorywall. Nothing here does I/O."""
