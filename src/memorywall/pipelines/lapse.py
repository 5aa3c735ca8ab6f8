"""Ends the leases whose time is over, and says so.

Nothing waits for this: a lease that is over holds nothing. It puts the task of an agent that has
died back, so that somebody sees it, and tells of claims that have lapsed.
"""

from __future__ import annotations

from memorywall.coordination.assignment import put_back
from memorywall.coordination.leases import record_lapse
from memorywall.records.lease import Lease, LeaseKind
from memorywall.storage.port import Transaction
from memorywall.wall.administration import list_tenants
from memorywall.wall.door import Door

_CHUNK = 100


async def end_lapsed(door: Door) -> int:
    """One round over all tenants, in small transactions. Returns how many leases were ended."""
    ended = 0
    for tenant in await list_tenants(door):
        while True:
            some = await _end_some(door, tenant)
            ended += some
            if some < _CHUNK:
                break
    return ended


async def _end_some(door: Door, tenant: str) -> int:
    now = door.now()

    async def look(transaction: Transaction) -> bool:
        return bool(await transaction.leases.lapsed(tenant, now, 1))

    async def script(transaction: Transaction) -> int:
        lapsed = await transaction.leases.lapsed(tenant, now, _CHUNK)
        for lease in lapsed:
            await _end(door, transaction, lease, now)
        return len(lapsed)

    return (
        await door.store.write(tenant, script, long=True)
        if await door.store.read(tenant, look)
        else 0
    )


async def _end(door: Door, transaction: Transaction, lease: Lease, now: str) -> None:
    await record_lapse(transaction, lease, now)
    task = None
    if lease.kind is LeaseKind.TASK:
        task = await transaction.tasks.get(lease.tenant, lease.name)
    if task is None:
        await transaction.leases.end(lease.tenant, lease.token)
    else:
        await put_back(door, transaction, None, task, now)
