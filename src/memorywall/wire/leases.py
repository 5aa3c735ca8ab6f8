"""Bodies about leases and claims (RFC-0003; the claim pattern)."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from memorywall.records.lease import Lease, LeaseKind

Seconds = Annotated[int, Meta(ge=1, le=86_400)]
_SHARED = "shared/"


class LeaseBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A scope of an intent to be held, and for how long."""

    scope: str
    duration_seconds: Seconds = 300


class LeaseRenewal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long to hold on from now."""

    duration_seconds: Seconds = 300


class LeaseView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A lease over a scope of an intent, or over a task of it."""

    id: str
    intent_id: str
    agent_id: str
    scope: str
    task_id: str | None = None
    status: str
    fencing_token: int
    created_at: str
    expires_at: str


class LeaseList(msgspec.Struct, frozen=True, kw_only=True):
    """The live leases of an intent."""

    leases: list[LeaseView]


class ClaimBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A key to be claimed. `scope` is `global`, `agent`, or `team:` and a team's name."""

    key: str
    scope: str = "global"
    ttl_seconds: Seconds = 300
    purpose: str | None = None


class ClaimRenewal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long to hold a claim from now."""

    ttl_seconds: Seconds = 300


class ClaimView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A claim; `fencing_token` goes with every write made under it."""

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
    """Which live claims to list: those in a scope, or those of an agent, by default the caller."""

    scope: str | None = None
    agent_id: str | None = None


class ClaimList(msgspec.Struct, frozen=True, kw_only=True):
    """Live claims, oldest first."""

    claims: list[ClaimView]


def lease_view(lease: Lease) -> LeaseView:
    """The wire form of a lease over something of an intent."""
    return LeaseView(
        id=lease.id,
        intent_id=lease.place,
        agent_id=lease.holder,
        scope=lease.name or lease.kind,
        task_id=lease.name if lease.kind is LeaseKind.TASK else None,
        status="active",
        fencing_token=lease.token,
        created_at=lease.acquired_at,
        expires_at=lease.expires_at,
    )


def claim_view(claim: Lease) -> ClaimView:
    """The wire form of a claim."""
    return ClaimView(
        id=claim.id,
        key=claim.name,
        scope=scope_name(claim.place),
        agent_id=claim.holder,
        fencing_token=claim.token,
        purpose=claim.purpose,
        acquired_at=claim.acquired_at,
        renewed_at=claim.renewed_at,
        expires_at=claim.expires_at,
    )


def held_view(lease: Lease) -> LeaseView | ClaimView:
    """The wire form of any lease."""
    return claim_view(lease) if lease.kind is LeaseKind.CLAIM else lease_view(lease)


def scope_namespace(scope: str, agent: str) -> str:
    """The namespace of shared state that a scope's name stands for; not checked."""
    if scope == "agent":
        return f"{_SHARED}agent/{agent}"
    return _SHARED + scope.replace(":", "/", 1)


def scope_name(namespace: str) -> str:
    """The name of the scope that a namespace of shared state is."""
    name = namespace.removeprefix(_SHARED)
    return "agent" if name.startswith("agent/") else name.replace("/", ":", 1)
