"""Reads changes and events for feeds and streams."""
