"""Workflows that are run, in a data directory and on a server."""
