"""The server: responses, operations and problem documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from memorywall.records.copier import copier
from memorywall.records.entry import VALUE_LIMIT
from memorywall.records.errors import MemorywallError
from memorywall.records.filter import LARGEST_PAGE
from memorywall.records.principal import Permission
from memorywall.records.recall import LONGEST_QUERY, MOST_HITS
from memorywall.records.tier import Tier
from memorywall.records.usage import NearlyFullMemory, Usage
from memorywall.wire.entries import LARGEST_BATCH
from memorywall.wire.jobs import JobResponse
from memorywall.wire.operation import Operation
from memorywall.wire.operation_group import OperationGroup

PROTOCOL_VERSION = "0.17"


class StatusResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The status of the server."""

    status: str


class EmbeddingResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The state of embedding. `model` is null without an embedder. `backlog` is the embedding lag:
    the number of changes that are not embedded yet."""

    model: str | None
    backlog: int


class ReadinessResponse(StatusResponse, frozen=True, kw_only=True):
    """The status of the server, and the state of its background work. `status` is `ready`, and
    `full` in `get_status` while writes are refused because the disk is full."""

    embedding: EmbeddingResponse


class NearlyFullResponse(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's memory of a tier that is at least 90 % full. `capacity` is in entries."""

    agent_id: str
    entries: int
    capacity: int


class TierUsageResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The usage of a tier of the tenant. Expired entries count until they are swept. `bytes` is
    the size of the JSON texts of the values. `nearly_full` names the agents whose memory of a tier
    with a capacity of agents is nearly full, the fullest first, at most 100."""

    memory_type: Tier
    entries: int
    bytes: int
    nearly_full: list[NearlyFullResponse] = []


class StoreResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The database behind the server: its engine, the version of the engine, and the number of the
    last migration of the schema."""

    engine: str
    version: str
    schema: int


_nearly_full_view = copier(NearlyFullMemory, NearlyFullResponse, agent_id="agent")


def tier_usage_views(
    usage: Mapping[Tier, Usage], nearly_full: Mapping[Tier, Sequence[NearlyFullMemory]]
) -> list[TierUsageResponse]:
    """The wire form of a tenant's usage, in the order of the tiers, empty tiers too."""
    empty = Usage()
    return [
        TierUsageResponse(
            memory_type=tier,
            entries=usage.get(tier, empty).entries,
            bytes=usage.get(tier, empty).bytes,
            nearly_full=[_nearly_full_view(one) for one in nearly_full.get(tier, ())],
        )
        for tier in Tier
    ]


class TenantStatusResponse(ReadinessResponse, frozen=True, kw_only=True):
    """The state of the server and of the caller's tenant. `embedding` is that of all tenants.
    `context_pollution` is the share of the tokens of entries in contexts of sessions that feedback
    did not name as used; null without feedback."""

    version: str
    tenant: str
    store: StoreResponse
    tiers: list[TierUsageResponse]
    jobs: list[JobResponse]
    context_pollution: float | None = None


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of the server. Requests beyond them are refused."""

    value_bytes: int = VALUE_LIMIT
    page_entries: int = LARGEST_PAGE
    batch_entries: int = LARGEST_BATCH
    query_characters: int = LONGEST_QUERY
    search_hits: int = MOST_HITS
    episodic_capacity: int
    working_capacity_per_task: int


class CapabilitiesResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The features and limits of the server."""

    name: str = "memorywall"
    version: str
    protocol_version: str = PROTOCOL_VERSION
    rfcs: list[str]
    capabilities: list[str]
    memory_types: list[Tier]
    eviction_policies: list[str]
    extensions: dict[str, str]
    limits: Limits


class DiscoveryResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The document at /.well-known/openintent.json."""

    name: str = "memorywall"
    version: str
    protocol_version: str = PROTOCOL_VERSION
    api_base: str = "/api/v1"
    rfcs: list[str]
    capabilities: list[str]
    openapi: str = "/openapi.json"
    documentation: str = "/docs"


class ProblemDetails(msgspec.Struct, frozen=True, kw_only=True):
    """A problem document (RFC 9457) with the members that clients of RFC-0015 read. `error` is the
    machine-readable code. `retry_after` is in seconds. `request_id` is the id in the header
    `X-Request-ID` of the reply."""

    type: str
    title: str
    status: int
    detail: str
    error: str
    message: str
    index: int | None = None
    current_version: int | None = None
    current: dict[str, Any] | None = None
    current_count: int | None = None
    max_capacity: int | None = None
    existing_lease: dict[str, Any] | None = None
    retry_after: float | None = None
    request_id: str | None = None
    schema: str | None = None
    schema_version: str | None = None
    pointer: str | None = None
    rule: str | None = None


def problem(error: MemorywallError) -> dict[str, Any]:
    """The problem document of an error, without absent members."""
    return {
        "type": "urn:memorywall:problem:" + error.code.lower().replace("_", "-"),
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
        "error": error.code,
        "message": error.detail,
        **error.fields(),
    }


_SERVICE = OperationGroup(name="Service", prefix="", read=Permission.TENANT_ADMIN)

SERVICE_OPERATIONS: tuple[Operation, ...] = (
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
        "Report whether the server can read its store, open sealed values and write.",
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
