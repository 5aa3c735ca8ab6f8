"""Claims: exclusive ownership of a key of shared state for a limited time (the claim pattern).

A claim is a lease on a key of a scope. While the claim is live, only writes with its fencing token
change the entry of the key; see `service/requests/fencing.py`.

A request that is bound to people, or inside a session, finds claims of keys whose entry it may read
and of keys without an entry. It sees no purpose: another conversation may have written it.
"""

from __future__ import annotations

from msgspec.structs import replace

from memorywall.coordination.leases import (
    acquire_lease,
    expiry_after,
    known_lease,
    record_claim,
    renew,
)
from memorywall.records.decision import Target, Verb
from memorywall.records.errors import (
    LeaseHeldError,
    MemoryAccessError,
    MemoryCapacityError,
    ValidationError,
)
from memorywall.records.event import WorkEventType
from memorywall.records.identifiers import is_same_name, normalize_name
from memorywall.records.lease import Lease, LeaseKind
from memorywall.records.tier import Tier
from memorywall.service.access.known_names import find_agent
from memorywall.service.access.targets import load_namespace_target
from memorywall.service.entries.namespace_entry import enter_namespace
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.validation import check_key, check_name
from memorywall.tiers.shared import is_scope

MOST_CLAIMS = 1_000
"""The most live claims of an agent."""


async def acquire(
    context: OperationContext, scope: str, key: str, seconds: int, purpose: str | None
) -> Lease:
    """Claims a key of a scope of shared state.

    scope: a namespace of shared state
    seconds: the time to live
    purpose: a text for other agents, None for none
    Raises ValidationError, MemoryAccessError, LeaseHeldError, MemoryCapacityError.
    """
    scope, key = _check_scope(scope), check_key(key)
    if purpose is not None:
        purpose = check_name("purpose", purpose)
    await enter_namespace(context, Tier.SHARED, scope, scope)
    if _is_bound(context):
        context.authorize(Verb.CREATE, await _target_of_key(context, scope, key))
    held = await context.transaction.leases.count_held_by(
        LeaseKind.CLAIM, context.principal.id, context.now
    )
    if held >= MOST_CLAIMS:
        raise MemoryCapacityError(
            "this agent has too many live claims; release some",
            current_count=held,
            max_capacity=MOST_CLAIMS,
        )
    try:
        claim = await acquire_lease(
            context,
            context.principal.id,
            LeaseKind.CLAIM,
            scope,
            key,
            until=expiry_after(context.now, seconds),
            purpose=purpose,
        )
    except LeaseHeldError as error:
        error.existing_lease = _shown(context, error.existing_lease)
        raise
    await record_claim(context, WorkEventType.CLAIM_ACQUIRED, claim)
    return claim


async def extend(context: OperationContext, claim_id: str, seconds: int) -> Lease:
    """Renews a claim for `seconds` from now.

    Raises ResourceNotFoundError, MemoryAccessError, FencedError for a claim that is not live.
    """
    claim = await _own(context, claim_id)
    renewed = await renew(context, claim.token, until=expiry_after(context.now, seconds))
    return _shown(context, renewed)


async def release(context: OperationContext, claim_id: str) -> None:
    """Releases a claim. An expired claim can be released until the key is claimed again.

    Raises ResourceNotFoundError, MemoryAccessError.
    """
    claim = await _own(context, claim_id)
    await context.transaction.leases.end(claim.token)
    await record_claim(context, WorkEventType.CLAIM_RELEASED, claim)


async def get(context: OperationContext, claim_id: str) -> Lease:
    """A claim, live or expired. Raises ResourceNotFoundError, MemoryAccessError."""
    claim = await known_lease(context, claim_id, LeaseKind.CLAIM)
    context.authorize(Verb.READ, await _target_of_key(context, claim.parent, claim.name))
    return _shown(context, claim)


async def list_claims(
    context: OperationContext, scope: str | None, agent: str | None
) -> list[Lease]:
    """The live claims that the caller may see: those in a scope, or those of an agent in any scope.

    scope: a namespace of shared state, None for any
    agent: by default the caller
    """
    if scope is not None:
        scope = _check_scope(scope)
    context.decide_by_row()
    leases = context.transaction.leases
    if scope is None:
        holder = context.principal.id if agent is None else await find_agent(context, agent)
        found = await leases.held_by(LeaseKind.CLAIM, holder, context.now)
    else:
        found = await leases.list(LeaseKind.CLAIM, scope, context.now)
        found = [one for one in found if agent is None or is_same_name(agent, one.holder)]
    visible: dict[str, bool] = {}
    for parent in {one.parent for one in found}:
        target = await load_namespace_target(context, Tier.SHARED, parent)
        visible[parent] = context.allows(Verb.READ, target)
    found = [one for one in found if visible[one.parent]]
    if not _is_bound(context):
        return found
    return [
        _shown(context, one)
        for one in found
        if context.allows(Verb.READ, await _target_of_key(context, one.parent, one.name))
    ]


async def _own(context: OperationContext, claim_id: str) -> Lease:
    claim = await known_lease(context, claim_id, LeaseKind.CLAIM)
    context.authorize(Verb.UPDATE, await _target_of_key(context, claim.parent, claim.name))
    if claim.holder != context.principal.id:
        raise MemoryAccessError("only its holder can renew or release a claim")
    return claim


def _is_bound(context: OperationContext) -> bool:
    return context.principal.subject_forms is not None


async def _target_of_key(context: OperationContext, scope: str, key: str) -> Target:
    """The target for a key of a scope: for a bound request that for its entry, if there is one."""
    target = await load_namespace_target(context, Tier.SHARED, scope)
    if not _is_bound(context):
        return target
    entry = await context.transaction.entries.find(Tier.SHARED, "", scope, key)
    if entry is None:
        return target
    return replace(target, subjects=entry.subjects, tier=entry.tier, session=entry.scope.session_id)


def _shown(context: OperationContext, claim: Lease) -> Lease:
    """A claim as the request may see it."""
    return replace(claim, purpose=None) if _is_bound(context) else claim


def _check_scope(scope: str) -> str:
    scope = normalize_name(scope)
    if not is_scope(scope):
        raise ValidationError("`scope` must be `global`, `team:` and a team, or `agent`")
    return scope
