"""What happened: to an entry (RFC-0015 section 5), or to the work it belongs to (RFC-0001)."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

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


class WorkEvent(StrEnum):
    """What happens to intents, tasks, coordinators and leases, in the words of their RFCs, and to
    an agent."""

    INTENT_CREATED = "intent_created"
    STATE_PATCHED = "state_patched"
    STATUS_CHANGED = "status_changed"
    LEASE_ACQUIRED = "lease_acquired"
    LEASE_RELEASED = "lease_released"
    ATTACHMENT_ADDED = "attachment_added"
    DEPENDENCY_ADDED = "dependency_added"
    DEPENDENCY_REMOVED = "dependency_removed"
    ACCESS_GRANTED = "access_granted"
    ACCESS_REVOKED = "access_revoked"
    TASK_CREATED = "task.created"
    TASK_READY = "task.ready"
    TASK_CLAIMED = "task.claimed"
    TASK_STARTED = "task.started"
    TASK_PROGRESS = "task.progress"
    TASK_COMPLETED = "task.completed"
    TASK_FAILED = "task.failed"
    TASK_RETRYING = "task.retrying"
    TASK_BLOCKED = "task.blocked"
    TASK_DELEGATED = "task.delegated"
    TASK_CANCELLED = "task.cancelled"
    TASK_SKIPPED = "task.skipped"
    GUARDRAILS_UPDATED = "coordinator.guardrails_updated"
    COORDINATOR_UNRESPONSIVE = "coordinator.unresponsive"
    CLAIM_ACQUIRED = "claim.acquired"
    CLAIM_RELEASED = "claim.released"
    CLAIM_EXPIRED = "claim.expired"
    AGENT_FORGOTTEN = "agent.forgotten"


ENDINGS = frozenset({EventType.DELETED, EventType.ARCHIVED, EventType.EVICTED, EventType.EXPIRED})


class Event(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One line of a tenant's log, append-only.

    seq: place in the tenant's log, dense from 1; 0 before it is appended
    type: an EventType, a WorkEvent, or the word of the client that logged it
    stream: the agent whose stream shows it, "" for none
    agent_id: the entry's owning agent, or the agent it concerns
    actor: the principal who caused it, "system" for the server's own housekeeping
    tier: the tier of the entry it is about; None where it is about no single entry, and then
        `entry_id`, `namespace`, `key` and `tags` are empty and `version` is 0
    data: what it says, as JSON text; None where the fields of an entry say it all
    """

    tenant: str
    seq: int = 0
    type: str
    stream: str
    agent_id: str
    actor: str
    entry_id: str = ""
    tier: Tier | None = None
    namespace: str = ""
    key: str = ""
    version: int = 0
    previous_version: int | None = None
    tags: tuple[str, ...] = ()
    task_id: str | None = None
    intent_id: str | None = None
    timestamp: str
    data: bytes | None = None


class EntryChange(NamedTuple):
    """What the log says of an entry, as far as who keeps something about entries needs it.

    agent_id: the owner, in a tier walled by agent
    ended: whether the entry is gone with it
    """

    seq: int
    entry_id: str
    tier: Tier
    agent_id: str
    version: int
    ended: bool
