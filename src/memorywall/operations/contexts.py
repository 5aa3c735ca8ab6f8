"""Compiled contexts: compiling, showing again, and feedback."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar, cast

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from memorywall.context.budgets import GroupName as BudgetGroup
from memorywall.context.budgets import default_reserve
from memorywall.context.compile import compile_context
from memorywall.context.formats import as_anthropic, as_openai, as_text, tools_of
from memorywall.context.item import (
    BudgetError,
    Compiled,
    ContextItem,
    Dropped,
    SegmentName,
    are_large,
)
from memorywall.context.rendering import marks_of, needs_check, render
from memorywall.context.request import CompileRequest
from memorywall.context.sources import LIVE_CLAIM
from memorywall.context.tools import LISTED
from memorywall.coordination.attachment_content import attach_content
from memorywall.kinds.contexts import CONTEXT, ContextPart, StoredContext
from memorywall.operations.binding import session_operation
from memorywall.operations.context_gathering import Gathered, gather
from memorywall.operations.context_showing import Rebuilt, load_context, rebuild
from memorywall.records.clock import after, parse_duration
from memorywall.records.copier import copier
from memorywall.records.decision import Target, Verb
from memorywall.records.entry import VALUE_LIMIT, Entry, Scope
from memorywall.records.errors import RequestError
from memorywall.records.feature_errors import ContextBudgetError
from memorywall.records.tier import Isolation
from memorywall.redaction.personal_data import stricter
from memorywall.service.entries.governed_entries import make_governed_entry
from memorywall.service.entries.writes import create_new_entry
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.validation import check_content
from memorywall.service.runner.operation_runner import OperationSession
from memorywall.sessions.checkpoints import extend_summary
from memorywall.sessions.personal_data import masked
from memorywall.tokens.exact import COUNTERS, ExactCounter
from memorywall.tokens.models import PRESETS
from memorywall.wire.contexts import (
    ContextItemResponse,
    ContextRequest,
    ContextResponse,
    DroppedItem,
    FormatName,
    SegmentResponse,
)
from memorywall.wire.leases import scope_namespace

Result = TypeVar("Result")
WINDOW = 128_000
"""The window of a request that names none, and no model."""
LIFETIME = "P1D"
"""The time for which a stored context is kept."""
_MOST_DROPPED = 1_000
_MOST_PARTS = VALUE_LIMIT // 2
"""The most bytes of the parts in the entry of a context; more go to its attachment."""
_encode = msgspec.json.Encoder().encode
_BY_REFERENCE = frozenset(
    {"core", "semantic", "episodic", "shared", "summary", "turns", "procedural", "working"}
)


@session_operation("create_context")
async def create_context(session: OperationSession) -> ContextResponse:
    body: ContextRequest = session.call.body
    if body.session_id is None and session.principal.session is not None:
        body = replace(body, session_id=session.principal.session.id)
    if body.user is not None:
        check_content("user", body.user)
    window, reserve = _window(body)
    shape = _shape(body, window, reserve)
    found = await gather(session, body, window - reserve, shape)
    body = replace(body, user=masked(_personal_data(session, found), body.user))
    compiled = await _compile(session, body, found, window, reserve)
    covered = 0
    while body.session_id is not None and compiled.uncovered > covered:
        # Turns have no room and are in no summary yet, because the job comes later.
        covered = compiled.uncovered
        await extend_summary(session.service, session.principal.tenant, body.session_id, covered)
        found = await gather(session, body, window - reserve, shape)
        compiled = await _compile(session, body, found, window, reserve)

    def show() -> tuple[ContextResponse, tuple[ContextPart, ...], bytes]:
        digests = _digests(compiled)
        parts = _stored_parts(compiled, digests) if body.store else ()
        shown = view(compiled, body.strategy, body.format, digests)
        return shown, parts, _encode(parts)

    shown, parts, encoded = await _compute(session, are_large(compiled.all_items), show)
    context_id = None
    if body.store:
        context_id = await session.write(_store, body, found, compiled, shape, parts, encoded)
    return replace(
        shown,
        id=context_id,
        turns_omitted=found.turns_omitted,
        lessons=found.lessons,
        dropped=[_dropped(one) for one in compiled.dropped[:_MOST_DROPPED]],
    )


@session_operation("get_context")
async def get_context(session: OperationSession) -> ContextResponse:
    entry, stored, rebuilt = await session.read(_rebuild, session.call.path["context_id"])
    compiled, changed, erased = rebuilt

    def show() -> ContextResponse:
        return view(compiled, stored.strategy, session.call.query.format, _digests(compiled))

    shown = await _compute(session, are_large(compiled.all_items), show)
    return replace(shown, id=entry.id, changed=changed, erased=erased)


async def _rebuild(
    context: OperationContext, context_id: str
) -> tuple[Entry, StoredContext, Rebuilt]:
    entry, stored = await load_context(context, context_id, Verb.READ)
    return entry, stored, await rebuild(context, entry, stored)


async def _compute(
    session: OperationSession, in_thread: bool, work: Callable[[], Result]
) -> Result:
    """Returns the result of work, which takes place in a thread if it is long."""
    return await session.service.store.compute(work) if in_thread else work()


_dropped = copier(Dropped, DroppedItem)
_item = copier(
    ContextItem,
    ContextItemResponse,
    given=["digest", "content"],
    marks=marks_of,
    quality=lambda item: item.quality or UNSET,
)
_stored_item = copier(ContextItem, ContextPart, given=["segment", "digest", "content"])


def view(
    compiled: Compiled, strategy: str, wanted: FormatName, digests: dict[str, str]
) -> ContextResponse:
    """Returns a context in a format.

    digests: of the items, by id
    """
    segments = [
        SegmentResponse(
            name=segment.name,
            budget=segment.budget,
            tokens=segment.tokens,
            items=[
                _item(
                    item,
                    digest=digests[item.id],
                    content=item.content if wanted == "segments" or needs_check(item) else None,
                )
                for item in segment.items
            ],
        )
        for segment in compiled.segments
    ]
    shown = ContextResponse(
        id=None,
        window=compiled.window,
        reserve=compiled.reserve,
        tokens=compiled.tokens,
        strategy=strategy,
        segments=segments,
        tools=tools_of(compiled, wanted),
    )
    if wanted == "openai":
        return replace(shown, messages=as_openai(compiled))
    if wanted == "anthropic":
        found = as_anthropic(compiled)
        return replace(shown, system=found["system"], messages=found["messages"])
    return replace(shown, text=as_text(compiled)) if wanted == "text" else shown


def digest(item: ContextItem) -> str:
    """Returns the digest of an item as a context contains it."""
    content = _encode([render(item), item.content, item.tool_calls, item.tool_call_id])
    return hashlib.sha256(content).hexdigest()[:32]


def _digests(compiled: Compiled) -> dict[str, str]:
    return {item.id: digest(item) for item in compiled.all_items}


def _personal_data(session: OperationSession, found: Gathered) -> str:
    """Returns the policy for text of the request that is stored."""
    of_server = session.service.settings.personal_data
    if found.session is None:
        return of_server
    return stricter(found.session.value.policy.personal_data, of_server)


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
    parts = [window, reserve, body.strategy, body.counter, sorted(body.budgets.items())]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


async def _compile(
    session: OperationSession, body: ContextRequest, found: Gathered, window: int, reserve: int
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
        now=session.service.now(),
        budgets=cast(dict[BudgetGroup, float], body.budgets),
        strategy=body.strategy,
        session_id=body.session_id,
        subjects=found.subjects,
        working=found.working,
        rejected=frozenset(one for one, is_valid in body.revalidated.items() if not is_valid),
        session_budget=None if found.session is None else found.session.value.token_budget,
        unread=found.unread,
        turn_weights=_turn_weights(session.service.settings.turn_weights),
        query=found.query,
        previous=found.previous,
        count=count,
    )
    is_large = are_large(items, counted_exactly=isinstance(count, ExactCounter))
    try:
        return await _compute(session, is_large, partial(compile_context, request))
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


async def _store(
    context: OperationContext,
    body: ContextRequest,
    found: Gathered,
    compiled: Compiled,
    shape: str,
    parts: tuple[ContextPart, ...],
    encoded: bytes,
) -> str:
    """Stores what the context contains, by reference. Raises ValueTooLargeError.

    encoded: the parts as JSON
    """
    head = None if found.session is None else found.session.entry
    owner = context.principal.id if head is None else head.owner
    subjects = context.principal.subjects or () if head is None else head.subjects
    target = Target(
        tenant=context.tenant,
        isolation=Isolation.AGENT,
        owner=context.principal.id,
        subjects=subjects,
        place="contexts",
    )
    context.authorize(Verb.CREATE, target)
    value = StoredContext(
        session_id=body.session_id,
        scope=None if body.shared is None else scope_namespace(body.shared, context.principal.id),
        shape=shape,
        strategy=body.strategy,
        window=compiled.window,
        reserve=compiled.reserve,
        tokens=compiled.tokens,
        budgets={segment.name: segment.budget for segment in compiled.segments},
        segment_tokens={segment.name: segment.tokens for segment in compiled.segments},
        parts=parts,
        largest_summary=compiled.largest_summary,
        epoch=compiled.slices.epoch,
        first_turn=compiled.slices.first_turn,
        kept={name: list(pairs) for name, pairs in compiled.slices.kept.items()},
    )
    entry_id = context.service.ids.next("mem")
    if len(encoded) > _MOST_PARTS:
        attachment = await attach_content(context, entry_id, owner, "context.json", encoded)
        value = replace(value, parts=(), attachment=attachment)
    entry = make_governed_entry(
        context,
        CONTEXT,
        value,
        owner=owner,
        namespace="contexts",
        key=f"{context.now}.{entry_id}",
        scope=Scope(session_id=body.session_id),
        subjects=subjects,
        entry_id=entry_id,
        expires_at=after(context.moment, parse_duration(LIFETIME)),
    )
    await create_new_entry(context, entry)
    return entry_id


def _stored_parts(compiled: Compiled, digests: dict[str, str]) -> tuple[ContextPart, ...]:
    return tuple(
        _stored_part(segment.name, item, digests[item.id])
        for segment in compiled.segments
        for item in segment.items
    )


def _stored_part(segment: SegmentName, item: ContextItem, digested: str) -> ContextPart:
    of_entry = item.segment in _BY_REFERENCE and item.reason != LIVE_CLAIM
    content = None
    if not of_entry:
        content = item.content if isinstance(item.content, str) else json.dumps(item.content)
    if item.id == LISTED:
        content = item.text
    return _stored_item(item, segment=segment, digest=digested, content=content)
