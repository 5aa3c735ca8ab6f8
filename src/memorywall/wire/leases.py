"""Leases and claims (RFC-0003; the claim pattern): requests, responses, operations on claims."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from memorywall.records.copier import copier
from memorywall.records.errors import (
    FencedError,
    LeaseHeldError,
    MemoryCapacityError,
)
from memorywall.records.lease import Lease, LeaseKind
from memorywall.wire.operation import Operation
from memorywall.wire.operation_group import OperationGroup

Seconds = Annotated[int, Meta(ge=1, le=86_400)]
_SHARED = "shared/"


class LeaseRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A lease on a scope of an intent.

    duration_seconds: the time to live, in seconds
    """

    scope: str
    duration_seconds: Seconds = 300


class LeaseRenewalRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A renewal of a lease.

    duration_seconds: the time to live from now, in seconds
    """

    duration_seconds: Seconds = 300


class LeaseResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A lease on a scope of an intent, or on a task of the intent."""

    id: str
    intent_id: str
    agent_id: str
    scope: str
    task_id: str | None = None
    status: str
    fencing_token: int
    created_at: str
    expires_at: str


class LeaseListResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The live leases of an intent."""

    leases: list[LeaseResponse]


class ClaimRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A claim of a key of shared state.

    scope: `global`, `agent`, or `team:` and the name of a team
    ttl_seconds: the time to live, in seconds
    purpose: a text for other agents
    """

    key: str
    scope: str = "global"
    ttl_seconds: Seconds = 300
    purpose: str | None = None


class ClaimRenewalRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A renewal of a claim.

    ttl_seconds: the time to live from now, in seconds
    """

    ttl_seconds: Seconds = 300


class ClaimResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A claim. Every write under the claim must carry its `fencing_token`."""

    id: str
    key: str
    scope: str
    agent_id: str
    fencing_token: int
    purpose: str | None = None
    acquired_at: str
    renewed_at: str
    expires_at: str


class ClaimQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Selects live claims: those in a scope, or those of an agent, by default the caller."""

    scope: str | None = None
    agent_id: str | None = None


class ClaimListResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Live claims, oldest first."""

    claims: list[ClaimResponse]


lease_view = copier(
    Lease,
    LeaseResponse,
    intent_id="parent",
    agent_id="holder",
    scope=lambda lease: lease.name or lease.kind,
    task_id=lambda lease: lease.name if lease.kind is LeaseKind.TASK else None,
    status=lambda _: "active",
    fencing_token=lambda lease: lease.token,
    created_at="acquired_at",
)
"""The wire form of a lease that belongs to an intent."""


claim_view = copier(
    Lease,
    ClaimResponse,
    key="name",
    scope=lambda claim: scope_name(claim.parent),
    agent_id="holder",
    fencing_token=lambda claim: claim.token,
)
"""The wire form of a claim."""


def held_lease_view(lease: Lease) -> LeaseResponse | ClaimResponse:
    """The wire form of any lease."""
    return claim_view(lease) if lease.kind is LeaseKind.CLAIM else lease_view(lease)


def scope_namespace(scope: str, agent: str) -> str:
    """The namespace of shared state for the name of a scope, without validation.

    scope: `global`, `agent` or `team:<team>`
    agent: the agent that the scope `agent` belongs to
    """
    if scope == "agent":
        return f"{_SHARED}agent/{agent}"
    return _SHARED + scope.replace(":", "/", 1)


def scope_name(namespace: str) -> str:
    """The name of the scope for a namespace of shared state; inverse of `scope_namespace`."""
    name = namespace.removeprefix(_SHARED)
    return "agent" if name.startswith("agent/") else name.replace("/", ":", 1)


_CLAIMS = OperationGroup(name="Claims", source="claim pattern")

CLAIM_OPERATIONS: tuple[Operation, ...] = (
    _CLAIMS(
        "acquire_claim",
        "POST /claims",
        "Claim a key of shared state for a limited time.",
        body=ClaimRequest,
        reply=ClaimResponse,
        status=201,
        raises=(LeaseHeldError, MemoryCapacityError),
    ),
    _CLAIMS(
        "list_claims", "GET /claims", "List live claims.", query=ClaimQuery, reply=ClaimListResponse
    ),
    _CLAIMS("get_claim", "GET /claims/{claim_id}", "Get a claim.", reply=ClaimResponse),
    _CLAIMS(
        "renew_claim",
        "PATCH /claims/{claim_id}",
        "Renew a claim.",
        body=ClaimRenewalRequest,
        reply=ClaimResponse,
        raises=(FencedError,),
    ),
    _CLAIMS("release_claim", "DELETE /claims/{claim_id}", "Release a claim."),
)
