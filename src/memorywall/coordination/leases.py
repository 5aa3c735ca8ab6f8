"""Taking, renewing and giving back a lease, whatever it is over (RFC-0003; the claim pattern)."""

from __future__ import annotations

from datetime import timedelta

from memorywall.records.clock import after, instant_to_milliseconds
from memorywall.records.errors import FencedError, HeldError, ResourceNotFoundError
from memorywall.records.event import WorkEvent
from memorywall.records.lease import Lease, LeaseKind
from memorywall.records.principal import Principal
from memorywall.storage.port import Transaction
from memorywall.wall.door import Door
from memorywall.wall.log import record_work

_HELD = "it is held by somebody until the time given in `existing_lease`"
_LOST = "this hold is over; what was done under it since may have been done by another as well"
_PREFIX = {
    LeaseKind.INTENT: "lse",
    LeaseKind.TASK: "lse",
    LeaseKind.COORDINATOR: "coord",
    LeaseKind.CLAIM: "clm",
}


async def take(
    door: Door,
    transaction: Transaction,
    tenant: str,
    holder: str,
    kind: LeaseKind,
    place: str,
    name: str,
    *,
    until: str,
    now: str,
    purpose: str | None = None,
) -> Lease:
    """Takes a lease for `holder`. Raises HeldError while anybody holds it, the holder too: what a
    second process of the same agent took over could not be fenced off from the first."""
    lease = Lease(
        tenant=tenant,
        id=door.ids.next(_PREFIX[kind]),
        kind=kind,
        place=place,
        name=name,
        holder=holder,
        purpose=purpose,
        acquired_at=now,
        renewed_at=now,
        expires_at=until,
    )
    before = await transaction.leases.current(tenant, kind, place, name)
    taken = await transaction.leases.take(lease, now)
    if taken is None:
        raise HeldError(_HELD, existing_lease=before)
    if before is not None:
        # Its time was over and nobody had come by to say so.
        await record_lapse(transaction, before, now)
    return taken


async def renew(
    transaction: Transaction, principal: Principal, token: int, *, until: str, now: str
) -> Lease:
    """Lets what the principal holds last until `until`. Raises FencedError when it is held no
    more, however lately it was."""
    renewed = await transaction.leases.extend(principal.tenant, token, principal.id, until, now)
    if renewed is None:
        raise FencedError(_LOST)
    return renewed


async def known_lease(
    transaction: Transaction, tenant: str, lease_id: str, kind: LeaseKind
) -> Lease:
    """The lease with this id. Raises ResourceNotFoundError, also for one that has been ended."""
    lease = await transaction.leases.get(tenant, lease_id)
    if lease is None or lease.kind is not kind:
        raise ResourceNotFoundError("there is no such hold, or it has ended")
    return lease


async def record_lapse(transaction: Transaction, lease: Lease, at: str) -> None:
    """Writes to the log that a hold has ended by itself."""
    if lease.kind is LeaseKind.CLAIM:
        await record_claim(transaction, WorkEvent.CLAIM_EXPIRED, lease, by=None, at=at)
        return
    kind = WorkEvent.LEASE_RELEASED
    if lease.kind is LeaseKind.COORDINATOR:
        kind = WorkEvent.COORDINATOR_UNRESPONSIVE
    await record_lease(transaction, kind, lease, by=None, at=at, reason="expired")


async def record_claim(
    transaction: Transaction, kind: WorkEvent, claim: Lease, *, by: Principal | None, at: str
) -> None:
    """Writes to its holder's stream what became of a claim."""
    await record_work(
        transaction,
        kind,
        tenant=claim.tenant,
        by=by,
        at=at,
        agent=claim.holder,
        data={
            "claim_id": claim.id,
            "scope": claim.place,
            "key": claim.name,
            "fencing_token": claim.token,
            "expires_at": claim.expires_at,
        },
    )


async def record_lease(
    transaction: Transaction,
    kind: WorkEvent,
    lease: Lease,
    *,
    by: Principal | None,
    at: str,
    reason: str | None = None,
) -> None:
    """Writes to the intent's log what became of a lease over it, a task of it or a scope in it."""
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
    await record_work(
        transaction,
        kind,
        tenant=lease.tenant,
        by=by,
        at=at,
        intent_id=lease.place,
        task_id=task_id,
        agent=lease.holder,
        data=data,
    )


def end_of(now: str, seconds: int) -> str:
    """The instant `seconds` after `now`."""
    return after(instant_to_milliseconds(now), timedelta(seconds=seconds))
