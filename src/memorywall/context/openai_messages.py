"""A context as the messages of a chat completion of OpenAI."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from memorywall.context.blocks import HEAD, MEMORY, render_block, render_tail
from memorywall.context.exchanges import ToolExchange, pair_with_ids
from memorywall.context.item import Compiled, ContextItem
from memorywall.context.provider_forms import media_of, parts_of, shown_role, with_lead
from memorywall.context.provider_rules import fit_name
from memorywall.context.rendering import NO_TEXT, turn_lead

Message = dict[str, Any]


def as_openai(compiled: Compiled) -> list[Message]:
    """Returns the messages of a chat completion of OpenAI."""
    messages: list[Message] = []
    if system := render_block(compiled, (*HEAD, *MEMORY)):
        messages.append({"role": "system", "content": system})
    for one, ids in pair_with_ids(compiled.items("turns"), "openai"):
        messages += _exchange(one, ids)
    return _with_tail(compiled, messages)


def _exchange(exchange: ToolExchange, ids: Sequence[str]) -> list[Message]:
    """Returns the messages of a turn and of the results of its calls.

    ids: those of the calls
    """
    turn = exchange.turn
    role = shown_role(turn)
    message: Message = {"role": role, "content": _content(turn, role, exchange.lead)}
    if not exchange.results:
        return [message] if message["content"] else []
    results: list[Message] = []
    media: list[Message] = []
    message["content"] = message["content"] or None
    message["tool_calls"] = []
    for (call, result), call_id in zip(exchange.calls, ids, strict=True):
        arguments = call.get("arguments", {})
        is_text = isinstance(arguments, str)
        written = arguments if is_text else json.dumps(arguments, ensure_ascii=False)
        function = {"name": fit_name(call["name"], "openai"), "arguments": written}
        message["tool_calls"].append({"id": call_id, "type": "function", "function": function})
        content = _content(result, "tool", turn_lead(result)) or NO_TEXT
        results.append({"role": "tool", "content": content, "tool_call_id": call_id})
        if found := media_of(result.content, "openai"):
            media += [{"type": "text", "text": f"Of the result of {call_id}:"}, *found]
    # Messages of tools are text only, and nothing may stand between them.
    after = [{"role": "user", "content": media}] if media else []
    return [message, *results, *after]


def _content(item: ContextItem, role: str, lead: str) -> str | list[Message]:
    """Returns the content of a message; "" for nothing that the provider accepts."""
    if isinstance(item.content, str):
        return f"{lead}{item.content}" if item.content.strip() else ""
    return with_lead(lead, parts_of(item.content, "openai", role)) or ""


def _with_tail(compiled: Compiled, messages: list[Message]) -> list[Message]:
    """Adds the message of the user, after a message of its own for what stands before it."""
    text = render_tail(compiled)
    for item in compiled.items("user"):
        content: Any = item.content
        if not isinstance(content, str):
            content = parts_of(content, "openai", "user")
        before = [{"role": "user", "content": text}] if text else []
        own = [{"role": "user", "content": content}] if content else []
        return [*messages, *before, *own]
    if text:
        at = len(messages)
        if messages and messages[-1]["role"] == "user":
            at -= 1
        messages.insert(at, {"role": "user", "content": text})
    return messages
