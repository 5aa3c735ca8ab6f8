"""Eviction: which entries leave a full tier (RFC-0015 section 2.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memorywall.kinds.registry import KINDS
from memorywall.records.entry import Entry
from memorywall.records.event import EventType
from memorywall.records.lease import LeaseKind
from memorywall.records.tier import Admission, Eviction, Tier
from memorywall.service.entries.removal import remove_entry
from memorywall.service.requests.operation_context import OperationContext
from memorywall.tiers import TIERS


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictionScope:
    """The entries that may be evicted.

    owner: the agent that owns them; "" in tiers that are isolated by namespace
    namespace: only those of this namespace; None for all
    task_id: only those that are bound to this task; None for all
    subjects: the people whose entries go first; default: nobody
    """

    tier: Tier
    owner: str
    namespace: str | None = None
    task_id: str | None = None
    subjects: tuple[str, ...] = ()


async def evict_down_to(
    context: OperationContext,
    scope: EvictionScope,
    policy: Eviction,
    target: int,
    *,
    most: int,
    is_rehearsal: bool,
) -> tuple[list[Entry], int]:
    """Evicts entries until no more than `target` of the scope are left. Returns the evicted ones
    and the number of those that are left.

    policy: not `REFUSE`
    most: the most entries that are evicted
    is_rehearsal: whether the entries that would be evicted are only named
    """
    entries = context.transaction.entries
    if scope.task_id is not None:
        usage = await entries.task_usage(scope.tier, scope.task_id, context.now)
    elif scope.namespace is not None:
        usage = await entries.namespace_usage(scope.tier, scope.namespace, context.now)
    else:
        usage = await entries.usage(scope.tier, scope.owner, context.now)
    excess = min(max(0, usage.entries - target), most)
    evicted = await choose_evicted(context, scope, policy, excess) if excess else []
    if not is_rehearsal:
        for entry in evicted:
            await remove_entry(context, EventType.EVICTED, entry)
    return evicted, usage.entries - len(evicted)


async def choose_evicted(
    context: OperationContext, scope: EvictionScope, policy: Eviction, count: int
) -> list[Entry]:
    """Up to `count` entries in the order in which they are evicted: those about the subjects of the
    scope, so that one person's entries do not displace another's, then all.

    Pinned entries are never chosen, and neither are entries of kinds that are not evictable, nor
    entries whose key is claimed in a tier where only the holder of a claim
    may write. Expired entries are not chosen, because they do not count.

    policy: not `REFUSE`
    """
    if policy.reads_accesses:
        tracker = context.service.usage_tracker
        await tracker.flush(context.transaction, context.tenant, scope.owner)
    claimed = await _claimed_keys(context, scope)

    async def find(about: Sequence[str] | None) -> list[Entry]:
        return await context.transaction.entries.first_to_evict(
            scope.tier,
            scope.owner,
            policy,
            context.now,
            count + len(claimed),
            namespace=scope.namespace,
            task_id=scope.task_id,
            except_kinds=[spec.name for spec in KINDS.values() if not spec.evictable],
            about=about,
        )

    chosen: dict[str, Entry] = {}
    for about in (await _stored_forms(context, scope.subjects), None):
        if about == [] or len(chosen) >= count:
            continue
        chosen |= {one.id: one for one in await find(about) if one.key not in claimed}
    return list(chosen.values())[:count]


async def _stored_forms(context: OperationContext, subjects: Sequence[str]) -> list[str]:
    """The names of subjects, and their digests, by which sealed entries name them."""
    find = context.service.cipher.find_digest
    digests = [await find(context.transaction, one) for one in subjects]
    return [*subjects, *(one for one in digests if one is not None)]


async def _claimed_keys(context: OperationContext, scope: EvictionScope) -> set[str]:
    if TIERS[scope.tier].admission is not Admission.CLAIM_HOLDER or scope.namespace is None:
        return set()
    leases = context.transaction.leases
    return {
        claim.name for claim in await leases.list(LeaseKind.CLAIM, scope.namespace, context.now)
    }
