"""The memory tool of Anthropic's SDK (extra `anthropic`)."""

from memorywall.adapters.anthropic_tool.tool import AsyncMemorywallTool, MemorywallTool

__all__ = ["AsyncMemorywallTool", "MemorywallTool"]
