"""Messages in the form of a model's provider, as turns.

Callers store what OpenAI and Anthropic return and take, as it is. A turn has one form, which the
context compiler converts to that of either provider (`context/formats.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from memorywall.kinds.sessions import Role, ToolCall
from memorywall.records.errors import ValidationError
from memorywall.sessions.turns import MOST_TURNS, NewTurn
from memorywall.wire.turns import ToolCallRequest, TurnRequest

_FAILED = {"type": "text", "text": "The call failed."}
"""Stands before the result of a failed call, because OpenAI's messages have no mark for it."""
_OUTDATED = ("function_call", "audio")

Parts = list[dict[str, Any]]


def new_turns(messages: Sequence[TurnRequest]) -> list[NewTurn]:
    """Returns the turns of messages, in order. A message with results of tools is a turn for each
    result, and one for the rest. Raises ValidationError."""
    turns = [turn for at, one in enumerate(messages) for turn in _turns(one, at)]
    if len(turns) > MOST_TURNS:
        raise ValidationError(
            f"`turns` are {len(turns)} turns, because each result of a tool is one;"
            f" at most {MOST_TURNS} are allowed; send fewer messages"
        )
    return turns


def _turns(message: TurnRequest, at: int) -> list[NewTurn]:
    """Returns the turns of one message.

    at: its place in the request, from 0
    """
    place = f"turns[{at}]"
    for name in _OUTDATED:
        if getattr(message, name) is not None:
            raise ValidationError(f"`{place}.{name}` is not stored; send `tool_calls` or text")
    if message.extra and message.role != "assistant":
        raise ValidationError(f"`{place}.extra` belongs to a turn of the role `assistant`")
    role: Role = "system" if message.role == "developer" else message.role
    given = enumerate(message.tool_calls or ())
    calls = [_call(one, f"{place}.tool_calls[{number}]") for number, one in given]
    content = message.content
    if content is None:
        if role != "assistant":
            raise ValidationError(f"`{place}.content` must be a text or a list of content parts")
        content = message.refusal or ""
    results: list[NewTurn] = []
    if not isinstance(content, str):
        content, moved = _split(content, role)
        for number, part in moved:
            inside = f"{place}.content[{number}]"
            if part["type"] == "tool_use":
                calls.append(_used(part, inside))
            else:
                results.append(_result(message, part, at, inside))
        if results and not content:
            return _with_ids(results, message.client_id)
    rest = NewTurn(
        place=at,
        role=role,
        content=_marked(content or "") if message.is_error else content or "",
        name=message.name,
        tool_calls=tuple(calls),
        tool_call_id=message.tool_call_id,
        is_error=message.is_error,
        source=message.source,
        trusted=message.trusted,
        valid_for=message.valid_for,
        said_at=message.said_at,
        metadata=message.metadata,
        extra=message.extra,
    )
    # A provider takes results only directly after their calls, so nothing stands before them.
    return _with_ids([*results, rest], message.client_id)


def _split(content: Parts, role: Role) -> tuple[Parts, list[tuple[int, dict[str, Any]]]]:
    """Returns the parts that stay, and with their places those that are fields or turns of their
    own: calls of tools in an answer, and results in a message of the user."""
    moves = {"assistant": "tool_use", "user": "tool_result"}.get(role)
    kept: Parts = []
    moved: list[tuple[int, dict[str, Any]]] = []
    for number, part in enumerate(content):
        if moves is not None and part.get("type") == moves:
            moved.append((number, part))
        else:
            kept.append(_uncached(part))
    return kept, moved


def _uncached(part: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a part without a breakpoint of a prompt cache: each context sets its own, and a
    provider accepts only a few."""
    return {name: value for name, value in part.items() if name != "cache_control"}


def _call(call: ToolCallRequest, place: str) -> ToolCall:
    described = call if call.function is None else call.function
    if described.name is None:
        raise ValidationError(f"`{place}.name` is required: the name of the tool")
    return ToolCall(
        id=call.id,
        name=described.name,
        arguments=_arguments(described.arguments),
    )


def _arguments(given: Any) -> dict[str, Any] | str:
    """Returns arguments, which OpenAI writes as JSON text. What a model wrote is kept as text where
    it is no object."""
    if given is None or isinstance(given, dict):
        return given or {}
    text = given if isinstance(given, str) else msgspec.json.encode(given).decode()
    try:
        return msgspec.json.decode(text or "{}", type=dict[str, Any] | None) or {}
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        return text


def _used(part: Mapping[str, Any], place: str) -> ToolCall:
    """Returns a content part of Anthropic that calls a tool as a call."""
    try:
        given = _arguments(part.get("input"))
        used = {"id": part.get("id"), "name": part.get("name"), "arguments": given}
        return msgspec.convert(used, ToolCall)
    except msgspec.ValidationError:
        raise ValidationError(f"`{place}` must have the texts `id` and `name`") from None


def _result(message: TurnRequest, part: Mapping[str, Any], at: int, place: str) -> NewTurn:
    """Returns a content part of Anthropic with the result of a tool as a turn."""
    content, call_id = part.get("content") or "", part.get("tool_use_id")
    is_content = isinstance(content, str) or (
        isinstance(content, list) and all(isinstance(one, dict) for one in content)
    )
    if not isinstance(call_id, str) or not is_content:
        raise ValidationError(
            f"`{place}` must have the text `tool_use_id`, and `content`, a text or content parts"
        )
    if not isinstance(content, str):
        content = [_uncached(one) for one in content]
    return NewTurn(
        place=at,
        role="tool",
        content=_marked(content) if part.get("is_error") else content,
        tool_call_id=call_id,
        is_error=bool(part.get("is_error")),
        source=message.source,
        trusted=message.trusted,
        valid_for=message.valid_for,
        said_at=message.said_at,
        metadata=message.metadata,
    )


def _marked(content: str | Parts) -> Parts:
    """Returns the content of the result of a failed call, with what says so."""
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [_FAILED, *parts]


def _with_ids(turns: list[NewTurn], client_id: str | None) -> list[NewTurn]:
    """Returns the turns of one message with its `client_id`, from the second one on numbered."""
    if client_id is None:
        return turns
    return [
        replace(one, client_id=client_id if not n else f"{client_id}#{n + 1}")
        for n, one in enumerate(turns)
    ]
