"""LangGraph's checkpointer and store (extra `langgraph`)."""

from memorywall.adapters.langgraph.saver import MemorywallSaver
from memorywall.adapters.langgraph.store import MemorywallStore

__all__ = ["MemorywallSaver", "MemorywallStore"]
