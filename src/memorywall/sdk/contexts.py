"""`client.context`: the context for the next call of a model, as request generators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from memorywall.records.errors import ValidationError
from memorywall.sdk.context_counting import CountTokens, compile_within
from memorywall.sdk.effects import Invoke, RequestGenerator
from memorywall.sdk.facade import AsyncFacade, Facade, awaiting, blocking
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
    StrategyName,
)

ContentParts = list[dict[str, Any]]
BudgetName = Literal["system", "semantic", "episodic", "session", "procedural", "working"]

_TO_CHECK = frozenset({"source_changed", "stale"})
_NOT_SENT = frozenset({"self", "revalidate", "count"})
"""The arguments of `compile` that are for the client only."""


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
        format: segments, openai, anthropic or text; default: segments
        counter: estimate, o200k_base or cl100k_base; default: estimate
        memories: the most memories of each tier that are searched for; default: 12
        revalidate: called with each item that is marked `source_changed` or `stale`; returns
            whether the item is still right, from `AsyncClient` also as a coroutine. The context
            is then compiled again, without the marks or without the item; default: none
        store: whether the context can be shown again and judged; default: true
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

        format: segments, openai, anthropic or text; default: segments
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


class ContextsClient(Facade[ContextsCore]):
    """Compiles contexts, shows them again, and records what became of them."""

    __call__ = blocking(ContextsCore.compile)
    get = blocking(ContextsCore.get)
    outcome = blocking(ContextsCore.outcome)


class AsyncContextsClient(AsyncFacade[ContextsCore]):
    """The async variant of `ContextsClient`."""

    __call__ = awaiting(ContextsCore.compile)
    get = awaiting(ContextsCore.get)
    outcome = awaiting(ContextsCore.outcome)
