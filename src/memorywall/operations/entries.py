"""Create, get, update and delete one entry (RFC-0015 "Memory CRUD"), by id and by name."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from memorywall.longterm.duplicates import load_known
from memorywall.operations.binding import operation
from memorywall.operations.filters import past_instant
from memorywall.operations.worthiness import compare_remembered, weigh
from memorywall.records.copier import copier
from memorywall.records.decision import Verb
from memorywall.records.draft import EntryMergePatch, NewEntry
from memorywall.records.entry import SEALED_SENSITIVITIES, Entry
from memorywall.records.errors import RequestError
from memorywall.records.tier import Tier
from memorywall.service.access.targets import (
    load_authorized_entry,
    load_authorized_target,
    load_target,
)
from memorywall.service.entries.checks import check_new
from memorywall.service.entries.create import create, create_checked, put
from memorywall.service.entries.history import load_version, load_versions
from memorywall.service.entries.supersession import reinstate, supersede
from memorywall.service.entries.update import delete, merge, update
from memorywall.service.entries.value_schemas import require_major
from memorywall.service.requests.operation_context import (
    OperationCall,
    OperationContext,
)
from memorywall.tiers import VERSIONED_TIERS
from memorywall.wire.entries import (
    REMEMBERED,
    EntryResponse,
    EvictedEntry,
    EvictionWarning,
    HistoryQuery,
    HistoryResponse,
    RememberRequest,
    view,
)
from memorywall.wire.events import EventResponse, event_view

_ONE_CONDITION = "send `If-Match` to replace or `If-None-Match: *` to create, and not both"


def written(context: OperationContext, entry: Entry) -> EntryResponse:
    """The wire form of a written entry, with a warning of what the write has evicted."""
    return replace(view(entry), warnings=warnings_of(context)) if context.evicted else view(entry)


def warnings_of(context: OperationContext) -> tuple[EvictionWarning, ...]:
    """The warning of what an operation has evicted; none if that is nothing."""
    if not context.evicted:
        return ()
    caller, count = context.principal, len(context.evicted)
    is_bound = caller.subjects is not None or caller.session is not None
    went = tuple(
        EvictedEntry(id=one.id)
        if is_bound or one.owner != caller.id
        else EvictedEntry(id=one.id, namespace=one.namespace, key=one.key)
        for one in context.evicted
    )
    detail = (
        f"{context.evicted[0].tier} memory is full: {count} {'entry' if count == 1 else 'entries'}"
        " evicted; pin what must stay, or raise the capacity"
    )
    return (EvictionWarning(detail=detail, entries=went),)


@operation("create_entry", shows=lambda shown: (shown.id,))
async def create_entry(context: OperationContext, call: OperationCall) -> EntryResponse:
    return written(context, await create(context, call.body))


_remembered = copier(
    RememberRequest,
    NewEntry,
    given=["namespace", "memory_type", "value"],
    defaults=["key", "agent_id"],
)


def _draft(asked: RememberRequest) -> NewEntry:
    value: dict[str, Any] = {"text": asked.text}
    if asked.metadata is not None:
        value["metadata"] = asked.metadata
    return _remembered(asked, namespace=REMEMBERED, memory_type=Tier.EPISODIC, value=value)


async def _authorize_repeat(context: OperationContext, call: OperationCall) -> None:
    """Raises MemoryAccessError for a key that may not remember a text any more."""
    check_new(context, _draft(call.body))


@operation(
    "remember",
    shows=lambda shown: (shown.id,),
    prepare=compare_remembered,
    recheck=_authorize_repeat,
    # The reply may be an entry of somebody else, which the caller may read.
    repeat_verbs=(Verb.READ,),
)
async def remember(context: OperationContext, call: OperationCall) -> EntryResponse:
    draft = _draft(call.body)
    checked = check_new(context, draft)
    known = await load_known(context, checked.entry, call.prepared)
    verdict = await weigh(context, draft, known)
    if known is not None:
        return replace(view(known), worthiness=verdict)
    stored = await create_checked(context, checked)
    return replace(written(context, stored), worthiness=verdict)


@operation("get_entry")
async def get_entry(context: OperationContext, call: OperationCall) -> EntryResponse:
    asked, as_of = call.query, call.query.as_of
    if as_of is not None:
        as_of = past_instant("as_of", as_of, context.now)
    if asked.schema_version is not None:
        # Schemas take a while to be compiled.
        context.require_long_run()
    entry = await get(context, call.path["entry_id"], asked.version, as_of)
    if asked.schema_version is not None:
        await require_major(context, entry, asked.schema_version)
    return view(entry)


@operation("get_entry_history")
async def get_entry_history(context: OperationContext, call: OperationCall) -> HistoryResponse:
    entry = await load_authorized_entry(context, Verb.READ, call.path["entry_id"])
    asked, open_entry = call.query, context.service.cipher.open
    shown = []
    for one in await load_versions(context, entry, asked.before_version, asked.limit):
        # The subjects of each version need an access decision of their own.
        if one is entry or context.allows(Verb.READ, await load_target(context, Verb.READ, one)):
            shown.append(view(await open_entry(context.transaction, one)))
    is_versioned = entry.tier in VERSIONED_TIERS
    events = UNSET if is_versioned else await _events_of(context, entry, asked)
    context.service.record_access((entry,), context.now)
    return HistoryResponse(versions=shown, events=events)


async def _events_of(
    context: OperationContext, entry: Entry, asked: HistoryQuery
) -> list[EventResponse]:
    """Returns what the log says of the changes of an entry, newest first."""
    # The log has no index of entries, so that all of it is read.
    context.require_long_run()
    log, found = context.transaction.events, list[EventResponse]()
    for seq in reversed(await log.seqs_of_entries((entry.id,))):
        (event,) = await log.list_from(seq, 1)
        is_wanted = asked.before_version is None or event.version < asked.before_version
        if is_wanted and event.tier is not None:
            found.append(event_view(event))
        if len(found) == asked.limit:
            break
    return found


@operation("update_entry", shows=lambda shown: (shown.id,))
async def update_entry(context: OperationContext, call: OperationCall) -> EntryResponse:
    write = merge if isinstance(call.body, EntryMergePatch) else update
    return written(context, await write(context, call.path["entry_id"], call.version, call.body))


@operation("put_entry", shows=lambda shown: (shown.id,))
async def put_entry(context: OperationContext, call: OperationCall) -> EntryResponse:
    if call.if_match is not None and call.if_none_match:
        raise RequestError(_ONE_CONDITION)
    entry = await put(context, call.body, call.if_match, must_create=call.if_none_match)
    return written(context, entry)


@operation("supersede_entry")
async def supersede_entry(context: OperationContext, call: OperationCall) -> EntryResponse:
    newer = call.body.newer_id
    return written(context, await supersede(context, call.path["entry_id"], call.version, newer))


@operation("reinstate_entry")
async def reinstate_entry(context: OperationContext, call: OperationCall) -> EntryResponse:
    return written(context, await reinstate(context, call.path["entry_id"], call.version))


@operation("delete_entry")
async def delete_entry(context: OperationContext, call: OperationCall) -> None:
    await delete(context, call.path["entry_id"], call.if_match)


async def get(
    context: OperationContext, entry_id: str, version: int | None = None, as_of: str | None = None
) -> Entry:
    """Returns one entry (RFC-0015 "Memory CRUD"), in its current or an earlier state.

    version: an earlier version, in a versioned tier
    as_of: an instant; selects the version at that instant

    Raises RequestError for both, MemoryNotFoundError, MemoryAccessError.
    """
    if version is not None and as_of is not None:
        raise RequestError("`version` and `as_of` cannot be combined; give one of them")
    entry, _ = await load_authorized_target(context, Verb.READ, entry_id)
    if version is not None or as_of is not None:
        entry = await load_version(context, entry, version, as_of)
        # The subjects of the earlier version also need an access decision.
        context.authorize(Verb.READ, await load_target(context, Verb.READ, entry))
    service = context.service
    if entry.sensitivity in SEALED_SENSITIVITIES:
        entry = await service.cipher.open(context.transaction, entry)
    tracker = service.usage_tracker
    if entry.tier in service.tiers.tracked(entry.tenant):
        tracker.record_access(entry, context.now)
    tracker.used[entry.tenant][entry.id] += 1
    return entry
