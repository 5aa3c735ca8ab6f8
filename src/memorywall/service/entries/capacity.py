"""Capacities of tiers: refusal or eviction (RFC-0015 sections 2.2, 6.5, 6.6 and 9.4).

If several limits apply, the tightest limit wins.
"""

from __future__ import annotations

import math
from dataclasses import replace

import msgspec

from memorywall.records.entry import Entry
from memorywall.records.errors import MemoryCapacityError
from memorywall.records.event import EventType
from memorywall.records.tier import CapacityScope, Eviction, Tier, TierSpec
from memorywall.records.usage import AgentLimits, NearlyFullMemory, Usage
from memorywall.service.access.authorization_facts import load_guardrails
from memorywall.service.entries.eviction import EvictionScope, choose_evicted
from memorywall.service.entries.quotas import check_quota
from memorywall.service.entries.removal import remove_entry
from memorywall.service.requests.namespace_names import all_forms
from memorywall.service.requests.operation_context import OperationContext
from memorywall.tiers import TIERS, TIERS_WITH_AGENT_LIMITS

_FULL = {
    CapacityScope.AGENT: "this agent's memory of the tier is full; delete entries",
    CapacityScope.TASK: "this task's working memory is full; delete or consolidate entries",
    CapacityScope.NAMESPACE: "this namespace is full in the tier; delete entries",
}
_TASK_TOO_LARGE = "this task's working memory would exceed its size; delete or consolidate entries"
_NONE_ALLOWED = "the limits of this agent, task or tenant allow no memory of the tier"
NEARLY_FULL = 0.9
"""The share of a capacity from which the status shows the memory of an agent, and metrics count
writes, as nearly full."""
MOST_SHOWN = 100
_NONE_EVICTED = (
    "too few entries of this full store can be evicted; the others are pinned, claimed, of a"
    " governed kind or another agent's; unpin or delete some"
)


async def agent_capacity(
    context: OperationContext, tier: Tier, agent: str
) -> tuple[int | None, AgentLimits]:
    """The capacity of an agent in a tier of `TIERS_WITH_AGENT_LIMITS` in entries, and the limits of
    the agent.

    The capacity is the agent's own or that of the settings, and at most that of the tenant and of
    the agent's guardrails.
    """
    limits = await context.transaction.identities.limits(agent)
    tiers = await context.load_tiers()
    capacities = [tiers.with_capacity(tier, limits.episodic_capacity).capacity]
    for guardrails in await load_guardrails(context, agent):
        capacities.append(guardrails.max_episodic_memory_per_agent)
    return _tightest(capacities), limits


async def find_nearly_full(context: OperationContext) -> dict[Tier, list[NearlyFullMemory]]:
    """The agents whose memory of a tier is nearly full, the fullest first, for the tiers with a
    capacity of agents; at most `MOST_SHOWN` of a tier."""
    found: dict[Tier, list[NearlyFullMemory]] = {}
    for tier, spec in (await context.load_tiers()).effective.items():
        if spec.capacity is None or spec.capacity_scope is not CapacityScope.AGENT:
            continue
        least = math.ceil(spec.capacity * NEARLY_FULL)
        entries = context.transaction.entries
        for agent, count in await entries.fullest_owners(tier, least, MOST_SHOWN):
            capacity: int | None = spec.capacity
            if tier in TIERS_WITH_AGENT_LIMITS:
                capacity, _ = await agent_capacity(context, tier, agent)
            if capacity is not None and count >= capacity * NEARLY_FULL:
                memory = NearlyFullMemory(agent=agent, entries=count, capacity=capacity)
                found.setdefault(tier, []).append(memory)
    return found


async def episodic_capacity(context: OperationContext, agent: str) -> int:
    """The capacity of an agent's episodic memory in entries."""
    capacity, _ = await agent_capacity(context, Tier.EPISODIC, agent)
    assert capacity is not None  # noqa: S101 - the settings always give one
    return capacity


async def enforce_capacity(context: OperationContext, entry: Entry) -> Entry:
    """Evicts entries or refuses, so that a new entry does not exceed a capacity or the quota.

    Returns the entry, pinned if the limits of its agent pin its namespace. Raises
    MemoryCapacityError.
    """
    if not entry.listed:
        return entry
    tiers = await context.load_tiers()
    spec = tiers.effective[entry.tier]
    if entry.tier in TIERS_WITH_AGENT_LIMITS:
        capacity, limits = await agent_capacity(context, entry.tier, entry.owner)
        spec = replace(spec, capacity=capacity)
        if entry.namespace in await all_forms(context, limits.pinned_namespaces):
            entry = msgspec.structs.replace(entry, pinned=True)
    if spec.capacity_scope is CapacityScope.TASK:
        if entry.scope.task_id is not None:
            await check_task(context, entry)
    elif spec.capacity is not None:
        entries = context.transaction.entries
        if spec.capacity_scope is CapacityScope.AGENT:
            usage = await entries.usage(entry.tier, entry.owner, context.now)
            scope = EvictionScope(tier=entry.tier, owner=entry.owner, subjects=entry.subjects)
        else:
            usage = await entries.namespace_usage(entry.tier, entry.namespace, context.now)
            scope = EvictionScope(
                tier=entry.tier, owner="", namespace=entry.namespace, subjects=entry.subjects
            )
        await _make_room(context, spec, spec.capacity, usage, scope)
    if tiers.quota is not None:
        # After an eviction, which may have made room.
        await check_quota(context, entry)
    return entry


async def check_task(context: OperationContext, entry: Entry, old: Entry | None = None) -> None:
    """Enforces the limits of the task of `entry`; evicts only entries of the entry's owner.

    old: the version that `entry` replaces, if it belongs to the same task; None otherwise
    Raises MemoryCapacityError.
    """
    task_id = entry.scope.task_id
    if TIERS[entry.tier].capacity_scope is not CapacityScope.TASK or task_id is None:
        return
    if not entry.listed:
        return
    spec = (await context.load_tiers()).effective[entry.tier]
    capacity, size = spec.capacity, None
    if entry.scope.intent_id is not None:
        # The scope of memory of a known task also names its intent.
        capacity, size = await _task_limits(context, spec, task_id)
    if old is not None and (size is None or entry.size <= old.size):
        return
    usage = await context.transaction.entries.task_usage(entry.tier, task_id, context.now)
    freed = 0
    if old is None and capacity is not None:
        scope = EvictionScope(
            tier=entry.tier, owner=entry.owner, task_id=task_id, subjects=entry.subjects
        )
        freed = await _make_room(context, spec, capacity, usage, scope)
    total = usage.bytes - freed + entry.size - (0 if old is None else old.size)
    if size is not None and total > size * 1024:
        raise MemoryCapacityError(
            f"{_TASK_TOO_LARGE}: at most {size} KB, it has {-(-usage.bytes // 1024)} KB",
            current_count=usage.entries,
            max_capacity=capacity,
        )


async def _task_limits(
    context: OperationContext, spec: TierSpec, task_id: str
) -> tuple[int | None, int | None]:
    """The most entries and the most KB of a task; None for no limit."""
    capacities = [spec.capacity]
    task = await context.transaction.tasks.get(task_id)
    if task is None:
        return spec.capacity, None
    capacities.append(task.memory_policy.max_entries)
    intent = await context.transaction.intents.get(task.intent_id)
    guardrails = None if intent is None else intent.guardrails
    if guardrails is not None:
        capacities.append(guardrails.max_working_memory_per_task)
    return _tightest(capacities), task.memory_policy.max_total_size_kb


async def _make_room(
    context: OperationContext, spec: TierSpec, capacity: int, usage: Usage, scope: EvictionScope
) -> int:
    """Evicts what has to go for one more entry, as the policy of the tier says. Returns the bytes
    of the evicted values. Raises MemoryCapacityError if too little may go.

    usage: of the group of entries that the capacity applies to
    scope: the entries that may be evicted
    """
    if usage.entries + 1 >= capacity * NEARLY_FULL:
        context.nearly_full = scope.tier
    excess = usage.entries + 1 - capacity
    if excess <= 0:
        return 0
    refusal = None
    evicted: list[Entry] = []
    if spec.eviction is Eviction.REFUSE:
        refusal = _FULL[spec.capacity_scope]
    elif capacity < 1:
        refusal = _NONE_ALLOWED
    else:
        evicted = await choose_evicted(context, scope, spec.eviction, excess)
        refusal = _NONE_EVICTED if len(evicted) < excess else None
    if refusal is not None:
        raise MemoryCapacityError(refusal, current_count=usage.entries, max_capacity=capacity)
    for entry in evicted:
        await remove_entry(context, EventType.EVICTED, entry, by_system=True)
    context.evicted += evicted
    return sum(entry.size for entry in evicted)


def _tightest(capacities: list[int | None]) -> int | None:
    """The lowest of these limits; None for no limit."""
    return min((one for one in capacities if one is not None), default=None)
