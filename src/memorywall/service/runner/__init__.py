"""Runs operations and the server's own work."""
