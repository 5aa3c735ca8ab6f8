"""The tiers as they are in a tenant, and their administration (memory wall 11.1.3 and 11.1.5)."""

from __future__ import annotations

from msgspec.structs import replace

from memorywall.operations.binding import operation, tenant_setting
from memorywall.records.copier import copier
from memorywall.records.decision import Verb
from memorywall.records.errors import ResourceNotFoundError, ValidationError
from memorywall.records.tier import (
    Admission,
    CapacityScope,
    Eviction,
    Isolation,
    Tier,
    TierLimits,
    TierSpec,
)
from memorywall.service.access.known_names import find_agent
from memorywall.service.access.targets import owner_target
from memorywall.service.entries.eviction import EvictionScope, evict_down_to
from memorywall.service.requests.namespace_names import find_namespaces
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.service.requests.tenant_tiers import read_tenant_tiers
from memorywall.service.requests.validation import stored_lifetime
from memorywall.storage.sql.record_table import TIER_LIMITS
from memorywall.tiers import check_narrowing, configured_tier
from memorywall.wire.kinds import (
    MOST_EVICTED,
    EvictRequest,
    EvictResponse,
    TierLimitsRequest,
    TierListResponse,
    TierResponse,
)

_NO_POLICY = (
    "`policy` must be `lru`, `lfu`, `oldest` or `utility`; it is required for a tier whose own"
    " policy is to refuse"
)


@operation("list_tiers")
async def list_tiers(context: OperationContext, call: OperationCall) -> TierListResponse:
    context.authorize(Verb.READ, owner_target(context.tenant, context.principal.id))
    tiers = await read_tenant_tiers(context.transaction, context.service.settings)
    return TierListResponse(tiers=[_view(spec) for spec in tiers.effective.values()])


_limits = copier(
    TierLimitsRequest,
    TierLimits,
    given=["tenant", "tier"],
    defaults=["bytes"],
    admission=lambda asked: None if asked.admission is None else Admission(asked.admission),
)


@tenant_setting("narrow_tier")
async def narrow_tier(context: OperationContext, call: OperationCall) -> TierResponse:
    """Replaces the limits of a tier in the tenant.

    Raises ResourceNotFoundError, ValidationError.
    """
    context.authorize(Verb.ADMINISTER, owner_target(context.tenant, context.principal.id))
    settings = context.service.settings
    tier = _find_tier(call.path["memory_type"])
    limits = _limits(call.body, tenant=context.tenant, tier=tier.value)
    limits = replace(limits, default_ttl=stored_lifetime(limits.default_ttl))
    check_narrowing(configured_tier(tier, settings), limits)
    stored = context.transaction.records(TIER_LIMITS)
    await stored.remove(tier.value)
    if limits != TierLimits(tenant=context.tenant, tier=tier.value):
        await stored.insert(limits)
    tiers = await read_tenant_tiers(context.transaction, settings)
    return _view(tiers.effective[tier])


@operation("evict_entries", is_long=lambda call: True)
async def evict_entries(context: OperationContext, call: OperationCall) -> EvictResponse:
    asked: EvictRequest = call.body
    spec = (await context.load_tiers()).effective[_find_tier(call.path["memory_type"])]
    scope = await _scope(context, spec, asked)
    context.authorize(Verb.ADMINISTER, owner_target(context.tenant, scope.owner))
    policy = asked.policy or spec.eviction
    if policy is Eviction.REFUSE:
        raise ValidationError(_NO_POLICY)
    evicted, remaining = await evict_down_to(
        context, scope, policy, asked.target, most=MOST_EVICTED, is_rehearsal=asked.dry_run
    )
    return EvictResponse(
        evicted=len(evicted),
        entry_ids=[entry.id for entry in evicted],
        remaining=remaining,
        dry_run=asked.dry_run,
    )


def _find_tier(name: str) -> Tier:
    try:
        return Tier(name)
    except ValueError:
        raise ResourceNotFoundError("there is no tier of this name") from None


async def _scope(context: OperationContext, spec: TierSpec, asked: EvictRequest) -> EvictionScope:
    """Returns the owner, the task or the namespace of the entries. Raises ValidationError."""
    if asked.task_id is not None and spec.capacity_scope is not CapacityScope.TASK:
        raise ValidationError("`task_id` is only for a tier with a capacity for each task")
    if spec.isolation is Isolation.AGENT:
        if asked.agent_id is None or asked.namespace is not None:
            raise ValidationError("give `agent_id`, and no `namespace`, for this tier")
        owner = await find_agent(context, asked.agent_id)
        return EvictionScope(tier=spec.tier, owner=owner, task_id=asked.task_id)
    if asked.namespace is None or asked.agent_id is not None:
        raise ValidationError("give `namespace`, and no `agent_id`, for this tier")
    stored = await find_namespaces(context, asked.namespace)
    name = stored[0].name if stored else asked.namespace
    return EvictionScope(tier=spec.tier, owner="", namespace=name)


_view = copier(
    TierSpec,
    TierResponse,
    memory_type="tier",
    lifetime="durability.lifetime",
    versioned="durability.versioned",
)
