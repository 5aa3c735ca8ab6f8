"""Erases what is known of an agent or a person."""
