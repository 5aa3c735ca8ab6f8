"""`client.context`: the context for the next call of a model.

The server compiles with its counter. If the result is larger than the window by a counter of the
client's own, the client asks for a smaller window. The sizes are steps of 5 %, so that the requests
of a session are alike and the server can keep the beginning of its contexts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any, Literal

from msgspec.structs import replace

from memorywall.kinds.content_parts import count_content
from memorywall.records.errors import ValidationError
from memorywall.records.feature_errors import ContextBudgetError
from memorywall.sdk.effects import Invoke, RequestGenerator
from memorywall.sdk.facade import AsyncFacade, Facade, method
from memorywall.sdk.filters import without_absent
from memorywall.sdk.retry import call
from memorywall.sdk.values import checked_list, checked_objects
from memorywall.wire.contexts import (
    ContextItemResponse,
    ContextOutcome,
    ContextOutcomeResponse,
    ContextResponse,
    CounterName,
    FormatName,
    PartsShown,
    StrategyName,
)

ContentParts = list[dict[str, Any]]
BudgetName = Literal["system", "semantic", "episodic", "session", "procedural", "working"]
CountTokens = Callable[[str], int]

_TO_CHECK = frozenset({"source_changed", "stale"})
_NOT_SENT = frozenset({"self", "revalidate", "count"})
"""The arguments of `compile` that are for the client only."""
MESSAGE_TOKENS = 6
"""The tokens of a message, a call of a tool or an item beside those of its content."""
_STEP = 0.95
_SMALLEST = 1 / 64


class ContextsCore:
    """The operations on compiled contexts, as request generators."""

    def compile(
        self,
        session_id: str | None = None,
        *,
        user: str | ContentParts | None = None,
        system: str | None = None,
        tools: Iterable[Mapping[str, Any]] | None = None,
        query: str | None = None,
        task_id: str | None = None,
        shared: str | None = None,
        model: str | None = None,
        window: int | None = None,
        reserve: int | None = None,
        budgets: Mapping[BudgetName, float] | None = None,
        strategy: StrategyName | None = None,
        format: FormatName | None = None,
        counter: CounterName | None = None,
        memories: int | None = None,
        revalidate: Callable[[ContextItemResponse], Any] | None = None,
        store: bool | None = None,
        parts: PartsShown | None = None,
        count: CountTokens | None = None,
    ) -> RequestGenerator[ContextResponse]:
        """Returns what the next call of a model needs, within its window.

        session_id: the session whose turns and summary it contains; default: that of a client made
            by `in_session`, or none
        user: the message of the user; default: the newest turn of the session
        system, tools: the system text and the tools of the provider; default: none
        query: what memories are searched for; default: the text of the message
        task_id, shared: the task and the scope whose shared state it contains; default: none
        model: the name of a known model; default: none
        window, reserve: tokens of the model and of the output; default: those of `model`, or
            128,000 and 12.8 % of the window
        budgets: by group of segments, tokens from 1 on, a share of the window below 1
        strategy: recency, importance, compaction or hierarchical; default: hierarchical
        format: segments, openai, responses, anthropic or text; default: segments
        counter: estimate, o200k_base or cl100k_base; default: estimate
        memories: the most memories of each tier that are searched for; default: 12
        revalidate: called with each item that is marked `source_changed` or `stale`; returns
            whether the item is still right, from `AsyncClient` also as a coroutine. The context
            is then compiled again, without the marks or without the item; default: none
        store: whether the context can be shown again and judged; default: true
        parts: what is shown of parts of turns that are in attachments: a `reference` with the
            beginning of the text, or the `whole` part; default: reference
        count: returns the number of tokens of a text; the context is within the window by this
            counter as well, and `tokens` is its number; default: none
        Raises ContextBudgetError, ResourceNotFoundError, MemoryAccessError, ValidationError.
        """
        body = _body_of(locals())

        def compiled() -> RequestGenerator[ContextResponse]:
            if count is not None:
                return compile_within(body, count)
            return call("create_context", ContextResponse, body=body)

        found = yield from compiled()
        answers = {} if revalidate is None else (yield from _ask(revalidate, found))
        if not answers:
            return found
        body["revalidated"] = answers
        return (yield from compiled())

    def get(
        self, context_id: str, *, format: FormatName | None = None
    ) -> RequestGenerator[ContextResponse]:
        """Returns a stored context again, and names what was erased or changed since.

        format: segments, openai, responses, anthropic or text; default: segments
        Raises ResourceNotFoundError.
        """
        return call("get_context", ContextResponse, context_id=context_id,
                    query={"format": format})  # fmt: skip

    def outcome(
        self,
        context_id: str,
        outcome: ContextOutcome,
        *,
        used: Iterable[str] = (),
        correction: str | None = None,
    ) -> RequestGenerator[ContextOutcomeResponse]:
        """Records what became of a context. Only the items in `used` count as used.

        outcome: success, failure or corrected
        used: the ids of the items that the answer used; default: none
        correction: the right answer; default: none
        Raises ResourceNotFoundError, RequestError.
        """
        items = checked_list("used", used)
        body = without_absent({"outcome": outcome, "used": items, "correction": correction})
        return call("add_context_outcome", ContextOutcomeResponse, context_id=context_id,
                    body=body)  # fmt: skip


def _body_of(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the body of a request from the arguments of `compile`, by name."""
    asked = {name: one for name, one in arguments.items() if name not in _NOT_SENT}
    if asked["tools"] is not None:
        asked["tools"] = checked_objects("tools", asked["tools"], '{"name": "find"}')
    if asked["budgets"] is not None:
        if not isinstance(asked["budgets"], Mapping):
            raise ValidationError('`budgets` must be a dict, such as {"semantic": 0.2}')
        asked["budgets"] = dict(asked["budgets"])
    for name in ("count", "revalidate"):
        if not (arguments[name] is None or callable(arguments[name])):
            raise ValidationError(f"`{name}` must be a function")
    return without_absent(asked)


def _ask(
    revalidate: Callable[[ContextItemResponse], Any], found: ContextResponse
) -> RequestGenerator[dict[str, bool]]:
    """Returns whether each item that is marked is still right, by id."""
    answers: dict[str, bool] = {}
    for item in (item for segment in found.segments for item in segment.items):
        if not _TO_CHECK.isdisjoint(item.marks):
            answers[item.id] = bool((yield Invoke(revalidate, item)))
    return answers


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
    if "content" not in message:
        # Calls of tools, and their results, are items of their own in OpenAI's Responses.
        return MESSAGE_TOKENS + _of_json(message, count)
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
    if part.get("type") == "tool_result":
        return MESSAGE_TOKENS + _of_content(part.get("content"), count)
    if part.get("type") == "tool_use":
        return MESSAGE_TOKENS + _of_json(part, count)
    return count_content([part], count)


def _of_json(value: Any, count: CountTokens) -> int:
    return count(json.dumps(value, ensure_ascii=False))


class _ContextsMethods:
    __call__ = method(ContextsCore.compile)
    get = method(ContextsCore.get)
    outcome = method(ContextsCore.outcome)


class ContextsClient(_ContextsMethods, Facade[ContextsCore]):
    """Compiles contexts, shows them again, and records what became of them."""


class AsyncContextsClient(_ContextsMethods, AsyncFacade[ContextsCore]):
    """The async variant of `ContextsClient`."""
