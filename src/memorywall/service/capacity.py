"""Capacities of tiers: refusal or eviction (RFC-0015 sections 2.2, 6.5, 6.6 and 9.4).

If several limits apply, the tightest limit wins.
"""

from __future__ import annotations

import msgspec

from memorywall.records.entry import Entry, is_expired
from memorywall.records.errors import MemoryCapacityError
from memorywall.records.event import EventType
from memorywall.records.tier import CapacityScope, Eviction
from memorywall.records.usage import AgentLimits
from memorywall.service.authorization_facts import load_guardrails
from memorywall.service.entry_writes import remove_entry
from memorywall.service.operation_context import OperationContext
from memorywall.tiers import TIERS

_TASK_FULL = "this task's working memory is full; delete or consolidate entries"
_TASK_TOO_LARGE = "this task's working memory would exceed its size; delete or consolidate entries"
_NONE_ALLOWED = "the guardrails of this agent allow no episodic memory"
_SCOPE_FULL = "this scope of shared state is full; delete entries"


async def episodic_capacity(context: OperationContext, agent: str) -> tuple[int, AgentLimits]:
    """The episodic capacity of an agent in entries, and the limits of the agent.

    The capacity is the agent's own or the default, and at most that of its guardrails.
    """
    limits = await context.transaction.identities.limits(agent)
    own = limits.episodic_capacity
    capacities = [context.service.settings.episodic_capacity if own is None else own]
    for guardrails in await load_guardrails(context, agent):
        if guardrails.max_episodic_memory_per_agent is not None:
            capacities.append(guardrails.max_episodic_memory_per_agent)
    return min(capacities), limits


async def enforce_capacity(context: OperationContext, entry: Entry) -> Entry:
    """Evicts entries or refuses, so that a new entry does not exceed a capacity.

    Returns the entry, pinned if the limits of its agent pin its namespace. Raises
    MemoryCapacityError.
    """
    spec = TIERS[entry.tier]
    if not entry.listed:
        return entry
    if spec.eviction is not Eviction.REFUSE:
        return await _evict(context, entry)
    if spec.capacity_scope is CapacityScope.NAMESPACE:
        await _check_scope(context, entry)
    else:
        await check_task(context, entry)
    return entry


async def check_task(context: OperationContext, entry: Entry, old: Entry | None = None) -> None:
    """Checks the limits of the task of `entry`.

    old: the version that `entry` replaces, if it belongs to the same task; None otherwise
    Raises MemoryCapacityError.
    """
    task_id = entry.scope.task_id
    if TIERS[entry.tier].capacity_scope is not CapacityScope.TASK or task_id is None:
        return
    if not entry.listed:
        return
    entries, size = context.service.settings.working_capacity_per_task, None
    if entry.scope.intent_id is not None:
        # The scope of memory of a known task also names its intent.
        entries, size = await _task_limits(context, task_id)
    if old is not None and (size is None or entry.size <= old.size):
        return
    usage = await context.transaction.entries.task_usage(entry.tier, task_id, context.now)
    if old is None and usage.entries >= entries:
        raise MemoryCapacityError(_TASK_FULL, current_count=usage.entries, max_capacity=entries)
    total = usage.bytes + entry.size - (0 if old is None else old.size)
    if size is not None and total > size * 1024:
        raise MemoryCapacityError(
            f"{_TASK_TOO_LARGE}: at most {size} KB, it has {-(-usage.bytes // 1024)} KB",
            current_count=usage.entries,
            max_capacity=entries,
        )


async def _task_limits(context: OperationContext, task_id: str) -> tuple[int, int | None]:
    """The most entries and the most KB of a task; None for no limit of the size."""
    capacities = [context.service.settings.working_capacity_per_task]
    task = await context.transaction.tasks.get(task_id)
    if task is None:
        return capacities[0], None
    if task.memory_policy.max_entries is not None:
        capacities.append(task.memory_policy.max_entries)
    intent = await context.transaction.intents.get(task.intent_id)
    guardrails = None if intent is None else intent.guardrails
    if guardrails is not None and guardrails.max_working_memory_per_task is not None:
        capacities.append(guardrails.max_working_memory_per_task)
    return min(capacities), task.memory_policy.max_total_size_kb


async def _check_scope(context: OperationContext, entry: Entry) -> None:
    capacity = TIERS[entry.tier].capacity
    usage = await context.transaction.entries.namespace_usage(
        entry.tier, entry.namespace, context.now
    )
    if capacity is not None and usage.entries >= capacity:
        raise MemoryCapacityError(_SCOPE_FULL, current_count=usage.entries, max_capacity=capacity)


async def _evict(context: OperationContext, entry: Entry) -> Entry:
    owner, tier = entry.owner, entry.tier
    capacity, limits = await episodic_capacity(context, owner)
    if entry.namespace in limits.pinned_namespaces:
        entry = msgspec.structs.replace(entry, pinned=True)
    usage = await context.transaction.entries.usage(tier, owner, context.now)
    excess = usage.entries + 1 - capacity
    if excess <= 0:
        return entry
    if capacity < 1:
        raise MemoryCapacityError(_NONE_ALLOWED, current_count=usage.entries, max_capacity=capacity)
    await context.service.usage_tracker.flush(context.transaction, context.tenant, owner)
    while excess > 0:
        victim = await context.transaction.entries.least_recently_used(tier, owner)
        if victim is None:
            raise MemoryCapacityError(
                "all entries of this full store are pinned; unpin or delete some",
                current_count=usage.entries,
                max_capacity=capacity,
            )
        if is_expired(victim, context.now):
            # An expired entry does not count, so its removal frees no capacity.
            await remove_entry(context, EventType.EXPIRED, victim, by_system=True)
        else:
            await remove_entry(context, EventType.EVICTED, victim, by_system=True)
            excess -= 1
    return entry
