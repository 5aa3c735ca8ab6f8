"""Agents, events and namespaces (RFC-0015 sections 2.3 and 5): requests, responses, operations."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from memorywall.records.copier import copier
from memorywall.records.errors import MemoryCapacityError, MemoryNotFoundError
from memorywall.records.event import Event, EventType
from memorywall.records.namespace import Access, Grant
from memorywall.records.principal import Permission, PrincipalKind
from memorywall.records.tier import Tier
from memorywall.wire.entries import AgentMemoryQuery, EntryResponse
from memorywall.wire.operation import Operation
from memorywall.wire.operation_group import OperationGroup


class IdentityResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The principal that a key acts for, and the permissions of the key."""

    agent_id: str
    tenant: str
    kind: PrincipalKind
    permissions: list[Permission]


class WorkingSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Counts and sizes of an agent's working memory."""

    entry_count: int
    total_size_kb: int
    tasks_with_memory: list[str]


class EpisodicSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Counts and sizes of an agent's episodic memory."""

    entry_count: int
    capacity: int
    pinned_count: int
    total_size_kb: int
    oldest_entry: str | None
    newest_entry: str | None


class SummaryResponse(msgspec.Struct, frozen=True, kw_only=True):
    """RFC-0015 "Agent Memory Summary", field by field. Sizes are rounded up to whole KB."""

    agent_id: str
    working: WorkingSummary
    episodic: EpisodicSummary
    semantic_namespaces_accessible: list[str]


class EventData(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The data of a lifecycle event of an entry (RFC-0015 section 5.2).

    status, previous_status, closed_reason: of a session, after and before the change; a reason that
        a client wrote itself is `request`
    state, previous_state: of an entry, if the change is one of its state
    """

    entry_id: str
    namespace: str
    key: str
    memory_type: Tier
    version: int
    previous_version: int | None = None
    tags: tuple[str, ...]
    kind: str | None = None
    status: str | None = None
    previous_status: str | None = None
    closed_reason: str | None = None
    state: str | None = None
    previous_state: str | None = None


class EventResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An event with the field names of RFC-0015 section 5.2 and of RFC-0001: `event_type`,
    `payload` and `created_at` repeat `type`, `data` and `timestamp`.

    data: `EventData` for an event about one entry, an object of the event type otherwise
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
    """The trace that a client event belongs to (RFC-0020), as given by the client."""

    trace_id: Any = None
    parent_event_id: Any = None


_NO_TRACES = Traces()
_event = copier(
    Event,
    EventResponse,
    given=("trace_id", "parent_event_id", "data", "payload"),
    id=lambda event: f"evt_{event.seq}",
    event_type="type",
    created_at="timestamp",
)


def event_view(event: Event, *, with_values: bool = False) -> EventResponse:
    """The wire form of an event.

    with_values: whether an archive shows its values. The log of an intent shows them; an agent's
        own stream shows only the number of archived entries. Default: false.
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
            kind=event.kind,
            **({} if event.data is None else msgspec.json.decode(event.data)),
        )
    else:
        text = event.data or b"{}"
        if b"trace_id" in text or b"parent_event_id" in text:
            traces = msgspec.json.decode(text, type=Traces)
        if event.type == EventType.ARCHIVED and not with_values:
            text = _without_snapshot(text)
        data = msgspec.Raw(text)
    return _event(
        event,
        trace_id=traces.trace_id,
        parent_event_id=traces.parent_event_id,
        data=data,
        payload=data,
    )


def _without_snapshot(data: bytes) -> bytes:
    archived = msgspec.json.decode(data).get("entries_archived", 0)
    return msgspec.json.encode({"entries_archived": archived})


class EventPageResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Events in order. `next` is the value of `after` for the next page."""

    events: list[EventResponse]
    next: int


class EventQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A page of a stream.

    after: the `seq` of the last event that the client has
    entry_id: only events about this entry; a page may then have fewer events than `limit`, and the
        stream ends where `next` is `after`
    """

    after: Annotated[int, Meta(ge=0, le=2**62)] = 0
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 100
    entry_id: Annotated[str | None, Meta(description="Only events about this entry.")] = None


class AgentLimitsRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The limits of one agent. An omitted limit is reset to the default."""

    episodic_capacity: Annotated[int, Meta(ge=1, le=1_000_000_000)] | None = None
    pinned_namespaces: list[str] = []


class AgentLimitsResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one agent that differ from the defaults."""

    agent_id: str
    episodic_capacity: int | None
    pinned_namespaces: tuple[str, ...]


class BridgeRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The request of the protocol's MCP bridge: any JSON value, which is stored as an object."""

    value: Any
    ttl_seconds: Annotated[int, Meta(ge=1, le=10_000_000_000)] | None = None


class BridgeResponse(msgspec.Struct, frozen=True, kw_only=True):
    """An entry in the form of the bridge."""

    agent_id: str
    namespace: str
    key: str
    value: Any
    version: int
    updated_at: str
    expires_at: str | None


class Permissions(msgspec.Struct, frozen=True, kw_only=True):
    """The permissions of a namespace (RFC-0015 section 2.3)."""

    default: Access
    allow: list[Grant]


class PermissionsChange(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """The permissions to replace. Each given field replaces the whole stored field."""

    default: Access | None = None
    allow: list[Grant] | None = None


class NamespacePatchRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An update of the permissions of a namespace, or of its rule for writes, or of both.

    last_write_wins: whether a `PUT` without a precondition replaces an entry of this namespace.
        It concerns semantic and procedural memory. A replacement of shared state or of an entry of
        a governed kind always needs a precondition.
    """

    permissions: PermissionsChange | None = None
    last_write_wins: bool | None = None
    indexed_paths: Annotated[
        list[str] | None,
        Meta(
            description="Paths below `value` whose values are indexed for queries with `where`;"
            " they replace all earlier ones."
        ),
    ] = None


class NamespaceResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A namespace. `access` is the caller's own level; `last_write_wins` is shown where it is
    true."""

    namespace: str
    access: Access
    permissions: Permissions
    version: int
    created_at: str
    updated_at: str
    last_write_wins: bool = False
    indexed_paths: tuple[str, ...] = ()


class NamespaceBrief(msgspec.Struct, frozen=True, kw_only=True):
    """An element of the list of namespaces."""

    namespace: str
    access: Access


class NamespaceListResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The namespaces that the caller may read or administer."""

    namespaces: list[NamespaceBrief]
    total: int


_AGENTS = OperationGroup(name="Agents", not_found=())

AGENT_OPERATIONS: tuple[Operation, ...] = (
    _AGENTS(
        "whoami",
        "GET /agents/me",
        "Get the principal and the permissions of the key.",
        permission=None,
        reply=IdentityResponse,
    ),
    _AGENTS(
        "summarize_agent",
        "GET /agents/{agent_id}/memory/summary",
        "Get counts and sizes of an agent's memory.",
        source='RFC-0015 "Agent Memory Summary"',
        reply=SummaryResponse,
    ),
    _AGENTS(
        "list_agent_memory",
        "GET /agents/{agent_id}/memory",
        "List an agent's own entries as a bare list.",
        source="OpenIntent client",
        query=AgentMemoryQuery,
        reply=list[EntryResponse],
    ),
    _AGENTS(
        "set_agent_limits",
        "PUT /agents/{agent_id}/memory/limits",
        "Set an agent's episodic capacity and pinned namespaces.",
        source="RFC-0015 section 7",
        permission=Permission.TENANT_ADMIN,
        body=AgentLimitsRequest,
        reply=AgentLimitsResponse,
    ),
    _AGENTS(
        "put_bridged",
        "PUT /agents/{agent_id}/memory/{namespace}/{key}",
        "Create or replace working memory by name; the value may be any JSON.",
        source="OpenIntent MCP bridge",
        body=BridgeRequest,
        reply=BridgeResponse,
        raises=(MemoryCapacityError,),
    ),
    _AGENTS(
        "get_bridged",
        "GET /agents/{agent_id}/memory/{namespace}/{key}",
        "Get working memory by name, in the form of the bridge.",
        source="OpenIntent MCP bridge",
        reply=BridgeResponse,
        raises=(MemoryNotFoundError,),
    ),
    _AGENTS(
        "list_events",
        "GET /agents/{agent_id}/events",
        "Read an agent's event stream as a JSON page or as Server-Sent Events.",
        source="RFC-0015 section 5",
        query=EventQuery,
        reply=EventPageResponse,
        media="events",
    ),
)
