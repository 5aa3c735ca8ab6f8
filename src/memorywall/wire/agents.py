"""Bodies about agents, their events, and namespaces (RFC-0015 sections 2.3 and 5)."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from memorywall.records.event import Event, EventType
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
    `event_type`, `payload` and `created_at` repeat `type`, `data` and `timestamp`.

    data: of an event about one entry what `EventData` says, of any other an object of its own
    """

    id: str
    seq: int
    type: str
    event_type: str
    agent_id: str
    actor: str
    intent_id: str | None = None
    task_id: str | None = None
    trace_id: str | None = None
    parent_event_id: str | None = None
    data: Any
    payload: Any
    timestamp: str
    created_at: str


class Traces(msgspec.Struct, frozen=True, kw_only=True):
    """What an event a client logged belongs to (RFC-0020), as far as it says so in words."""

    trace_id: Any = None
    parent_event_id: Any = None


_NO_TRACES = Traces()


def event_view(event: Event, *, with_values: bool = False) -> EventView:
    """The wire form of an event.

    with_values: whether an archive shows the values in it, as it does to who may read the intent;
        an agent's own stream tells only how many entries went
    """
    data: EventData | msgspec.Raw
    traces = _NO_TRACES
    if event.tier is not None:
        data = EventData(
            entry_id=event.entry_id,
            namespace=event.namespace,
            key=event.key,
            memory_type=event.tier,
            version=event.version,
            previous_version=event.previous_version,
            tags=event.tags,
        )
    else:
        text = event.data or b"{}"
        if b"trace_id" in text or b"parent_event_id" in text:
            traces = msgspec.json.decode(text, type=Traces)
        if event.type == EventType.ARCHIVED and not with_values:
            text = _without_snapshot(text)
        data = msgspec.Raw(text)
    return EventView(
        id=f"evt_{event.seq}",
        seq=event.seq,
        type=event.type,
        event_type=event.type,
        agent_id=event.agent_id,
        actor=event.actor,
        intent_id=event.intent_id,
        task_id=event.task_id,
        trace_id=traces.trace_id,
        parent_event_id=traces.parent_event_id,
        data=data,
        payload=data,
        timestamp=event.timestamp,
        created_at=event.timestamp,
    )


def _without_snapshot(data: bytes) -> bytes:
    archived = msgspec.json.decode(data).get("entries_archived", 0)
    return msgspec.json.encode({"entries_archived": archived})


class EventPage(msgspec.Struct, frozen=True, kw_only=True):
    """Events in order; `next` is the `after` with which to go on."""

    events: list[EventView]
    next: int


class EventQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Where in a stream to start and how much of it to give."""

    after: Annotated[int, Meta(ge=0, le=2**62)] = 0
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 100


class AgentLimitsBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What shall hold for one agent; what is left out goes back to the default."""

    episodic_capacity: Annotated[int, Meta(ge=1, le=1_000_000_000)] | None = None
    pinned_namespaces: list[str] = []


class AgentLimitsView(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for one agent apart from the defaults."""

    agent_id: str
    episodic_capacity: int | None
    pinned_namespaces: tuple[str, ...]


class BridgeBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the protocol's MCP bridge sends: any value, which is kept as an object."""

    value: Any
    ttl_seconds: Annotated[int, Meta(ge=1, le=10_000_000_000)] | None = None


class BridgeView(msgspec.Struct, frozen=True, kw_only=True):
    """An entry as the bridge put it."""

    agent_id: str
    namespace: str
    key: str
    value: Any
    version: int
    updated_at: str
    expires_at: str | None


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
