"""Room for one more entry: refuse or evict (RFC-0015 sections 2.2 and 9.4)."""

from __future__ import annotations

from memorywall.records.entry import Entry
from memorywall.records.errors import MemoryCapacityError
from memorywall.records.event import EventType
from memorywall.records.tier import Eviction, Tier
from memorywall.storage.port import Transaction
from memorywall.tiers import TIERS
from memorywall.wall.door import Door, record


async def episodic_capacity(door: Door, transaction: Transaction, tenant: str, agent: str) -> int:
    """How many episodic entries an agent may have: its own setting or the default."""
    own = await transaction.identities.capacity(tenant, agent)
    return door.settings.episodic_capacity if own is None else own


async def make_room(door: Door, transaction: Transaction, entry: Entry, now: str) -> None:
    """Makes sure `entry`, not yet stored, will fit. Raises MemoryCapacityError when it cannot."""
    spec = TIERS[entry.tier]
    if spec.counted_by == "task" and entry.scope.task_id is not None:
        await _check_task(door, transaction, entry.tier, entry.tenant, entry.scope.task_id, now)
    elif spec.counted_by == "agent" and spec.eviction is Eviction.LEAST_RECENTLY_USED:
        await _evict(door, transaction, entry, now)


async def _check_task(
    door: Door, transaction: Transaction, tier: Tier, tenant: str, task_id: str, now: str
) -> None:
    capacity = door.settings.working_capacity_per_task
    count = await transaction.entries.count_task(tenant, tier, task_id, now)
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
    if usage.entries < capacity:
        return
    await door.accesses.fold(transaction, tenant, owner)
    for _ in range(usage.entries - capacity + 1):
        victim = await transaction.entries.least_recently_used(tenant, tier, owner)
        if victim is None:
            raise MemoryCapacityError(
                "every entry of this full store is pinned; unpin or delete some",
                current_count=usage.entries,
                max_capacity=capacity,
            )
        await transaction.entries.remove(victim)
        await record(transaction, EventType.EVICTED, victim, by=None, at=now)
