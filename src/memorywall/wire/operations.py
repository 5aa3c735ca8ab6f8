"""The one table of operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from memorywall.records.draft import Change, Draft
from memorywall.records.errors import (
    AuthenticationError,
    EntryExistsError,
    IdempotencyConflictError,
    KeyUnavailableError,
    MemoryAccessError,
    MemoryCapacityError,
    MemoryConflictError,
    MemoryNotFoundError,
    MemorywallError,
    PreconditionError,
    ReplyErasedError,
    RequestError,
    StorageFullError,
    UnavailableError,
    ValidationError,
    ValueTooLargeError,
)
from memorywall.records.principal import Permission
from memorywall.wire.agents import (
    EventPage,
    EventQuery,
    Identity,
    NamespaceList,
    NamespacePatch,
    NamespaceView,
    SummaryView,
)
from memorywall.wire.entries import (
    AgentMemoryQuery,
    Batch,
    BatchReply,
    Deleted,
    EntryPage,
    EntryQuery,
    EntryView,
    ExportQuery,
)
from memorywall.wire.service import Capabilities, Discovery, Status

Media = Literal["json", "lines", "events"]
_ALWAYS = (RequestError, UnavailableError, KeyUnavailableError)
_AUTHENTICATED = (AuthenticationError, MemoryAccessError, ValidationError)
_WRITES = (ValidationError, ValueTooLargeError)
_REPEATABLE = (IdempotencyConflictError, ReplyErasedError)


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """One method on one path.

    name: names its handler, its OpenAPI operationId and its client method
    permission: what the key must have besides the tier's rule, where one is asked for
    public: whether it is answered without a key
    media: also the first thing offered; "events" can be had as JSON too
    if_match: whether the version in If-Match is required, may be sent, or means nothing here
    repeatable: whether an Idempotency-Key is heeded
    source: where the contract comes from
    """

    name: str
    method: str
    path: str
    group: str
    summary: str
    source: str
    permission: Permission | None = None
    public: bool = False
    query: type | None = None
    body: type | None = None
    reply: Any = None
    status: int = 200
    media: Media = "json"
    if_match: Literal["required", "optional", "none"] = "none"
    repeatable: bool = False
    raises: tuple[type[MemorywallError], ...] = ()

    @property
    def errors(self) -> tuple[type[MemorywallError], ...]:
        """Every error it can answer with."""
        every: list[type[MemorywallError]] = [*_ALWAYS, *self.raises]
        if not self.public:
            every.extend(_AUTHENTICATED)
        if self.method in ("POST", "PATCH", "DELETE"):
            every.append(StorageFullError)
        if self.body is not None:
            every.extend(_WRITES)
        if self.repeatable:
            every.extend(_REPEATABLE)
        if self.if_match != "none":
            every.extend((PreconditionError, MemoryConflictError))
        return tuple(dict.fromkeys(every))


_CRUD = 'RFC-0015 "Memory CRUD"'
_BATCH = 'RFC-0015 "Batch Operations"'
_NAMESPACES = 'RFC-0015 "Namespace Management"'

# Paths whose last part is a word come before those that take any id there.
OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="create_entry",
        method="POST",
        path="/api/v1/memory",
        group="Memory",
        summary="Create a memory entry.",
        source=_CRUD,
        permission=Permission.WRITE,
        body=Draft,
        reply=EntryView,
        status=201,
        repeatable=True,
        raises=(EntryExistsError, MemoryCapacityError),
    ),
    Operation(
        name="query_entries",
        method="GET",
        path="/api/v1/memory",
        group="Memory",
        summary="Query memory entries with filters, newest first.",
        source="RFC-0015 section 4",
        permission=Permission.READ,
        query=EntryQuery,
        reply=EntryPage,
    ),
    Operation(
        name="write_batch",
        method="POST",
        path="/api/v1/memory/batch",
        group="Memory",
        summary="Create or update several entries, all or none.",
        source=_BATCH,
        permission=Permission.WRITE,
        body=Batch,
        reply=BatchReply,
        repeatable=True,
        raises=(
            MemoryNotFoundError,
            MemoryConflictError,
            MemoryCapacityError,
            PreconditionError,
        ),
    ),
    Operation(
        name="delete_matching",
        method="DELETE",
        path="/api/v1/memory/batch",
        group="Memory",
        summary="Delete every entry that matches a filter; an empty filter is refused.",
        source=_BATCH,
        permission=Permission.WRITE,
        query=EntryQuery,
        reply=Deleted,
    ),
    Operation(
        name="export_entries",
        method="GET",
        path="/api/v1/memory/export",
        group="Memory",
        summary="Stream every matching entry as JSON Lines, newest first.",
        source="memorywall",
        permission=Permission.READ,
        query=ExportQuery,
        reply=EntryView,
        media="lines",
    ),
    Operation(
        name="list_namespaces",
        method="GET",
        path="/api/v1/memory/namespaces",
        group="Namespaces",
        summary="List the namespaces the caller has access to.",
        source=_NAMESPACES,
        permission=Permission.READ,
        reply=NamespaceList,
    ),
    Operation(
        name="get_namespace",
        method="GET",
        path="/api/v1/memory/namespaces/{namespace:path}",
        group="Namespaces",
        summary="Get a namespace and its permissions.",
        source=_NAMESPACES,
        permission=Permission.READ,
        reply=NamespaceView,
        raises=(MemoryNotFoundError,),
    ),
    Operation(
        name="set_namespace_permissions",
        method="PATCH",
        path="/api/v1/memory/namespaces/{namespace:path}",
        group="Namespaces",
        summary="Replace a namespace's permissions; a new one is founded.",
        source=_NAMESPACES,
        permission=Permission.ADMIN,
        body=NamespacePatch,
        reply=NamespaceView,
        if_match="optional",
    ),
    Operation(
        name="get_entry",
        method="GET",
        path="/api/v1/memory/{entry_id}",
        group="Memory",
        summary="Get one entry.",
        source=_CRUD,
        permission=Permission.READ,
        reply=EntryView,
        raises=(MemoryNotFoundError,),
    ),
    Operation(
        name="update_entry",
        method="PATCH",
        path="/api/v1/memory/{entry_id}",
        group="Memory",
        summary="Replace fields of an entry at the version sent as If-Match.",
        source="RFC-0015 section 3",
        permission=Permission.WRITE,
        body=Change,
        reply=EntryView,
        if_match="required",
        raises=(MemoryNotFoundError, MemoryCapacityError),
    ),
    Operation(
        name="delete_entry",
        method="DELETE",
        path="/api/v1/memory/{entry_id}",
        group="Memory",
        summary="Delete an entry at once and for good.",
        source=_CRUD,
        permission=Permission.WRITE,
        status=204,
        if_match="optional",
        raises=(MemoryNotFoundError,),
    ),
    Operation(
        name="whoami",
        method="GET",
        path="/api/v1/agents/me",
        group="Agents",
        summary="Whom the key speaks for and what it may do.",
        source="memorywall",
        reply=Identity,
    ),
    Operation(
        name="summarize_agent",
        method="GET",
        path="/api/v1/agents/{agent_id}/memory/summary",
        group="Agents",
        summary="How much an agent remembers.",
        source='RFC-0015 "Agent Memory Summary"',
        permission=Permission.READ,
        reply=SummaryView,
    ),
    Operation(
        name="list_agent_memory",
        method="GET",
        path="/api/v1/agents/{agent_id}/memory",
        group="Agents",
        summary="An agent's own entries as a bare list.",
        source="OpenIntent client",
        permission=Permission.READ,
        query=AgentMemoryQuery,
        reply=list[EntryView],
    ),
    Operation(
        name="list_events",
        method="GET",
        path="/api/v1/agents/{agent_id}/events",
        group="Agents",
        summary="An agent's event stream: a page of JSON, or Server-Sent Events without end.",
        source="RFC-0015 section 5",
        permission=Permission.READ,
        query=EventQuery,
        reply=EventPage,
        media="events",
    ),
    Operation(
        name="get_capabilities",
        method="GET",
        path="/api/v1/capabilities",
        group="Service",
        summary="What this server can do.",
        source="RFC-0015 section 4.3",
        public=True,
        reply=Capabilities,
    ),
    Operation(
        name="discover",
        method="GET",
        path="/.well-known/openintent.json",
        group="Service",
        summary="The OpenIntent discovery document.",
        source="OpenIntent client",
        public=True,
        reply=Discovery,
    ),
    Operation(
        name="health",
        method="GET",
        path="/health",
        group="Service",
        summary="Whether the server is alive.",
        source="memorywall",
        public=True,
        reply=Status,
    ),
    Operation(
        name="ready",
        method="GET",
        path="/ready",
        group="Service",
        summary="Whether the server can read its store and open what is sealed.",
        source="memorywall",
        public=True,
        reply=Status,
    ),
)
