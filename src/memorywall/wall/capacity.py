"""Room for one more entry: refuse or evict (RFC-0015 sections 2.2 and 9.4)."""

from __future__ import annotations

from memorywall.records.entry import Entry
from memorywall.records.errors import MemoryCapacityError
from memorywall.records.event import EventType
from memorywall.records.tier import Eviction
from memorywall.storage.port import Transaction
from memorywall.tiers import TIERS
from memorywall.wall.door import Door, end, is_over


async def episodic_capacity(door: Door, transaction: Transaction, tenant: str, agent: str) -> int:
    """How many episodic entries an agent may have: its own setting or the default."""
    own = await transaction.identities.capacity(tenant, agent)
    return door.settings.episodic_capacity if own is None else own


async def make_room(door: Door, transaction: Transaction, entry: Entry, now: str) -> None:
    """Makes sure `entry`, not yet stored, will fit. Raises MemoryCapacityError when it cannot."""
    if TIERS[entry.tier].eviction is Eviction.LEAST_RECENTLY_USED:
        await _evict(door, transaction, entry, now)
    else:
        await check_task(door, transaction, entry, now)


async def check_task(door: Door, transaction: Transaction, entry: Entry, now: str) -> None:
    """Makes sure that the task of `entry` takes one more. Raises MemoryCapacityError."""
    task_id = entry.scope.task_id
    if TIERS[entry.tier].counted_by != "task" or task_id is None:
        return
    capacity = door.settings.working_capacity_per_task
    count = await transaction.entries.count_task(entry.tenant, entry.tier, task_id, now)
    if count >= capacity:
        raise MemoryCapacityError(
            "this task's working memory is full; delete or consolidate entries",
            current_count=count,
            max_capacity=capacity,
        )


async def _evict(door: Door, transaction: Transaction, entry: Entry, now: str) -> None:
    tenant, owner, tier = entry.tenant, entry.owner, entry.tier
    capacity = await episodic_capacity(door, transaction, tenant, owner)
    usage = await transaction.entries.usage(tenant, tier, owner, now)
    excess = usage.entries + 1 - capacity
    if excess <= 0:
        return
    await door.accesses.fold(transaction, tenant, owner)
    while excess > 0:
        victim = await transaction.entries.least_recently_used(tenant, tier, owner)
        if victim is None:
            raise MemoryCapacityError(
                "every entry of this full store is pinned; unpin or delete some",
                current_count=usage.entries,
                max_capacity=capacity,
            )
        if is_over(victim, now):
            # It is not counted any more, so its going makes no room.
            await end(transaction, EventType.EXPIRED, victim, by=None, at=now)
        else:
            await end(transaction, EventType.EVICTED, victim, by=None, at=now)
            excess -= 1
