"""A context as text, and as messages of OpenAI's and Anthropic's interfaces."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Literal

from memorywall.context.item import Compiled, ContextItem, SegmentName
from memorywall.context.provider_forms import (
    anthropic_part,
    anthropic_tool,
    openai_part,
    openai_tool,
)
from memorywall.context.rendering import DATA_MARK, HEADINGS, OPENING, render, turn_mark
from memorywall.context.tools import LISTED

FormatName = Literal["segments", "openai", "anthropic", "text"]

_HEAD: tuple[SegmentName, ...] = ("system", "tools", "core")
_MEMORY: tuple[SegmentName, ...] = ("semantic", "episodic", "shared", "summary")
_TAIL: tuple[SegmentName, ...] = ("procedural", "working", "added")
_CACHED = {"type": "ephemeral"}


def tools_of(compiled: Compiled, wanted: FormatName) -> list[dict[str, Any]]:
    """Returns the tools that the context contains in whole: in the form of the provider, or as the
    request gave them."""
    tools = [json.loads(item.text) for item in compiled.items("tools") if item.id != LISTED]
    if wanted == "openai":
        return [openai_tool(one) for one in tools]
    return [anthropic_tool(one) for one in tools] if wanted == "anthropic" else tools


def as_text(compiled: Compiled) -> str:
    """Returns the context as plain text."""
    parts = [_block(compiled, (*_HEAD, *_MEMORY))]
    parts += [f"{item.role}: {turn_mark(item)}{item.text}" for item in compiled.items("turns")]
    parts.append(_block(compiled, _TAIL))
    parts += [f"user: {item.text}" for item in compiled.items("user")]
    return "\n".join(part for part in parts if part)


def as_openai(compiled: Compiled) -> list[dict[str, Any]]:
    """Returns the messages of a chat completion of OpenAI."""
    messages: list[dict[str, Any]] = []
    if system := _block(compiled, (*_HEAD, *_MEMORY)):
        messages.append({"role": "system", "content": system})
    messages += [_openai_turn(item) for item in compiled.items("turns")]
    return _with_tail(compiled, messages)


def as_anthropic(compiled: Compiled) -> dict[str, Any]:
    """Returns `system` and `messages` of Anthropic, with breakpoints of its prompt cache: after
    the system text, after the memories, and after the turns.

    Anthropic has no messages of the system. Turns of the role system stand after the memories, and
    untrusted ones among the messages, as data.
    """
    blocks = [_block(compiled, _HEAD), _block(compiled, _MEMORY)]
    system = [{"type": "text", "text": one, "cache_control": _CACHED} for one in blocks if one]
    messages: list[dict[str, Any]] = []
    for item in compiled.items("turns"):
        parts = _anthropic_parts(item)
        if item.role == "system" and item.trusted:
            system += parts
            continue
        role = "assistant" if item.role == "assistant" else "user"
        if not parts:
            continue
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += parts
        else:
            messages.append({"role": role, "content": parts})
    if messages and messages[0]["role"] == "assistant":
        messages.insert(0, {"role": "user", "content": [{"type": "text", "text": OPENING}]})
    if messages and messages[-1]["content"]:
        messages[-1]["content"][-1] = {**messages[-1]["content"][-1], "cache_control": _CACHED}
    tail = [{"type": "text", "text": text} for text in (_tail(compiled),) if text]
    for item in compiled.items("user"):
        tail += _parts(item)
    if tail and messages and messages[-1]["role"] == "user":
        messages[-1]["content"] += tail
    elif tail:
        messages.append({"role": "user", "content": tail})
    return {"system": system, "messages": messages}


def _with_tail(compiled: Compiled, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Adds the message of the user, after a message of its own for what stands before it."""
    text = _tail(compiled)
    for item in compiled.items("user"):
        content: Any = item.content
        if not isinstance(content, str):
            content = [openai_part(part) for part in content]
        before = [{"role": "user", "content": text}] if text else []
        return [*messages, *before, {"role": "user", "content": content}]
    if text:
        at = len(messages)
        if messages and messages[-1]["role"] == "user":
            at -= 1
        messages.insert(at, {"role": "user", "content": text})
    return messages


def _openai_turn(item: ContextItem) -> dict[str, Any]:
    content: Any = item.content
    if not isinstance(content, str):
        content = [openai_part(part) for part in content]
    if mark := turn_mark(item):
        content = (
            f"{mark}{content}" if isinstance(content, str)
            else [{"type": "text", "text": mark}, *content]
        )  # fmt: skip
    role = "user" if item.role == "system" and not item.trusted else item.role
    message: dict[str, Any] = {"role": role, "content": content}
    if item.tool_calls:
        message["tool_calls"] = [
            {
                "id": call["id"],
                "type": "function",
                "function": {
                    "name": call["name"],
                    "arguments": json.dumps(call.get("arguments", {}), ensure_ascii=False),
                },
            }
            for call in item.tool_calls
        ]
    if item.tool_call_id is not None:
        message["tool_call_id"] = item.tool_call_id
    return message


def _anthropic_parts(item: ContextItem) -> list[dict[str, Any]]:
    if item.tool_call_id is not None:
        parts = _parts(item)
        return [{"type": "tool_result", "tool_use_id": item.tool_call_id, "content": parts}]
    parts = _parts(item)
    if mark := turn_mark(item):
        parts.insert(0, {"type": "text", "text": mark})
    parts += [
        {
            "type": "tool_use",
            "id": call["id"],
            "name": call["name"],
            "input": call.get("arguments", {}),
        }
        for call in item.tool_calls
    ]
    return parts


def _parts(item: ContextItem) -> list[dict[str, Any]]:
    """Returns the content parts of an item; Anthropic refuses empty texts."""
    content = item.content
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    converted = [anthropic_part(part) for part in parts]
    return [one for one in converted if one.get("type") != "text" or one["text"].strip()]


def _tail(compiled: Compiled) -> str:
    """Returns what stands before the message of the user, marked as data; nothing without any."""
    text = _block(compiled, _TAIL)
    return f"{DATA_MARK}\n{text}" if text else ""


def _block(compiled: Compiled, names: Iterable[SegmentName]) -> str:
    """Returns the text of segments, each under its heading."""
    blocks = []
    for name in names:
        items = compiled.items(name)
        if name == "tools":
            items = tuple(item for item in items if item.id == LISTED)
        if items:
            lines = [render(item) for item in items]
            blocks.append("\n".join([HEADINGS[name], *lines] if name in HEADINGS else lines))
    return "\n\n".join(blocks)
