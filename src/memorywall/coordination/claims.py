"""Claims: exclusive ownership of a work item in shared state, for a while (the claim pattern).

A claim is a lease over a key of a scope. While it lasts, only writes that carry its fencing token
change the entry of that key; see `wall/fencing.py`.
"""

from __future__ import annotations

from memorywall.coordination.leases import end_of, known_lease, record_claim, renew, take
from memorywall.policy.decide import decide
from memorywall.records.decision import Verb
from memorywall.records.errors import MemoryAccessError, MemoryCapacityError, ValidationError
from memorywall.records.event import WorkEvent
from memorywall.records.lease import Lease, LeaseKind
from memorywall.records.principal import Principal
from memorywall.records.tier import Tier
from memorywall.storage.port import Script, Transaction
from memorywall.tiers.shared import is_scope
from memorywall.wall.door import Door, authorize, namespace_target
from memorywall.wall.entries import enter_namespace
from memorywall.wall.fencing import held_lease
from memorywall.wall.limits import check_key, check_name

MOST_CLAIMS = 1_000
"""How many live claims an agent may have."""


async def acquire(
    door: Door, principal: Principal, scope: str, key: str, seconds: int, purpose: str | None
) -> Script[Lease]:
    """A script that claims a key of a scope of shared state.

    scope: a namespace of shared state
    Raises, here or when run: ValidationError, MemoryAccessError, HeldError, MemoryCapacityError.
    """
    _check_scope(scope)
    check_key(key)
    if purpose is not None:
        check_name("purpose", purpose)
    now = door.now()

    async def script(transaction: Transaction) -> Lease:
        await enter_namespace(door, transaction, principal, Tier.SHARED, scope, now)
        await held_lease(transaction, principal, now)
        tenant = principal.tenant
        held = await transaction.leases.count_held_by(tenant, LeaseKind.CLAIM, principal.id, now)
        if held >= MOST_CLAIMS:
            raise MemoryCapacityError(
                "this agent holds too many claims; release some",
                current_count=held,
                max_capacity=MOST_CLAIMS,
            )
        claim = await take(
            door,
            transaction,
            tenant,
            principal.id,
            LeaseKind.CLAIM,
            scope,
            key,
            until=end_of(now, seconds),
            now=now,
            purpose=purpose,
        )
        await record_claim(transaction, WorkEvent.CLAIM_ACQUIRED, claim, by=principal, at=now)
        return claim

    return script


async def extend(door: Door, principal: Principal, claim_id: str, seconds: int) -> Script[Lease]:
    """A script that renews a claim from now on.

    Raises when run: ResourceNotFoundError, MemoryAccessError, FencedError when it is over.
    """
    now = door.now()

    async def script(transaction: Transaction) -> Lease:
        claim = await _own(transaction, principal, claim_id, now)
        return await renew(transaction, principal, claim.token, until=end_of(now, seconds), now=now)

    return script


async def release(door: Door, principal: Principal, claim_id: str) -> Script[None]:
    """A script that gives a claim back. One that is over can be given back as well, as long as
    nobody else has taken it. Raises when run: ResourceNotFoundError, MemoryAccessError."""
    now = door.now()

    async def script(transaction: Transaction) -> None:
        claim = await _own(transaction, principal, claim_id, now)
        await transaction.leases.end(claim.tenant, claim.token)
        await record_claim(transaction, WorkEvent.CLAIM_RELEASED, claim, by=principal, at=now)

    return script


async def get(door: Door, principal: Principal, claim_id: str) -> Lease:
    """A claim, live or lapsed. Raises ResourceNotFoundError, MemoryAccessError."""
    now = door.now()

    async def script(transaction: Transaction) -> Lease:
        claim = await known_lease(transaction, principal.tenant, claim_id, LeaseKind.CLAIM)
        target = await namespace_target(transaction, principal, Tier.SHARED, claim.place, now)
        authorize(principal, Verb.READ, target)
        return claim

    return await door.store.read(principal.tenant, script)


async def list_claims(
    door: Door, principal: Principal, scope: str | None, agent: str | None
) -> list[Lease]:
    """The live claims in a scope, or those of an agent, by default the caller, in any scope; only
    those the caller may see."""
    if scope is not None:
        _check_scope(scope)
    now = door.now()

    async def script(transaction: Transaction) -> list[Lease]:
        leases, tenant = transaction.leases, principal.tenant
        if scope is None:
            found = await leases.held_by(tenant, LeaseKind.CLAIM, agent or principal.id, now)
        else:
            found = await leases.list(tenant, LeaseKind.CLAIM, scope, now)
            found = [one for one in found if agent in (None, one.holder)]
        visible: dict[str, bool] = {}
        for place in {one.place for one in found}:
            target = await namespace_target(transaction, principal, Tier.SHARED, place, now)
            visible[place] = decide(principal, Verb.READ, target).allowed
        return [one for one in found if visible[one.place]]

    return await door.store.read(principal.tenant, script)


async def _own(transaction: Transaction, principal: Principal, claim_id: str, now: str) -> Lease:
    claim = await known_lease(transaction, principal.tenant, claim_id, LeaseKind.CLAIM)
    target = await namespace_target(transaction, principal, Tier.SHARED, claim.place, now)
    authorize(principal, Verb.UPDATE, target)
    await held_lease(transaction, principal, now)
    if claim.holder != principal.id:
        raise MemoryAccessError("only its holder can renew or release a claim")
    return claim


def _check_scope(scope: str) -> None:
    if not is_scope(scope):
        raise ValidationError("`scope` must be `global`, `team:` and a team, or `agent`")
