"""Leases on scopes of an intent, such as "research" (RFC-0003)."""

from __future__ import annotations

from memorywall.coordination.access import load_authorized_intent
from memorywall.coordination.leases import (
    acquire_lease,
    expiry_after,
    known_lease,
    record_lease,
    renew,
)
from memorywall.records.decision import Verb
from memorywall.records.errors import MemoryAccessError, ResourceNotFoundError
from memorywall.records.event import WorkEventType
from memorywall.records.lease import Lease, LeaseKind
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.validation import check_name


async def acquire(context: OperationContext, intent_id: str, scope: str, seconds: int) -> Lease:
    """Acquires a lease on a scope of an intent that the caller may write to.

    seconds: the time to live

    Raises ValidationError and ResourceNotFoundError, MemoryAccessError, LeaseHeldError.
    """
    scope = check_name("scope", scope)
    await load_authorized_intent(context, Verb.CREATE, intent_id)
    lease = await acquire_lease(
        context,
        context.principal.id,
        LeaseKind.INTENT,
        intent_id,
        scope,
        until=expiry_after(context.now, seconds),
    )
    await record_lease(context, WorkEventType.LEASE_ACQUIRED, lease)
    return lease


async def list_leases(context: OperationContext, intent_id: str) -> list[Lease]:
    """The live leases on the scopes of an intent that the caller may read."""
    await load_authorized_intent(context, Verb.READ, intent_id)
    return await context.transaction.leases.list(LeaseKind.INTENT, intent_id, context.now)


async def extend(context: OperationContext, intent_id: str, lease_id: str, seconds: int) -> Lease:
    """Renews a lease of the caller for `seconds` from now. Raises FencedError if it is not live."""
    lease = await _own(context, intent_id, lease_id)
    return await renew(context, lease.token, until=expiry_after(context.now, seconds))


async def release(context: OperationContext, intent_id: str, lease_id: str) -> None:
    """Releases a lease of the caller."""
    lease = await _own(context, intent_id, lease_id)
    await context.transaction.leases.end(lease.token)
    await record_lease(context, WorkEventType.LEASE_RELEASED, lease)


async def _own(context: OperationContext, intent_id: str, lease_id: str) -> Lease:
    await load_authorized_intent(context, Verb.UPDATE, intent_id)
    lease = await known_lease(context, lease_id, LeaseKind.INTENT)
    if lease.parent != intent_id:
        raise ResourceNotFoundError("the intent has no such lease")
    if lease.holder != context.principal.id:
        raise MemoryAccessError("only its holder can renew or release a lease")
    return lease
