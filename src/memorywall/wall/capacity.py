"""Room for one more entry: refuse or evict (RFC-0015 sections 2.2, 6.5, 6.6 and 9.4).

Where several limits concern the same thing, the tightest holds.
"""

from __future__ import annotations

import msgspec

from memorywall.records.entry import Entry, is_over
from memorywall.records.errors import MemoryCapacityError
from memorywall.records.event import EventType
from memorywall.records.tier import Eviction, Tier
from memorywall.records.usage import AgentLimits
from memorywall.storage.port import Transaction
from memorywall.tiers import TIERS
from memorywall.wall.door import Door, end
from memorywall.wall.work import guardrails_over

_TASK_FULL = "this task's working memory is full; delete or consolidate entries"
_TASK_TOO_LARGE = "this task's working memory would grow over its size; delete or consolidate"
_NONE_ALLOWED = "the guardrails this agent works under allow no episodic memory"
_SCOPE_FULL = "this scope of shared state is full; keep decisions there, not deliberations"


async def episodic_capacity(
    door: Door, transaction: Transaction, tenant: str, agent: str, now: str
) -> tuple[int, AgentLimits]:
    """How many episodic entries an agent may have: its own setting or the default, and no more
    than the guardrails it works under allow. With it, what is set for the agent."""
    limits = await transaction.identities.limits(tenant, agent)
    own = limits.episodic_capacity
    capacities = [door.settings.episodic_capacity if own is None else own]
    for guardrails in await guardrails_over(transaction, tenant, agent, now):
        if guardrails.max_episodic_memory_per_agent is not None:
            capacities.append(guardrails.max_episodic_memory_per_agent)
    return min(capacities), limits


async def make_room(door: Door, transaction: Transaction, entry: Entry, now: str) -> Entry:
    """Makes sure `entry`, not yet stored, will fit, and returns it as its agent's limits want it.
    Raises MemoryCapacityError when it cannot."""
    if TIERS[entry.tier].eviction is Eviction.LEAST_RECENTLY_USED:
        return await _evict(door, transaction, entry, now)
    if TIERS[entry.tier].counted_by == "scope":
        await _check_scope(transaction, entry, now)
    else:
        await check_task(door, transaction, entry, now)
    return entry


async def check_task(
    door: Door, transaction: Transaction, entry: Entry, now: str, old: Entry | None = None
) -> None:
    """Makes sure that the task of `entry` takes it, in place of `old` where that is of the same
    task. Raises MemoryCapacityError."""
    task_id = entry.scope.task_id
    if TIERS[entry.tier].counted_by != "task" or task_id is None:
        return
    entries, size = door.settings.working_capacity_per_task, None
    if entry.scope.intent_id is not None:
        # What is bound to a task made here names the task's intent as well.
        entries, size = await _task_limits(door, transaction, entry.tenant, task_id)
    if old is not None and (size is None or entry.size <= old.size):
        return
    usage = await transaction.entries.task_usage(entry.tenant, entry.tier, task_id, now)
    if old is None and usage.entries >= entries:
        raise MemoryCapacityError(_TASK_FULL, current_count=usage.entries, max_capacity=entries)
    total = usage.bytes + entry.size - (0 if old is None else old.size)
    if size is not None and total > size * 1024:
        raise MemoryCapacityError(
            f"{_TASK_TOO_LARGE}: at most {size} KB, it has {-(-usage.bytes // 1024)} KB",
            current_count=usage.entries,
            max_capacity=entries,
        )


async def _task_limits(
    door: Door, transaction: Transaction, tenant: str, task_id: str
) -> tuple[int, int | None]:
    """How many entries a task may have, and how many KB; None for no limit of the size."""
    capacities = [door.settings.working_capacity_per_task]
    task = await transaction.tasks.get(tenant, task_id)
    if task is None:
        return capacities[0], None
    if task.memory_policy.max_entries is not None:
        capacities.append(task.memory_policy.max_entries)
    intent = await transaction.intents.get(tenant, task.intent_id)
    guardrails = None if intent is None else intent.guardrails
    if guardrails is not None and guardrails.max_working_memory_per_task is not None:
        capacities.append(guardrails.max_working_memory_per_task)
    return min(capacities), task.memory_policy.max_total_size_kb


async def _check_scope(transaction: Transaction, entry: Entry, now: str) -> None:
    capacity = TIERS[Tier.SHARED].capacity
    usage = await transaction.entries.namespace_usage(
        entry.tenant, entry.tier, entry.namespace, now
    )
    if capacity is not None and usage.entries >= capacity:
        raise MemoryCapacityError(_SCOPE_FULL, current_count=usage.entries, max_capacity=capacity)


async def _evict(door: Door, transaction: Transaction, entry: Entry, now: str) -> Entry:
    tenant, owner, tier = entry.tenant, entry.owner, entry.tier
    capacity, limits = await episodic_capacity(door, transaction, tenant, owner, now)
    if entry.namespace in limits.pinned_namespaces:
        entry = msgspec.structs.replace(entry, pinned=True)
    usage = await transaction.entries.usage(tenant, tier, owner, now)
    excess = usage.entries + 1 - capacity
    if excess <= 0:
        return entry
    if capacity < 1:
        raise MemoryCapacityError(_NONE_ALLOWED, current_count=usage.entries, max_capacity=capacity)
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
    return entry
