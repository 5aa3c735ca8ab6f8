"""Summaries of conversations: extractive, deterministic and within a budget."""

from memorywall.summaries.summarize import SourceTurn, Summarized, summarize

__all__ = ["SourceTurn", "Summarized", "summarize"]
