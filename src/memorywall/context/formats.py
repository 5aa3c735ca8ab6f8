"""A context as text, and its tools in the form of a provider."""

from __future__ import annotations

import json
from typing import Any, Literal

from memorywall.context.blocks import HEAD, MEMORY, TAIL, render_block
from memorywall.context.item import Compiled
from memorywall.context.provider_forms import anthropic_tool, openai_tool, responses_tool
from memorywall.context.rendering import turn_lead
from memorywall.context.tools import LISTED

FormatName = Literal["segments", "openai", "responses", "anthropic", "text"]


def tools_of(compiled: Compiled, wanted: FormatName) -> list[dict[str, Any]]:
    """Returns the tools that the context contains in whole: in the form of the provider, or as the
    request gave them."""
    tools = [json.loads(item.text) for item in compiled.items("tools") if item.id != LISTED]
    if wanted == "responses":
        return [responses_tool(one) for one in tools]
    if wanted == "openai":
        return [openai_tool(one) for one in tools]
    return [anthropic_tool(one) for one in tools] if wanted == "anthropic" else tools


def as_text(compiled: Compiled) -> str:
    """Returns the context as plain text."""
    parts = [render_block(compiled, (*HEAD, *MEMORY))]
    parts += [f"{item.role}: {turn_lead(item)}{item.text}" for item in compiled.items("turns")]
    parts.append(render_block(compiled, TAIL))
    parts += [f"user: {item.text}" for item in compiled.items("user")]
    return "\n".join(part for part in parts if part)
