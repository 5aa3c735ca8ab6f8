"""Governed memory for AI agents: five walled tiers behind one door."""

__version__ = "0.1.0"
