"""A context as the input items of OpenAI's Responses interface.

Items have no ids, because an id refers to what the provider stored. Reasoning is left out: it is
refused without the items that followed it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from memorywall.context.item import Compiled
from memorywall.context.openai_messages import as_openai

Item = dict[str, Any]


def as_responses(compiled: Compiled) -> list[Item]:
    """Returns the items of `input`."""
    return [item for message in as_openai(compiled) for item in _items(message)]


def _items(message: Mapping[str, Any]) -> Iterator[Item]:
    role, content = message["role"], message["content"]
    if role == "tool":
        output = content if isinstance(content, str) else [_part(one, role) for one in content]
        yield {
            "type": "function_call_output",
            "call_id": message["tool_call_id"],
            "output": output,
        }
        return
    if content:
        parts = content if isinstance(content, str) else [_part(one, role) for one in content]
        yield {"role": role, "content": parts}
    for call in message.get("tool_calls", ()):
        yield {"type": "function_call", "call_id": call["id"], **call["function"]}


def _part(part: Mapping[str, Any], role: str) -> Item:
    """Returns a content part of a chat completion as an item has it."""
    kind = part["type"]
    if kind == "image_url":
        image = part["image_url"]
        url = image.get("url") if isinstance(image, Mapping) else image
        return {"type": "input_image", "image_url": url}
    if kind == "file" and isinstance(part.get("file"), Mapping):
        return {**part["file"], "type": "input_file"}
    if kind in ("text", "input_audio"):
        text = part.get("text", f"[{kind}]")
        return {"type": "output_text" if role == "assistant" else "input_text", "text": text}
    return dict(part)
