"""Operations on agents and on the server."""

from __future__ import annotations

from memorywall.records.errors import MemoryCapacityError, MemoryNotFoundError
from memorywall.records.principal import Permission
from memorywall.wire.agents import (
    AgentLimitsRequest,
    AgentLimitsResponse,
    BridgeRequest,
    BridgeResponse,
    EventPageResponse,
    EventQuery,
    IdentityResponse,
    SummaryResponse,
)
from memorywall.wire.entries import AgentMemoryQuery, EntryResponse
from memorywall.wire.operation import Operation
from memorywall.wire.operation_group import OperationGroup
from memorywall.wire.service import (
    CapabilitiesResponse,
    DiscoveryResponse,
    ReadinessResponse,
    StatusResponse,
    TenantStatusResponse,
)

_AGENTS = OperationGroup(name="Agents", not_found=())
_SERVICE = OperationGroup(name="Service", prefix="", read=Permission.TENANT_ADMIN)

SERVICE_OPERATIONS: tuple[Operation, ...] = (
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
    _SERVICE(
        "get_capabilities",
        "GET /api/v1/capabilities",
        "Get the features and limits of the server.",
        source="RFC-0015 section 4.3",
        public=True,
        reply=CapabilitiesResponse,
    ),
    _SERVICE(
        "discover",
        "GET /.well-known/openintent.json",
        "Get the OpenIntent discovery document.",
        source="OpenIntent client",
        public=True,
        reply=DiscoveryResponse,
    ),
    _SERVICE(
        "health",
        "GET /health",
        "Report whether the server is alive.",
        public=True,
        reply=StatusResponse,
    ),
    _SERVICE(
        "ready",
        "GET /ready",
        "Report whether the server can read its store and open sealed values.",
        public=True,
        reply=ReadinessResponse,
    ),
    _SERVICE(
        "get_status",
        "GET /api/v1/status",
        "Get the state of the server: versions, entries by tier, background jobs.",
        reply=TenantStatusResponse,
    ),
    _SERVICE(
        "metrics",
        "GET /metrics",
        "Report metrics in Prometheus' text format.",
        public=True,
        media="text",
    ),
)
