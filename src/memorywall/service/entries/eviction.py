"""Eviction: which entries leave a full tier (RFC-0015 section 2.2)."""

from __future__ import annotations

from dataclasses import dataclass

from memorywall.kinds.registry import KINDS
from memorywall.records.entry import Entry
from memorywall.records.lease import LeaseKind
from memorywall.records.tier import Admission, Eviction, Tier
from memorywall.service.requests.operation_context import OperationContext
from memorywall.tiers import TIERS


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictionScope:
    """The entries that may be evicted.

    owner: the agent that owns them; "" in tiers that are isolated by namespace
    namespace: only those of this namespace; None for all
    task_id: only those that are bound to this task; None for all
    """

    tier: Tier
    owner: str
    namespace: str | None = None
    task_id: str | None = None


async def choose_evicted(
    context: OperationContext, scope: EvictionScope, policy: Eviction, count: int
) -> list[Entry]:
    """Up to `count` entries in the order in which they are evicted.

    Pinned entries are never chosen, and neither are entries of kinds that are not evictable, nor
    entries whose key is claimed in a tier where only the holder of a claim
    may write. Expired entries are not chosen, because they do not count.

    policy: not `REFUSE`
    """
    if policy.reads_accesses:
        tracker = context.service.usage_tracker
        await tracker.flush(context.transaction, context.tenant, scope.owner)
    claimed = await _claimed_keys(context, scope)
    found = await context.transaction.entries.first_to_evict(
        scope.tier,
        scope.owner,
        policy,
        context.now,
        count + len(claimed),
        namespace=scope.namespace,
        task_id=scope.task_id,
        except_kinds=[spec.name for spec in KINDS.values() if not spec.evictable],
    )
    return [entry for entry in found if entry.key not in claimed][:count]


async def _claimed_keys(context: OperationContext, scope: EvictionScope) -> set[str]:
    if TIERS[scope.tier].admission is not Admission.CLAIM_HOLDER or scope.namespace is None:
        return set()
    leases = context.transaction.leases
    return {
        claim.name for claim in await leases.list(LeaseKind.CLAIM, scope.namespace, context.now)
    }
