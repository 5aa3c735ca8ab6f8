"""Lists the tiers, and evicts entries of a tier down to a target (memory wall 11.1.3 and
11.1.5)."""

from __future__ import annotations

from memorywall.operations.binding import operation, session_operation
from memorywall.records.decision import Verb
from memorywall.records.entry import is_expired
from memorywall.records.errors import MemoryNotFoundError, ValidationError
from memorywall.records.event import EventType
from memorywall.records.tier import CapacityScope, Eviction, Isolation, Tier, TierSpec
from memorywall.service.entry_writes import remove_entry
from memorywall.service.operation_context import OperationCall, OperationContext
from memorywall.service.runner import OperationSession
from memorywall.service.targets import owner_target
from memorywall.service.validation import check_agent, check_namespace
from memorywall.settings import Settings
from memorywall.tiers import TIERS
from memorywall.wire.kinds import (
    MOST_EVICTED,
    EvictRequest,
    EvictResponse,
    TierListResponse,
    TierView,
)


@session_operation("list_tiers")
async def list_tiers(session: OperationSession) -> TierListResponse:
    return tier_list(session.service.settings)


def tier_list(settings: Settings) -> TierListResponse:
    """Returns the tiers with the capacities of this server's settings."""
    return TierListResponse(tiers=[_view(TIERS[tier], settings) for tier in Tier])


@operation("evict_entries", is_long=lambda call: True)
async def evict_entries(context: OperationContext, call: OperationCall) -> EvictResponse:
    asked: EvictRequest = call.body
    spec = _find_tier(call.path["memory_type"])
    owner, namespace = _place(spec, asked)
    context.authorize(Verb.ADMINISTER, owner_target(context.tenant, owner))
    entries = context.transaction.entries
    if namespace is None:
        await context.service.usage_tracker.flush(context.transaction, context.tenant, owner)
        usage = await entries.usage(spec.tier, owner, context.now)
    else:
        usage = await entries.namespace_usage(spec.tier, namespace, context.now)
    policy = asked.policy or spec.eviction
    if policy is Eviction.REFUSE:
        policy = Eviction.LEAST_RECENTLY_USED
    excess = min(max(0, usage.entries - asked.target), MOST_EVICTED)
    gone: list[str] = []
    if excess:
        # Expired entries do not count.
        order = await entries.first_to_evict(spec.tier, owner, policy, 2 * MOST_EVICTED, namespace)
        for entry in order:
            if len(gone) == excess:
                break
            if is_expired(entry, context.now):
                continue
            gone.append(entry.id)
            if not asked.dry_run:
                await remove_entry(context, EventType.EVICTED, entry)
    return EvictResponse(
        evicted=len(gone),
        entry_ids=gone,
        remaining=usage.entries - len(gone),
        dry_run=asked.dry_run,
    )


def _find_tier(name: str) -> TierSpec:
    try:
        return TIERS[Tier(name)]
    except ValueError:
        raise MemoryNotFoundError("there is no tier of this name") from None


def _place(spec: TierSpec, asked: EvictRequest) -> tuple[str, str | None]:
    """Returns the owner and the namespace of the entries. Raises ValidationError."""
    if spec.isolation is Isolation.AGENT:
        if asked.agent_id is None or asked.namespace is not None:
            raise ValidationError("give `agent_id`, and no `namespace`, for this tier")
        return check_agent("agent_id", asked.agent_id), None
    if asked.namespace is None or asked.agent_id is not None:
        raise ValidationError("give `namespace`, and no `agent_id`, for this tier")
    return "", check_namespace(asked.namespace)


def _view(spec: TierSpec, settings: Settings) -> TierView:
    capacity = {
        CapacityScope.AGENT: settings.episodic_capacity,
        CapacityScope.TASK: settings.working_capacity_per_task,
    }.get(spec.capacity_scope, spec.capacity)
    return TierView(
        memory_type=spec.tier,
        capacity=capacity,
        capacity_scope=spec.capacity_scope,
        default_ttl=spec.default_ttl,
        admission=spec.admission,
        eviction=spec.eviction,
        access=spec.access,
        lifetime=spec.durability.lifetime,
        versioned=spec.durability.versioned,
        isolation=spec.isolation,
    )
