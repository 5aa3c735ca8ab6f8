"""Access decisions: pure functions over records, without I/O, clock or settings."""
