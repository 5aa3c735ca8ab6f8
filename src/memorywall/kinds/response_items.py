"""Items of OpenAI's Responses interface as the messages that turns are made of.

{"type": "function_call", "call_id": "c1", "name": "find", "arguments": "{}"}
{"type": "function_call_output", "call_id": "c1", "output": "in Berlin"}
{"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "..."}]}
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

_CALL = frozenset({"type", "id", "call_id", "name", "arguments", "status"})
_OUTPUT = frozenset({"type", "id", "call_id", "output", "status"})
_REASONING = frozenset({"type", "id", "summary", "content", "encrypted_content", "status"})


def as_message(item: Any) -> Any:
    """Returns an item as a message; a message, and what is neither, as it is."""
    if not isinstance(item, dict) or "role" in item:
        return item
    kind = item.get("type")
    if kind == "function_call":
        call = {"id": item.get("call_id"), "name": item.get("name")}
        if "arguments" in item:
            call["arguments"] = item["arguments"]
        return {"role": "assistant", "content": None, "tool_calls": [call], **_rest(item, _CALL)}
    if kind == "function_call_output":
        found = {"tool_call_id": item.get("call_id"), "content": item.get("output")}
        return {"role": "tool", **found, **_rest(item, _OUTPUT)}
    if kind == "reasoning":
        given = {name: one for name, one in item.items() if name in _REASONING and one is not None}
        return {"role": "assistant", "content": [given], **_rest(item, _REASONING)}
    return item


def _rest(item: Mapping[str, Any], own: frozenset[str]) -> dict[str, Any]:
    """Returns the fields of a turn beside those of the item, such as `client_id`."""
    return {name: one for name, one in item.items() if name not in own}


def with_extra(turn: Any, fields: Collection[str]) -> Any:
    """Returns a decoded turn of an assistant with its unknown fields in `extra`; another as it is.

    fields: the names of the known ones
    """
    if not isinstance(turn, dict) or turn.get("role") != "assistant":
        return turn
    unknown = {name: one for name, one in turn.items() if name not in fields}
    extra = turn.get("extra", {})
    if not unknown or not isinstance(extra, dict):
        return turn
    known = {name: one for name, one in turn.items() if name in fields}
    given = {name: one for name, one in unknown.items() if one is not None}
    return {**known, "extra": {**extra, **given}}
