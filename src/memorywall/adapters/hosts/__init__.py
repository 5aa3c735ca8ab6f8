"""Coding agents that people sit in front of: their configuration, hooks and transcripts."""
