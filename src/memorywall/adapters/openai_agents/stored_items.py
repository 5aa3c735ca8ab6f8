"""Items of OpenAI's Responses as turns of a session, and back.

A turn says to other readers what the item says: its role, its text, its calls of tools. The fields
that a turn does not have are kept beside it, so that the item comes back as it was.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from memorywall.wire.turns import TurnResponse

_REST = "item"
"""The name of the kept fields: in `extra` of an assistant's turn, else as JSON in `metadata`."""
_WHOLE = "openai_item"
"""The type of a content part that holds a whole item."""
_LONGEST_REST, _LONGEST_EXTRA = 256, 16_384
"""The characters that kept fields may have in `metadata`, and in `extra` with the call."""
_ROLES = frozenset({"user", "assistant", "system", "developer", "tool"})
_MOVED = frozenset({"tool_use", "tool_result"})
"""The types of content parts that the server makes fields or turns of their own of."""
_OWN_FIELD = "cache_control"
"""The field of a content part that the server does not store."""


def as_turn(item: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the turn of an item."""
    kind = item.get("type")
    if kind == "function_call":
        call = {"id": item.get("call_id"), "name": item.get("name")}
        if all(isinstance(one, str) for one in call.values()) and len(json.dumps(item)) <= (
            _LONGEST_EXTRA
        ):
            call["arguments"] = item.get("arguments", "")
            return {"role": "assistant", "tool_calls": [call], "extra": {_REST: dict(item)}}
    if kind == "function_call_output" and _is_content(item.get("output")):
        rest = {name: one for name, one in item.items() if name != "output"}
        turn = {"role": "tool", "tool_call_id": str(item.get("call_id")), "content": item["output"]}
        return _with_rest(turn, rest) or _whole(item, "tool")
    role = item.get("role")
    if role in _ROLES and _is_content(item.get("content")):
        rest = {name: one for name, one in item.items() if name != "content"}
        turn = {"role": role, "content": item["content"]}
        return _with_rest(turn, rest) or _whole(item, str(role))
    return _whole(item, "assistant")


def as_items(turn: TurnResponse) -> list[dict[str, Any]]:
    """Returns the items of a turn: that of which it was made, or of another turn what it says."""
    extra = turn.extra if isinstance(turn.extra, dict) else {}
    kept = extra.get(_REST)
    if kept is None and isinstance(turn.metadata.get(_REST), str):
        kept = json.loads(str(turn.metadata[_REST]))
    if kept is not None:
        if turn.tool_calls:
            return [kept]
        name = "output" if kept.get("type") == "function_call_output" else "content"
        return [{**kept, name: turn.content}]
    content = turn.content
    if isinstance(content, list) and content and content[0].get("type") == _WHOLE:
        return [content[0]["item"]]
    if turn.role == "tool":
        output = {"type": "function_call_output", "call_id": turn.tool_call_id, "output": content}
        return [output]
    said: list[dict[str, Any]] = [{"role": turn.role, "content": content}] if content else []
    return said + [
        {
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments
            if isinstance(call.arguments, str)
            else json.dumps(call.arguments),
        }
        for call in turn.tool_calls
    ]


def _with_rest(turn: dict[str, Any], rest: dict[str, Any]) -> dict[str, Any] | None:
    """Returns a turn with the fields that it does not have; None if they find no place."""
    text = json.dumps(rest)
    if turn["role"] == "assistant":
        return {**turn, "extra": {_REST: rest}} if len(text) <= _LONGEST_EXTRA else None
    return {**turn, "metadata": {_REST: text}} if len(text) <= _LONGEST_REST else None


def _whole(item: Mapping[str, Any], role: str) -> dict[str, Any]:
    turn: dict[str, Any] = {"role": role, "content": [{"type": _WHOLE, "item": dict(item)}]}
    if role == "tool":
        turn["tool_call_id"] = str(item.get("call_id"))
    return turn


def _is_content(content: Any) -> bool:
    """Whether a turn keeps this content as it is."""
    if isinstance(content, str):
        return True
    return (
        isinstance(content, list)
        and bool(content)
        and all(
            isinstance(part, dict)
            and isinstance(part.get("type"), str)
            and part["type"] not in (*_MOVED, _WHOLE)
            and _OWN_FIELD not in part
            for part in content
        )
    )
