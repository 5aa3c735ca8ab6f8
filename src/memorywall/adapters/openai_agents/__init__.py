"""The session of OpenAI's Agents SDK (extra `openai-agents`)."""

from memorywall.adapters.openai_agents.session import MemorywallSession

__all__ = ["MemorywallSession"]
