"""Events of entries (RFC-0015 section 5) and of work (RFC-0001)."""

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


class WorkEventType(StrEnum):
    """Events of intents, tasks, coordinators and leases, with the names of their RFCs, and events
    of groups, agents and API keys."""

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
    TASK_WORKING_MEMORY = "task.working_memory"
    GUARDRAILS_UPDATED = "coordinator.guardrails_updated"
    COORDINATOR_UNRESPONSIVE = "coordinator.unresponsive"
    CLAIM_ACQUIRED = "claim.acquired"
    CLAIM_RELEASED = "claim.released"
    CLAIM_EXPIRED = "claim.expired"
    GROUP_CREATED = "group.created"
    GROUP_UPDATED = "group.updated"
    GROUP_DELETED = "group.deleted"
    GROUP_MEMBER_ADDED = "group.member_added"
    GROUP_MEMBER_REMOVED = "group.member_removed"
    AGENT_FORGOTTEN = "agent.forgotten"
    SUBJECT_FORGOTTEN = "subject.forgotten"
    KEY_ROTATED = "key.rotated"


class LogEvent(StrEnum):
    """Events about the log itself. They are in no agent's stream and in no intent's log.

    GENESIS: earlier events were written before the chain, and were added to it unchanged
    ROWS: digests of the rows of entries that are older than the chain
    RESTORED: a restore begins a segment of the log; the data names the end of the backup
    """

    GENESIS = "log.genesis"
    ROWS = "log.rows"
    RESTORED = "log.restored"


ENDINGS = frozenset({EventType.DELETED, EventType.ARCHIVED, EventType.EVICTED, EventType.EXPIRED})


class RowDigest(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A digest of an entry's row, keyed with the digest key that the event's envelope names.

    format: the covered fields; see `event_chain.ROW_FIELDS`
    """

    format: int
    digest: bytes


class Event(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One line of a tenant's log, append-only.

    seq: position in the tenant's log, from 1 without gaps; 0 before the event is appended
    type: an EventType, a WorkEventType, or a type that a client has chosen
    stream: the agent whose stream contains the event, "" for none
    agent_id: the owner of the entry, or the agent that the event concerns
    actor: the principal that caused the event, "system" for the server itself
    tier: the tier of the entry; None for an event that is not about one entry, and then
        `entry_id`, `namespace`, `key` and `tags` are empty and `version` is 0
    data: further data as JSON text, None for none
    kind: the kind of the entry's value, None for free JSON
    subjects: digests of the names of the people that the entry is about; None where they are
        unknown: in an event that is not about one entry, or older than this field
    session: of an event that ends an entry, the session of the entry, "" for none; None where it is
        unknown
    row: the digest of the entry's row after it; None before it is appended, and where no entry is
        left or the entry is not one of a row

    Of an event whose content was erased `stream`, `agent_id`, `actor`, `namespace`, `key`, `tags`,
    `kind`, `subjects`, `session` and `data` are empty.
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
    kind: str | None = None
    subjects: tuple[str, ...] | None = None
    session: str | None = None
    row: RowDigest | None = None

    @property
    def is_erased(self) -> bool:
        """Returns whether the content has been erased; before that every event has an actor."""
        return not self.actor


class ArchivedEntry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An entry as an archive names it."""

    entry_id: str
    agent_id: str = ""
    version: int


class _Archive(msgspec.Struct):
    """The data of an archive event."""

    snapshot: list[ArchivedEntry]


_decode_archive = msgspec.json.Decoder(_Archive).decode


def archived_by(event: Event) -> list[ArchivedEntry]:
    """Returns the entries in an archive event; none for another event.

    Raises msgspec.MsgspecError and UnicodeDecodeError for an archive that cannot be read.
    """
    if event.type != EventType.ARCHIVED or event.data is None:
        return []
    return _decode_archive(event.data).snapshot


class EntryChange(NamedTuple):
    """The part of an event that caches and indexes of entries need.

    agent_id: the owner, in a tier that is isolated by agent
    ended: whether the event ends the entry
    kind: that of the stored entry; None without a kind, and for an entry that is not stored
    """

    seq: int
    entry_id: str
    tier: Tier
    agent_id: str
    version: int
    ended: bool
    kind: str | None = None
