"""The only functions that append events (RFC-0015 section 5)."""

from __future__ import annotations

from typing import Any

import msgspec

from memorywall.records.entry import Entry
from memorywall.records.event import (
    ENDINGS,
    ArchivedEntry,
    Event,
    EventType,
    LogEvent,
    WorkEventType,
)
from memorywall.records.event_chain import seal_event
from memorywall.records.tier import Tier
from memorywall.service.requests.operation_context import OperationContext
from memorywall.storage.port import Transaction

SYSTEM = "system"
_encode = msgspec.json.Encoder().encode


async def append_entry_event(
    context: OperationContext,
    kind: EventType,
    entry: Entry,
    *,
    previous_version: int | None = None,
    stored: Entry | None = None,
    by_system: bool = False,
    data: dict[str, Any] | None = None,
) -> None:
    """Appends an event about `entry`.

    stored: the entry in its new stored form, sealed if its sensitivity requires it; None for a
        removed entry. The event contains the digest of that row.

    An agent's stream contains the events about its own memory and its own changes of shared memory.
    Changes that the server makes to shared memory are in no agent's stream, because the creator of
    the entry may have lost access.

    previous_version: for an update, the previous version; None otherwise
    by_system: whether the server acts within the caller's operation; default: false
    data: the fields that the kind of the entry adds to the event; no content of the entry, because
        the log outlives it
    """
    by_system = by_system or context.is_system
    doer = "" if by_system else context.principal.id
    subjects = entry.subjects
    if subjects:
        # The log outlives the entry, so it must not contain the names of people.
        digest = context.service.cipher.literal_digest
        subjects = tuple([await digest(context.transaction, one, context.now) for one in subjects])
    await append_event(
        context.transaction,
        Event(
            tenant=entry.tenant,
            type=kind,
            stream=entry.owner or doer,
            agent_id=entry.owner or doer or entry.agent_id,
            actor=SYSTEM if by_system else context.principal.actor,
            entry_id=entry.id,
            tier=entry.tier,
            namespace=entry.namespace,
            key=entry.key,
            version=entry.version,
            previous_version=previous_version,
            tags=entry.tags,
            task_id=entry.scope.task_id,
            intent_id=entry.scope.intent_id,
            timestamp=context.now,
            kind=entry.kind,
            subjects=subjects,
            session=(entry.scope.session_id or "") if kind in ENDINGS else None,
            data=None if data is None else _encode(data),
        ),
        stored,
    )


async def append_end_event(context: OperationContext, entry: ArchivedEntry) -> None:
    """Appends an event without names that ends an archived entry, whose archive is erased."""
    actor = SYSTEM if context.is_system else context.principal.actor
    await append_event(
        context.transaction,
        Event(
            tenant=context.tenant,
            type=EventType.DELETED,
            stream="",
            agent_id=entry.agent_id,
            actor=actor,
            entry_id=entry.entry_id,
            # Archives have entries of this tier only.
            tier=Tier.WORKING,
            version=entry.version,
            timestamp=context.now,
        ),
    )


async def append_work_event(
    context: OperationContext,
    kind: EventType | WorkEventType | str,
    *,
    data: dict[str, Any],
    intent_id: str | None = None,
    task_id: str | None = None,
    agent: str | None = None,
    by_system: bool = False,
) -> Event:
    """Appends an event about an intent, a task or a claim.

    data: a JSON object
    agent: the agent that the event concerns, whose stream also contains the event; by default the
        principal, and then no agent's stream contains the event
    by_system: whether the server acts within the caller's operation; default: false
    """
    by_system = by_system or context.is_system
    doer = "" if by_system else context.principal.id
    event = Event(
        tenant=context.tenant,
        type=kind,
        stream=agent or "",
        agent_id=agent or doer,
        actor=SYSTEM if by_system else context.principal.actor,
        task_id=task_id,
        intent_id=intent_id,
        timestamp=context.now,
        data=_encode(data),
    )
    return await append_event(context.transaction, event)


async def append_log_event(transaction: Transaction, kind: LogEvent, now: str, data: Any) -> Event:
    """Appends an event about the log itself.

    now: an instant in stored form
    data: anything that can be encoded as a JSON object
    """
    event = Event(
        tenant=transaction.tenant,
        type=kind,
        stream="",
        agent_id="",
        actor=SYSTEM,
        timestamp=now,
        data=_encode(data),
    )
    return await append_event(transaction, event)


async def last_sequence(transaction: Transaction) -> int:
    """The `seq` of the last event, 0 for an empty log."""
    latest = await transaction.events.latest()
    return 0 if latest is None else latest.seq


async def append_event(
    transaction: Transaction, event: Event, stored: Entry | None = None
) -> Event:
    """Appends an event to the chain of its tenant and returns it with its `seq`.

    stored: see `append_entry_event`
    Raises KeyUnavailableError.
    """
    if transaction.digest_keys is None:
        raise RuntimeError("nothing can be logged in a transaction without digest keys")
    key = await transaction.digest_keys.digest_key(transaction, event.timestamp)
    head = await transaction.events.head()
    sealed = seal_event(event, head, key, stored)
    await transaction.events.append(sealed)
    return msgspec.structs.replace(event, seq=sealed.envelope.seq)
