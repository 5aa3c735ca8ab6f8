"""Leases over a scope of an intent, such as "research" (RFC-0003)."""

from __future__ import annotations

from memorywall.coordination.access import enter_intent
from memorywall.coordination.leases import end_of, known_lease, record_lease, renew, take
from memorywall.records.decision import Verb
from memorywall.records.errors import MemoryAccessError, ResourceNotFoundError
from memorywall.records.event import WorkEvent
from memorywall.records.lease import Lease, LeaseKind
from memorywall.records.principal import Principal
from memorywall.storage.port import Script, Transaction
from memorywall.wall.door import Door
from memorywall.wall.limits import check_name


async def acquire(
    door: Door, principal: Principal, intent_id: str, scope: str, seconds: int
) -> Script[Lease]:
    """A script that takes a scope of an intent the caller takes part in.

    Raises ValidationError; when run ResourceNotFoundError, MemoryAccessError, HeldError.
    """
    check_name("scope", scope)
    now = door.now()

    async def script(transaction: Transaction) -> Lease:
        await enter_intent(transaction, principal, Verb.CREATE, intent_id, now)
        lease = await take(
            door,
            transaction,
            principal.tenant,
            principal.id,
            LeaseKind.INTENT,
            intent_id,
            scope,
            until=end_of(now, seconds),
            now=now,
        )
        await record_lease(transaction, WorkEvent.LEASE_ACQUIRED, lease, by=principal, at=now)
        return lease

    return script


async def list_leases(door: Door, principal: Principal, intent_id: str) -> list[Lease]:
    """The live leases over the scopes of an intent the caller may read."""
    now = door.now()

    async def script(transaction: Transaction) -> list[Lease]:
        await enter_intent(transaction, principal, Verb.READ, intent_id, now)
        return await transaction.leases.list(principal.tenant, LeaseKind.INTENT, intent_id, now)

    return await door.store.read(principal.tenant, script)


async def extend(
    door: Door, principal: Principal, intent_id: str, lease_id: str, seconds: int
) -> Script[Lease]:
    """A script that renews a lease of the caller's. Raises when run FencedError when it is over."""
    now = door.now()

    async def script(transaction: Transaction) -> Lease:
        lease = await _own(transaction, principal, intent_id, lease_id, now)
        return await renew(transaction, principal, lease.token, until=end_of(now, seconds), now=now)

    return script


async def release(door: Door, principal: Principal, intent_id: str, lease_id: str) -> Script[None]:
    """A script that gives a lease of the caller's back."""
    now = door.now()

    async def script(transaction: Transaction) -> None:
        lease = await _own(transaction, principal, intent_id, lease_id, now)
        await transaction.leases.end(lease.tenant, lease.token)
        await record_lease(transaction, WorkEvent.LEASE_RELEASED, lease, by=principal, at=now)

    return script


async def _own(
    transaction: Transaction, principal: Principal, intent_id: str, lease_id: str, now: str
) -> Lease:
    await enter_intent(transaction, principal, Verb.UPDATE, intent_id, now)
    lease = await known_lease(transaction, principal.tenant, lease_id, LeaseKind.INTENT)
    if lease.place != intent_id:
        raise ResourceNotFoundError("there is no such lease of this intent")
    if lease.holder != principal.id:
        raise MemoryAccessError("only its holder can renew or release a lease")
    return lease
