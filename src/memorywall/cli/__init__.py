"""The command line: one file per command."""

from memorywall.cli.main import main

__all__ = ["main"]
