"""Responses about kinds and tiers, and their operations."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from memorywall.records.principal import Permission
from memorywall.records.tier import (
    Admission,
    CapacityScope,
    Eviction,
    Isolation,
    Lifetime,
    ReadAccess,
    Tier,
)
from memorywall.wire.operation import Operation
from memorywall.wire.operation_group import OperationGroup

MOST_EVICTED = 10_000


class KindResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of value.

    `memory_type` is the tier of its entries, null for any. Entries of a kind that is not `listed`
    appear only if a request names the kind. `governed_by` names the only operations that create and
    change entries of the kind.
    """

    kind: str
    version: int
    description: str
    memory_type: Tier | None
    listed: bool
    governed_by: tuple[str, ...]


class SchemaListResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Every kind that this server supports."""

    schemas: list[KindResponse]


class SchemaResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A kind, and the JSON Schema (draft 2020-12) of its value."""

    kind: KindResponse
    schema: dict[str, Any]


class TierResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A tier (memory wall 11.1.3) with its properties in the tenant.

    `capacity` applies to each group that `capacity_scope` names. Null means no limit.
    """

    memory_type: Tier
    capacity: int | None
    capacity_scope: CapacityScope
    default_ttl: str | None
    admission: Admission
    eviction: Eviction
    access: ReadAccess
    lifetime: Lifetime
    versioned: bool
    isolation: Isolation


class TierListResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The tiers, from the narrowest to the widest."""

    tiers: list[TierResponse]


class TierLimitsRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The limits of a tier in the tenant. A field that is omitted or null has the server's value.

    A value that would widen the tier is refused with 422.
    """

    capacity: Annotated[
        Annotated[int, Meta(ge=0, le=1_000_000_000)] | None,
        Meta(description="Entries; at most the capacity of the server."),
    ] = None
    default_ttl: Annotated[
        str | None,
        Meta(description="The `ttl` of entries without one, such as `30d` or `duration:P30D`."),
    ] = None
    eviction: Annotated[
        Eviction | None, Meta(description="The eviction policy of a full tier.")
    ] = None
    admission: Annotated[
        Literal["promoted"] | None,
        Meta(
            description="`promoted` closes the tier: what an agent writes itself waits as a"
            " proposal, and promotions and people store at once."
        ),
    ] = None


class EvictRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The target of an eviction."""

    target: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000_000_000,
            description="The number of entries to leave, of those that count toward the capacity.",
        ),
    ]
    agent_id: Annotated[
        str | None,
        Meta(description="The owner of the entries; required for tiers isolated by agent."),
    ] = None
    task_id: Annotated[
        str | None,
        Meta(
            description="Only those that are bound to this task, and `target` counts those of the"
            " task; for tiers with a capacity for each task."
        ),
    ] = None
    namespace: Annotated[
        str | None,
        Meta(description="The namespace of the entries; required for tiers isolated by namespace."),
    ] = None
    policy: Annotated[
        Eviction | None,
        Meta(
            description="The order of eviction; default: the policy of the tier. Required, and not"
            " `refuse`, for a tier that refuses."
        ),
    ] = None
    dry_run: Annotated[
        bool, Meta(description="Return the entries that would be evicted, and evict nothing.")
    ] = False


class EvictResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The evicted entries, or the entries that would be evicted: their number and their ids, in the
    order of eviction.

    `remaining` counts the entries that are left. It is above the target if the others are pinned,
    claimed, of a governed kind or another agent's.
    """

    evicted: int
    entry_ids: list[str]
    remaining: int
    dry_run: bool


_KINDS = OperationGroup(name="Kinds", source="memory wall 11.1.5")
_TIERS = OperationGroup(name="Tiers", source="memory wall 11.1.3", write=Permission.TENANT_ADMIN)

KIND_OPERATIONS: tuple[Operation, ...] = (
    _KINDS("list_schemas", "GET /schemas", "List the kinds of values.", reply=SchemaListResponse),
    _KINDS(
        "get_schema", "GET /schemas/{kind}", "Get the JSON Schema of a kind.", reply=SchemaResponse
    ),
    _TIERS(
        "list_tiers",
        "GET /tiers",
        "List the tiers and the rules of each for the tenant.",
        reply=TierListResponse,
    ),
    _TIERS(
        "narrow_tier",
        "PUT /tiers/{memory_type}",
        "Narrow a tier for the tenant: capacity, default ttl and eviction.",
        body=TierLimitsRequest,
        reply=TierResponse,
    ),
    _TIERS(
        "evict_entries",
        "POST /tiers/{memory_type}/evict",
        "Evict entries until a target number is left, for administrators.",
        source="memory wall 11.1.5",
        body=EvictRequest,
        reply=EvictResponse,
    ),
)
