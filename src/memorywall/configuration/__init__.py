"""Reads settings from flags, environment variables and a settings file, and documents them."""
