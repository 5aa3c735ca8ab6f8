"""Acquiring, renewing and ending leases of every kind (RFC-0003; the claim pattern)."""

from __future__ import annotations

from datetime import timedelta

from memorywall.records.clock import after, instant_to_milliseconds
from memorywall.records.errors import FencedError, LeaseHeldError, ResourceNotFoundError
from memorywall.records.event import WorkEventType
from memorywall.records.lease import Lease, LeaseKind
from memorywall.service.requests.event_log import append_work_event
from memorywall.service.requests.operation_context import OperationContext

_HELD = "another client has the lease until the time in `existing_lease`"
_LOST = "this lease is not live; another client may have done the same work since"
_PREFIX = {
    LeaseKind.INTENT: "lse",
    LeaseKind.TASK: "lse",
    LeaseKind.COORDINATOR: "coord",
    LeaseKind.CLAIM: "clm",
}


async def acquire_lease(
    context: OperationContext,
    holder: str,
    kind: LeaseKind,
    parent: str,
    name: str,
    *,
    until: str,
    purpose: str | None = None,
) -> Lease:
    """Acquires a lease for `holder`.

    parent, name: see `LeaseKind`
    until: the instant of expiry in the stored form
    Raises LeaseHeldError while the lease is live, also for its own holder: a second process of the
    same agent could not be fenced from the first process.
    """
    lease = Lease(
        tenant=context.tenant,
        id=context.service.ids.next(_PREFIX[kind]),
        kind=kind,
        parent=parent,
        name=name,
        holder=holder,
        purpose=purpose,
        acquired_at=context.now,
        renewed_at=context.now,
        expires_at=until,
    )
    before = await context.transaction.leases.current(kind, parent, name)
    acquired = await context.transaction.leases.acquire(lease, context.now)
    if acquired is None:
        raise LeaseHeldError(_HELD, existing_lease=before)
    if before is not None:
        # The lease had expired, and no job had recorded that yet.
        await record_expiry(context, before)
    return acquired


async def renew(context: OperationContext, token: int, *, until: str) -> Lease:
    """Renews a lease of the principal until `until`, an instant in the stored form. Raises
    FencedError if the lease is not live."""
    renewed = await context.transaction.leases.extend(
        token, context.principal.id, until, context.now
    )
    if renewed is None:
        raise FencedError(_LOST)
    return renewed


async def known_lease(context: OperationContext, lease_id: str, kind: LeaseKind) -> Lease:
    """The lease with this id. Raises ResourceNotFoundError, also for an ended lease."""
    lease = await context.transaction.leases.get(lease_id)
    if lease is None or lease.kind is not kind:
        raise ResourceNotFoundError("lease not found, or it has ended")
    return lease


async def record_expiry(context: OperationContext, lease: Lease) -> None:
    """Appends an event about the expiry of a lease."""
    if lease.kind is LeaseKind.CLAIM:
        await record_claim(context, WorkEventType.CLAIM_EXPIRED, lease, by_system=True)
        return
    kind = WorkEventType.LEASE_RELEASED
    if lease.kind is LeaseKind.COORDINATOR:
        kind = WorkEventType.COORDINATOR_UNRESPONSIVE
    await record_lease(context, kind, lease, reason="expired", by_system=True)


async def record_claim(
    context: OperationContext, kind: WorkEventType, claim: Lease, *, by_system: bool = False
) -> None:
    """Appends an event about a claim to the stream of its holder."""
    await append_work_event(
        context,
        kind,
        agent=claim.holder,
        by_system=by_system,
        data={
            "claim_id": claim.id,
            "scope": claim.parent,
            "key": claim.name,
            "fencing_token": claim.token,
            "expires_at": claim.expires_at,
        },
    )


async def record_lease(
    context: OperationContext,
    kind: WorkEventType,
    lease: Lease,
    *,
    reason: str | None = None,
    by_system: bool = False,
) -> None:
    """Appends an event about a lease on a scope, a task or the coordination of an intent to the
    intent's log."""
    task_id = lease.name if lease.kind is LeaseKind.TASK else None
    data = {
        "lease_id": lease.id,
        "kind": lease.kind,
        "scope": lease.name,
        "fencing_token": lease.token,
        "expires_at": lease.expires_at,
    }
    if task_id is not None:
        data["task_id"] = task_id
    if reason is not None:
        data["reason"] = reason
    await append_work_event(
        context,
        kind,
        intent_id=lease.parent,
        task_id=task_id,
        agent=lease.holder,
        data=data,
        by_system=by_system,
    )


def expiry_after(now: str, seconds: int) -> str:
    """The instant `seconds` after `now`."""
    return after(instant_to_milliseconds(now), timedelta(seconds=seconds))
