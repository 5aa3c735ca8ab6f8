"""Compiles the context of a request from what the caller may read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, cast

import msgspec
from msgspec.structs import replace

from memorywall.context.budgets import GroupName as BudgetGroup
from memorywall.context.budgets import default_reserve
from memorywall.context.compile import compile_context
from memorywall.context.gathering import Gathered, gather
from memorywall.context.item import BudgetError, Compiled, ContextItem, SegmentName, are_large
from memorywall.context.request import CompileRequest
from memorywall.records.errors import RequestError
from memorywall.records.feature_errors import ContextBudgetError
from memorywall.redaction.personal_data import choose_stricter
from memorywall.service.requests.validation import check_content
from memorywall.service.runner.operation_runner import OperationTransactions
from memorywall.sessions.checkpoints import extend_summary
from memorywall.sessions.personal_data import mask_personal_data
from memorywall.tokens.exact import COUNTERS, ExactCounter
from memorywall.tokens.models import PRESETS
from memorywall.wire.contexts import ContextRequest

Result = TypeVar("Result")
WINDOW = 128_000
"""The window of a request that names none, and no model."""


@dataclass(frozen=True, slots=True)
class CreatedContext:
    """The context of a request, before it is stored.

    body: the request, with the session of the caller, and without personal data
    shape: see `StoredContext`
    """

    body: ContextRequest
    found: Gathered
    compiled: Compiled
    shape: str


async def create(transactions: OperationTransactions, body: ContextRequest) -> CreatedContext:
    """Returns the context of a request; turns that have no room in it are summarized first.

    Raises RequestError, ContextBudgetError, ResourceNotFoundError, MemoryAccessError,
    SessionClosedError, SessionQuarantinedError.
    """
    if body.session_id is None and transactions.principal.session is not None:
        body = replace(body, session_id=transactions.principal.session.id)
    if body.user is not None:
        check_content("user", body.user)
    window, reserve = _window(body)
    shape = _shape(body, window, reserve)
    found = await gather(transactions, body, window - reserve, shape)
    body = replace(body, user=mask_personal_data(_personal_data(transactions, found), body.user))
    compiled = await _compile(transactions, body, found, window, reserve)
    covered = 0
    while body.session_id is not None and compiled.uncovered > covered:
        # Turns have no room and are in no summary yet, because the job comes later.
        covered = compiled.uncovered
        await extend_summary(
            transactions.service, transactions.principal.tenant, body.session_id, covered
        )
        found = await gather(transactions, body, window - reserve, shape)
        compiled = await _compile(transactions, body, found, window, reserve)
    return CreatedContext(body, found, compiled, shape)


async def compute(
    transactions: OperationTransactions, in_thread: bool, work: Callable[[], Result]
) -> Result:
    """Returns the result of work, which takes place in a thread if it is long."""
    return await transactions.service.store.compute(work) if in_thread else work()


def _personal_data(transactions: OperationTransactions, found: Gathered) -> str:
    """Returns the policy for text of the request that is stored."""
    of_server = transactions.service.settings.personal_data
    if found.session is None:
        return of_server
    return choose_stricter(found.session.value.policy.personal_data, of_server)


def _window(body: ContextRequest) -> tuple[int, int]:
    """Returns the window and the reserve. Raises RequestError."""
    window, reserve = body.window, body.reserve
    if body.model is not None:
        preset = PRESETS.models.get(body.model)
        if preset is None:
            known = ", ".join(sorted(PRESETS.models))
            raise RequestError(f"`model` is not known; give `window`, or one of: {known}")
        reserve = preset.reserve if reserve is None and window is None else reserve
        window = preset.window if window is None else window
    window = WINDOW if window is None else window
    reserve = default_reserve(window) if reserve is None else reserve
    if reserve >= window:
        raise RequestError("`reserve` must be smaller than `window`")
    return window, reserve


def _shape(body: ContextRequest, window: int, reserve: int) -> str:
    parts: list[Any] = [
        window, reserve, body.strategy, body.counter, sorted(body.budgets.items()),
    ]  # fmt: skip
    if body.parts != "reference":
        parts.append(body.parts)
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


async def _compile(
    transactions: OperationTransactions,
    body: ContextRequest,
    found: Gathered,
    window: int,
    reserve: int,
) -> Compiled:
    """Raises ContextBudgetError."""
    count = COUNTERS[body.counter]
    if isinstance(count, ExactCounter):
        count.start()
        found.items = [replace(item, tokens=0) for item in found.items]
    items = [*_of_request(body), *found.items]
    if body.user is None:
        items = _with_open_turn(items)
    request = CompileRequest(
        window=window,
        reserve=reserve,
        is_reserve_given=body.reserve is not None,
        items=items,
        now=transactions.service.now(),
        budgets=cast(dict[BudgetGroup, float], body.budgets),
        strategy=body.strategy,
        session_id=body.session_id,
        subjects=found.subjects,
        working=found.working,
        rejected=frozenset(one for one, is_valid in body.revalidated.items() if not is_valid),
        session_budget=None if found.session is None else found.session.value.token_budget,
        unread=found.unread,
        turn_weights=_turn_weights(transactions.service.settings.turn_weights),
        query=found.query,
        previous=found.previous,
        count=count,
    )
    is_large = are_large(items, counted_exactly=isinstance(count, ExactCounter))
    try:
        return await compute(transactions, is_large, partial(compile_context, request))
    except BudgetError as error:
        name = "window" if error.group is None else f"budgets.{error.group}"
        raise ContextBudgetError(
            f"`{name}` must be at least {error.needed} tokens for what the context must contain",
            needed=error.needed,
        ) from None


def _turn_weights(given: Sequence[str]) -> dict[str, float]:
    pairs = (one.partition("=") for one in given)
    return {name: float(weight) for name, _, weight in pairs}


def _of_request(body: ContextRequest) -> list[ContextItem]:
    """Returns the parts of the request as items."""
    items = []
    if body.system:
        items.append(_part("request.system", "system", body.system))
    for at, tool in enumerate(body.tools):
        described = tool.get("function", tool)
        described = described if isinstance(described, dict) else tool
        lines = str(described.get("description", "")).strip().splitlines()
        items.append(
            ContextItem(
                id=f"request.tools.{at}",
                segment="tools",
                content=msgspec.json.encode(tool).decode(),
                name=str(described.get("name", f"tool {at}"))[:128],
                brief=lines[0][:200] if lines else "",
            )
        )
    if body.user is not None:
        items.append(replace(_part("request.user", "user", ""), content=body.user))
    return items


def _part(name: str, segment: SegmentName, text: str) -> ContextItem:
    return ContextItem(id=name, segment=segment, content=text, mandatory=True,
                       provenance="request")  # fmt: skip


def _with_open_turn(items: list[ContextItem]) -> list[ContextItem]:
    """Returns the items with the newest turn, which the model has to answer, as mandatory."""
    places = [at for at, item in enumerate(items) if item.segment == "turns"]
    if places:
        items[places[-1]] = replace(items[places[-1]], mandatory=True)
    return items
