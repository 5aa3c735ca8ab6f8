"""Adapters of agent frameworks, each with the framework's own client."""
