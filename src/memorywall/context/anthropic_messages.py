"""A context as `system` and `messages` of Anthropic."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from memorywall.context.blocks import HEAD, MEMORY, render_block, render_tail
from memorywall.context.exchanges import ToolExchange, pair_with_ids
from memorywall.context.item import Compiled, ContextItem
from memorywall.context.provider_forms import parts_of, shown_role, with_lead
from memorywall.context.provider_rules import fit_name
from memorywall.context.rendering import OPENING, turn_lead

Part = dict[str, Any]
_CACHED = {"type": "ephemeral"}
_THINKING = ("thinking", "redacted_thinking")


def as_anthropic(compiled: Compiled) -> dict[str, Any]:
    """Returns `system` and `messages` of Anthropic, with breakpoints of its prompt cache: after
    the system text, after the memories, and after the turns.

    Anthropic has no messages of the system. Turns of the role system stand after the memories, and
    untrusted ones among the messages, as data.
    """
    blocks = [render_block(compiled, names) for names in (HEAD, MEMORY)]
    system = [{**_text(one), "cache_control": _CACHED} for one in blocks if one]
    messages: list[dict[str, Any]] = []
    for one, ids in pair_with_ids(compiled.items("turns"), "anthropic"):
        for role, parts in _messages(one, ids):
            if role == "system":
                system += parts
            else:
                _append(messages, role, parts)
    if messages and messages[0]["role"] == "assistant":
        messages.insert(0, {"role": "user", "content": [_text(OPENING)]})
    _set_breakpoint(messages)
    tail = [_text(text) for text in (render_tail(compiled),) if text]
    for item in compiled.items("user"):
        tail += _parts(item, "user")
    _append(messages, "user", tail)
    if messages and messages[-1]["role"] == "assistant":
        _strip_end(messages[-1]["content"])
    return {"system": system, "messages": messages}


def _messages(exchange: ToolExchange, ids: Iterable[str]) -> Iterator[tuple[str, list[Part]]]:
    """Yields the roles and parts of a turn and of the results of its calls."""
    turn = exchange.turn
    role = shown_role(turn)
    parts = with_lead(exchange.lead, _parts(turn, role))
    results: list[Part] = []
    for call_id, (call, result) in zip(ids, exchange.calls, strict=True):
        name = fit_name(call["name"], "anthropic")
        given = call.get("arguments", {})
        if isinstance(given, str):
            # Anthropic accepts objects only.
            given = {"arguments": given}
        parts.append({"type": "tool_use", "id": call_id, "name": name, "input": given})
        content = with_lead(turn_lead(result), _parts(result, "tool"))
        results.append({"type": "tool_result", "tool_use_id": call_id, "content": content})
    # Thinking is followed by what it was for.
    while parts and parts[-1]["type"] in _THINKING:
        parts.pop()
    yield role, parts
    yield "user", results


def _parts(item: ContextItem, role: str) -> list[Part]:
    content = item.content
    return parts_of([_text(content)] if isinstance(content, str) else content, "anthropic", role)


def _append(messages: list[dict[str, Any]], role: str, parts: list[Part]) -> None:
    """Adds a message; to the last one if that has the same role, because roles alternate."""
    if not parts:
        return
    if messages and messages[-1]["role"] == role:
        messages[-1]["content"] += parts
    else:
        messages.append({"role": role, "content": parts})


def _set_breakpoint(messages: list[dict[str, Any]]) -> None:
    if messages:
        parts = messages[-1]["content"]
        parts[-1] = {**parts[-1], "cache_control": _CACHED}


def _strip_end(parts: list[Part]) -> None:
    """Removes white space at the end of the last message, which an answer must not begin after."""
    if parts[-1]["type"] == "text":
        parts[-1] = {**parts[-1], "text": parts[-1]["text"].rstrip()}


def _text(text: str) -> Part:
    return {"type": "text", "text": text}
