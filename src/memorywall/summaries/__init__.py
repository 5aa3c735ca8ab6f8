"""Summaries of conversations: extractive, deterministic and within a budget."""

from memorywall.summaries.source import SourceTurn, Summarized, TokenCounter
from memorywall.summaries.summarize import summarize

__all__ = ["SourceTurn", "Summarized", "TokenCounter", "summarize"]
