"""What happened to an entry (RFC-0015 section 5)."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from memorywall.records.tier import Tier


class EventType(StrEnum):
    """The six lifecycle events of RFC-0015 section 5.1."""

    CREATED = "memory.created"
    UPDATED = "memory.updated"
    DELETED = "memory.deleted"
    ARCHIVED = "memory.archived"
    EVICTED = "memory.evicted"
    EXPIRED = "memory.expired"


ENDINGS = frozenset({EventType.DELETED, EventType.ARCHIVED, EventType.EVICTED, EventType.EXPIRED})


class Event(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One line of a tenant's log, append-only; values never stand in it.

    seq: place in the tenant's log, dense from 1; 0 before it is appended
    stream: the agent whose stream shows it, "" for none
    agent_id: the entry's owning agent
    actor: the principal who caused it, "system" for the server's own housekeeping
    """

    tenant: str
    seq: int = 0
    type: EventType
    stream: str
    agent_id: str
    actor: str
    entry_id: str
    tier: Tier
    namespace: str
    key: str
    version: int
    previous_version: int | None = None
    tags: tuple[str, ...] = ()
    task_id: str | None = None
    intent_id: str | None = None
    timestamp: str
