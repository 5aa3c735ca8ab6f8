"""Writes the log: the one place where events are appended (RFC-0015 section 5)."""

from __future__ import annotations

from typing import Any

import msgspec

from memorywall.records.entry import Entry
from memorywall.records.event import Event, EventType, WorkEvent
from memorywall.records.principal import Principal
from memorywall.storage.port import Transaction

SYSTEM = "system"
_encode = msgspec.json.Encoder().encode


async def record(
    transaction: Transaction,
    kind: EventType,
    entry: Entry,
    *,
    by: Principal | None,
    at: str,
    previous_version: int | None = None,
) -> None:
    """Appends what happened to `entry`.

    An agent's stream shows what happens to its own memory and what it does to shared memory; what
    the server does to shared memory by itself stands in no agent's stream, for its creator may
    have lost sight of it since.
    """
    doer = by.id if by is not None else ""
    await _append(
        transaction,
        Event(
            tenant=entry.tenant,
            type=kind,
            stream=entry.owner or doer,
            agent_id=entry.owner or doer or entry.agent_id,
            actor=by.actor if by is not None else SYSTEM,
            entry_id=entry.id,
            tier=entry.tier,
            namespace=entry.namespace,
            key=entry.key,
            version=entry.version,
            previous_version=previous_version,
            tags=entry.tags,
            task_id=entry.scope.task_id,
            intent_id=entry.scope.intent_id,
            timestamp=at,
        ),
    )


async def record_work(
    transaction: Transaction,
    kind: EventType | WorkEvent | str,
    *,
    tenant: str,
    by: Principal | None,
    at: str,
    data: dict[str, Any],
    intent_id: str | None = None,
    task_id: str | None = None,
    agent: str | None = None,
) -> Event:
    """Appends what happened to an intent or a task, or to a claim.

    agent: whom it concerns and whose stream shows it besides the intent's log; by default the doer,
        and then no agent's stream shows it
    """
    doer = by.id if by is not None else ""
    event = Event(
        tenant=tenant,
        type=kind,
        stream=agent or "",
        agent_id=agent or doer,
        actor=by.actor if by is not None else SYSTEM,
        task_id=task_id,
        intent_id=intent_id,
        timestamp=at,
        data=_encode(data),
    )
    return await _append(transaction, event)


async def end_of_log(transaction: Transaction, tenant: str) -> int:
    """The `seq` of the last thing logged, 0 where there is nothing."""
    latest = await transaction.events.latest(tenant)
    return 0 if latest is None else latest.seq


async def _append(transaction: Transaction, event: Event) -> Event:
    return await transaction.events.append(event)
