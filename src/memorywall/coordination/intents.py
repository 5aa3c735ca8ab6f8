"""Intents, their state and their append-only log (RFC-0001)."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from memorywall.coordination.access import anywhere, check_writer, load_authorized_intent
from memorywall.records.decision import Verb
from memorywall.records.errors import MemoryAccessError, ResourceConflictError, ValidationError
from memorywall.records.event import Event, WorkEventType
from memorywall.records.intent import Intent, IntentStatus
from memorywall.records.lease import LeaseKind
from memorywall.service.access.groups import list_intent_grants
from memorywall.service.entries.record_writes import insert_record, open_record, replace_record
from memorywall.service.feeds.event_feed import FeedPage, follow
from memorywall.service.feeds.log_reader import PAGE
from memorywall.service.requests.event_log import append_work_event
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.validation import check_name, encode_value
from memorywall.service.runner.operation_runner import OperationTransactions

LONGEST_DESCRIPTION = 65_536
MOST_DEPENDENCIES = 256
_OWN_WORDS = re.compile(r"(memory|task|claim|coordinator)\.|(intent|lease|access)_")
"""The prefixes of event types that are reserved for the server."""
_EVENT_TYPE = re.compile(r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)*")
_OWN_TYPES = frozenset(kind.value for kind in WorkEventType)


@dataclass(frozen=True, kw_only=True, slots=True)
class NewIntent:
    """A new intent."""

    title: str
    description: str = ""
    state: dict[str, Any]
    constraints: dict[str, Any]
    parent_intent_id: str | None = None
    depends_on: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Patch:
    """One change of an intent's state: a top-level member to set or to remove."""

    op: Literal["set", "remove"]
    path: str
    value: Any = None


@dataclass(frozen=True, kw_only=True, slots=True)
class IntentPage:
    """One page of intents, and the total number."""

    intents: list[Intent]
    total: int


async def create(context: OperationContext, wanted: NewIntent) -> Intent:
    """Creates an intent, which its creator administers.

    Raises ValidationError, ValueTooLargeError, MemoryAccessError, and ResourceNotFoundError for a
    parent or dependency that the caller cannot read.
    """
    check_name("title", wanted.title, longest=512)
    if len(wanted.description) > LONGEST_DESCRIPTION:
        raise ValidationError(f"`description` may have at most {LONGEST_DESCRIPTION} characters")
    if len(wanted.depends_on) > MOST_DEPENDENCIES:
        raise ValidationError(f"`depends_on` may have at most {MOST_DEPENDENCIES} intents")
    encode_value(wanted.state)
    encode_value(wanted.constraints)
    await check_writer(context)
    if wanted.parent_intent_id is not None:
        await load_authorized_intent(context, Verb.CREATE, wanted.parent_intent_id)
    for other in wanted.depends_on:
        await load_authorized_intent(context, Verb.READ, other)
    intent = Intent(
        tenant=context.tenant,
        id=context.service.ids.next("int"),
        title=wanted.title,
        description=wanted.description,
        state=wanted.state,
        constraints=wanted.constraints,
        parent_intent_id=wanted.parent_intent_id,
        depends_on=tuple(dict.fromkeys(wanted.depends_on)),
        created_by=context.principal.id,
        created_at=context.now,
        updated_at=context.now,
    )
    await insert_record(context, intent)
    await _record(context, WorkEventType.INTENT_CREATED, intent, {"title": intent.title})
    return intent


async def get(context: OperationContext, intent_id: str) -> Intent:
    """An intent. Raises ResourceNotFoundError, MemoryAccessError."""
    intent, _ = await load_authorized_intent(context, Verb.READ, intent_id)
    return intent


async def list_intents(
    context: OperationContext, status: IntentStatus | None, limit: int, offset: int
) -> IntentPage:
    """The intents that the caller may read, newest first."""
    context.authorize(Verb.READ, anywhere(context.principal))
    ids = await list_participating(context)
    intents, total = await context.transaction.intents.list(
        context.principal.id, ids, status, limit, offset
    )
    return IntentPage(intents=intents, total=total)


async def list_participating(context: OperationContext) -> set[str]:
    """The ids of intents that the principal has access to without being their creator."""
    agent = context.principal.id
    grants = await list_intent_grants(context)
    held = await context.transaction.leases.held_by(LeaseKind.COORDINATOR, agent, context.now)
    return {
        *(one.intent_id for one in grants),
        *(one.parent for one in held),
        *await context.transaction.tasks.intents_of(agent),
    }


async def patch_state(
    context: OperationContext, intent_id: str, version: int, patches: Sequence[Patch]
) -> Intent:
    """Changes members of an intent's state, all or none, at `version`.

    Raises ResourceNotFoundError, MemoryAccessError, ResourceConflictError,
    ValueTooLargeError.
    """
    intent = await open_record(context, await at_version(context, intent_id, version))
    state = dict(intent.state)
    for patch in patches:
        if patch.op == "set":
            state[patch.path] = patch.value
        else:
            state.pop(patch.path, None)
    encode_value(state)
    changed = await _save(context, intent, state=state)
    names = sorted({patch.path for patch in patches})
    await _record(context, WorkEventType.STATE_PATCHED, changed, {"paths": names})
    return changed


async def set_status(
    context: OperationContext,
    intent_id: str,
    version: int,
    status: IntentStatus,
    reason: str | None,
) -> Intent:
    """Sets an intent's status at `version`. Raises like `patch_state`."""
    intent = await at_version(context, intent_id, version)
    changed = await _save(context, intent, status=status)
    data: dict[str, Any] = {"from": intent.status, "to": status}
    if reason is not None:
        data["reason"] = reason
    await _record(context, WorkEventType.STATUS_CHANGED, changed, data)
    return changed


async def log_event(
    context: OperationContext, intent_id: str, kind: str, payload: dict[str, Any], actor: str | None
) -> Event:
    """Appends a client event to an intent's log.

    kind: a type that is not reserved for the server
    actor: None or the caller
    Raises ValidationError for a type that only the server uses, MemoryAccessError.
    """
    if actor is not None and actor != context.principal.id:
        raise MemoryAccessError("`actor` must be the agent that this request acts for")
    if len(kind) > 64 or not _EVENT_TYPE.fullmatch(kind):
        raise ValidationError("`event_type` must be words of a-z, 0-9 and _, joined by dots")
    if kind in _OWN_TYPES or _OWN_WORDS.match(kind):
        raise ValidationError("`event_type` is reserved for the server")
    encode_value(payload)
    await load_authorized_intent(context, Verb.CREATE, intent_id)
    return await append_work_event(context, kind, intent_id=intent_id, data=payload)


async def list_events(
    context: OperationContext,
    intent_id: str,
    after: int,
    limit: int,
    *,
    kind: str | None = None,
    since: str | None = None,
) -> list[Event]:
    """Events of the log of an intent that the caller may read.

    after: only events with a greater `seq`
    kind: the type of events, None for any
    since: an instant in the stored form, None for any
    """
    await load_authorized_intent(context, Verb.READ, intent_id)
    return await context.transaction.events.list_of_intent(
        intent_id, after, limit, kind=kind, since=since
    )


async def last_event(context: OperationContext, intent_id: str) -> int:
    """The `seq` of the last event in the log of an intent that the caller may read."""
    await load_authorized_intent(context, Verb.READ, intent_id)
    latest = await context.transaction.events.latest()
    return 0 if latest is None else latest.seq


def follow_events(
    transactions: OperationTransactions, intent_id: str, after: int
) -> AsyncGenerator[FeedPage, None]:
    """Yields the events of an intent's log without end, each once and in order. An empty page is a
    keep-alive. Access to the intent is decided for each page."""

    async def read_page(seen: int, log: Sequence[Event] | None) -> FeedPage:
        if log is None:
            return FeedPage.of(await transactions.read(list_events, intent_id, seen, PAGE), seen)
        await transactions.read(load_authorized_intent, Verb.READ, intent_id)
        found = [event for event in log if event.intent_id == intent_id]
        return FeedPage(found, log[-1].seq if log else seen, is_last=True)

    return follow(transactions, read_page, after)


async def at_version(context: OperationContext, intent_id: str, version: int) -> Intent:
    """An intent that the principal may change. Raises ResourceConflictError at another version."""
    intent, _ = await load_authorized_intent(context, Verb.UPDATE, intent_id)
    if intent.version != version:
        raise ResourceConflictError(
            "the intent has another version now; read it and send the current one",
            current_version=intent.version,
        )
    return intent


async def _save(context: OperationContext, intent: Intent, **fields: Any) -> Intent:
    changed = msgspec.structs.replace(
        intent, version=intent.version + 1, updated_at=context.now, **fields
    )
    await replace_record(context, changed)
    return changed


async def _record(
    context: OperationContext, kind: WorkEventType, intent: Intent, data: dict[str, Any]
) -> None:
    await append_work_event(context, kind, intent_id=intent.id, data=data)
