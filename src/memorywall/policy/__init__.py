"""DECIDES who may do what. Pure functions over records; no I/O, no clock, no settings."""
