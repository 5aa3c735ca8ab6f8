"""The embedded backend: one SQLite file, one writer thread, reads on the event loop."""
