"""Fencing: what is written under a lease is written by its holder, while it lasts, or not at all.

The token is checked in the transaction of the write, by a statement that keeps the lease as it is
until that transaction ends. However long a writer was away, what it sends afterwards is refused.
"""

from __future__ import annotations

from memorywall.records.entry import Entry
from memorywall.records.errors import FencedError
from memorywall.records.lease import Lease, LeaseKind
from memorywall.records.principal import Principal
from memorywall.records.tier import Tier
from memorywall.storage.port import Transaction

_OVER = "the fencing token is of no hold of this agent that still lasts; stop, and take it anew"
_TASK = "this task is worked on under a fencing token; send it as `Fencing-Token`"
_CLAIM = "this key is claimed; send the claim's fencing token as `Fencing-Token`"


async def held_lease(transaction: Transaction, principal: Principal, now: str) -> Lease | None:
    """The lease the request says it is made under; None if it names none. Raises FencedError."""
    if principal.fencing_token is None:
        return None
    lease = await transaction.leases.held(
        principal.tenant, principal.fencing_token, principal.id, now
    )
    if lease is None:
        raise FencedError(_OVER)
    return lease


async def guard(transaction: Transaction, lease: Lease | None, entry: Entry, now: str) -> None:
    """Raises FencedError unless `entry` may be written under this lease, or under none."""
    token = None if lease is None else lease.token
    scope = entry.scope
    if entry.tier is Tier.WORKING and scope.task_id is not None and scope.intent_id is not None:
        await guard_task(transaction, entry.tenant, scope.intent_id, scope.task_id, token)
    elif entry.tier is Tier.SHARED:
        claim = await transaction.leases.current(
            entry.tenant, LeaseKind.CLAIM, entry.namespace, entry.key
        )
        if claim is not None and claim.is_live(now) and claim.token != token:
            raise FencedError(_CLAIM)


async def guard_task(
    transaction: Transaction, tenant: str, intent_id: str, task_id: str, token: int | None
) -> None:
    """Raises FencedError when the task is under a lease and `token` is not that lease's. A lease
    that is over guards the task still, until it is ended or taken anew."""
    lease = await transaction.leases.current(tenant, LeaseKind.TASK, intent_id, task_id)
    if lease is not None and lease.token != token:
        raise FencedError(_TASK)
