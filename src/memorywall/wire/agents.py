"""Agents, events and namespaces (RFC-0015 sections 2.3 and 5): requests, responses, operations."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from memorywall.records.errors import MemoryCapacityError, MemoryNotFoundError
from memorywall.records.principal import Permission, PrincipalKind
from memorywall.wire.entries import AgentMemoryQuery, EntryResponse
from memorywall.wire.events import EventPageResponse, EventQuery
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
