"""Summaries of conversations: extractive, deterministic and within a budget."""

from memorywall.summaries.importance import RECENCY_BONUS, STATEMENTS, TURNS, Importance
from memorywall.summaries.segments import segments
from memorywall.summaries.source import SourceTurn, Summarized, Summarizer, TokenCounter
from memorywall.summaries.statements import turn_class
from memorywall.summaries.summarize import summarize

__all__ = [
    "RECENCY_BONUS",
    "STATEMENTS",
    "TURNS",
    "Importance",
    "SourceTurn",
    "Summarized",
    "Summarizer",
    "TokenCounter",
    "segments",
    "summarize",
    "turn_class",
]
