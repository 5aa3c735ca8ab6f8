"""Bodies about agents, their events, and namespaces (RFC-0015 sections 2.3 and 5)."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from memorywall.records.event import Event
from memorywall.records.namespace import Access, Grant
from memorywall.records.principal import Permission, PrincipalKind
from memorywall.records.tier import Tier


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Whom a key speaks for, and what it may do besides what each tier's own rule asks for."""

    agent_id: str
    tenant: str
    kind: PrincipalKind
    permissions: list[Permission]


class WorkingSummary(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's working memory in numbers."""

    entry_count: int
    total_size_kb: int
    tasks_with_memory: list[str]


class EpisodicSummary(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's episodic memory in numbers."""

    entry_count: int
    capacity: int
    pinned_count: int
    total_size_kb: int
    oldest_entry: str | None
    newest_entry: str | None


class SummaryView(msgspec.Struct, frozen=True, kw_only=True):
    """RFC-0015 "Agent Memory Summary", field by field. Sizes are rounded up to whole KB."""

    agent_id: str
    working: WorkingSummary
    episodic: EpisodicSummary
    semantic_namespaces_accessible: list[str]


class EventData(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a lifecycle event says of its entry (RFC-0015 section 5.2)."""

    entry_id: str
    namespace: str
    key: str
    memory_type: Tier
    version: int
    previous_version: int | None = None
    tags: tuple[str, ...]


class EventView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An event in the words of RFC-0015 section 5.2 and, beside them, in those of RFC-0001:
    `event_type`, `payload` and `created_at` repeat `type`, `data` and `timestamp`."""

    id: str
    seq: int
    type: str
    event_type: str
    agent_id: str
    actor: str
    intent_id: str | None = None
    task_id: str | None = None
    data: EventData
    payload: EventData
    timestamp: str
    created_at: str


def event_view(event: Event) -> EventView:
    """The wire form of an event."""
    data = EventData(
        entry_id=event.entry_id,
        namespace=event.namespace,
        key=event.key,
        memory_type=event.tier,
        version=event.version,
        previous_version=event.previous_version,
        tags=event.tags,
    )
    return EventView(
        id=f"evt_{event.seq}",
        seq=event.seq,
        type=event.type,
        event_type=event.type,
        agent_id=event.agent_id,
        actor=event.actor,
        intent_id=event.intent_id,
        task_id=event.task_id,
        data=data,
        payload=data,
        timestamp=event.timestamp,
        created_at=event.timestamp,
    )


class EventPage(msgspec.Struct, frozen=True, kw_only=True):
    """Events in order; `next` is the `after` with which to go on."""

    events: list[EventView]
    next: int


class EventQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Where in a stream to start and how much of it to give."""

    after: Annotated[int, Meta(ge=0, le=2**62)] = 0
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 100


class Permissions(msgspec.Struct, frozen=True, kw_only=True):
    """Who may do what in a namespace (RFC-0015 section 2.3)."""

    default: Access
    allow: list[Grant]


class PermissionsChange(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """The parts to replace, each one whole."""

    default: Access | None = None
    allow: list[Grant] | None = None


class NamespacePatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A change of a namespace's permissions."""

    permissions: PermissionsChange


class NamespaceView(msgspec.Struct, frozen=True, kw_only=True):
    """A namespace; `access` is the caller's own level in it."""

    namespace: str
    access: Access
    permissions: Permissions
    version: int
    created_at: str
    updated_at: str


class NamespaceBrief(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the list of namespaces."""

    namespace: str
    access: Access


class NamespaceList(msgspec.Struct, frozen=True, kw_only=True):
    """The namespaces the caller may read or administer."""

    namespaces: list[NamespaceBrief]
    total: int
