"""Contexts within a window by a counter of the client's own.

The server compiles with its counter. If the result is larger than the window by the client's
counter, the client asks for a smaller window. The sizes are steps of 5 %, so that the requests of a
session are alike and the server can keep the beginning of its contexts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from typing import Any

from msgspec.structs import replace

from memorywall.kinds.sessions import PART_TOKENS
from memorywall.records.feature_errors import ContextBudgetError
from memorywall.sdk.retry import call
from memorywall.wire.contexts import ContextResponse

CountTokens = Callable[[str], int]
MESSAGE_TOKENS = 6
"""The tokens of a message, a call of a tool or an item beside those of its content."""
_STEP = 0.95
_SMALLEST = 1 / 64


def compile_within(
    body: dict[str, Any], count: CountTokens
) -> Generator[Any, Any, ContextResponse]:
    """Returns a context that is within its window by `count`, with that number as its `tokens`.

    Raises ContextBudgetError if what the context must contain does not fit, and the errors of the
    request.
    """
    count = _checked(count)
    context = wanted = yield from call("create_context", ContextResponse, body=body)
    room = wanted.window - wanted.reserve
    share = 1.0
    while (tokens := tokens_of(context, count)) > room:
        share = _next_share(share, room / tokens)
        smaller = {**body, "window": wanted.reserve + int(room * share), "reserve": wanted.reserve}
        if share < _SMALLEST or smaller["window"] <= wanted.reserve:
            raise _too_small()
        try:
            context = yield from call("create_context", ContextResponse, body=smaller)
        except ContextBudgetError:
            raise _too_small() from None
    return replace(context, window=wanted.window, reserve=wanted.reserve, tokens=tokens)


def tokens_of(context: ContextResponse, count: CountTokens) -> int:
    """Returns the number of tokens of a context in its format, with its tools."""
    total = sum(_of_json(tool, count) for tool in context.tools)
    total += _of_parts(context.system or [], count)
    if context.text is not None:
        return total + count(context.text)
    if context.messages is not None:
        return total + sum(_of_message(one, count) for one in context.messages)
    items = [item for segment in context.segments for item in segment.items]
    return total + sum(MESSAGE_TOKENS + _of_content(item.content, count) for item in items)


def _checked(count: CountTokens) -> CountTokens:
    """The counter, which raises TypeError when it returns no number, such as a list of tokens."""

    def number(text: str) -> int:
        tokens = count(text)
        if not isinstance(tokens, int):
            raise TypeError("`count` must return the number of the tokens of a text, an integer")
        return tokens

    return number


def _next_share(share: float, ratio: float) -> float:
    """Returns the next share that is at most `ratio` of this one, and at least a step smaller."""
    wanted = share * ratio
    share *= _STEP
    while share > wanted:
        share *= _STEP
    return share


def _too_small() -> ContextBudgetError:
    return ContextBudgetError(
        "`window` is too small by the counter `count` for what the context must contain"
    )


def _of_message(message: dict[str, Any], count: CountTokens) -> int:
    calls = message.get("tool_calls", ())
    return (
        MESSAGE_TOKENS
        + _of_content(message["content"], count)
        + sum(MESSAGE_TOKENS + _of_json(one, count) for one in calls)
    )


def _of_content(content: Any, count: CountTokens) -> int:
    if content is None:
        return 0
    return count(content) if isinstance(content, str) else _of_parts(content, count)


def _of_parts(parts: list[dict[str, Any]], count: CountTokens) -> int:
    return sum(_of_part(part, count) for part in parts)


def _of_part(part: dict[str, Any], count: CountTokens) -> int:
    if isinstance(text := part.get("text"), str):
        return count(text)
    if part.get("type") == "tool_result":
        return MESSAGE_TOKENS + _of_content(part.get("content"), count)
    if part.get("type") == "tool_use":
        return MESSAGE_TOKENS + _of_json(part, count)
    return PART_TOKENS


def _of_json(value: Any, count: CountTokens) -> int:
    return count(json.dumps(value, ensure_ascii=False))
