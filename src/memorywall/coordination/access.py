"""Intents as everybody here looks them up, and their access lists (RFC-0011)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from memorywall.policy.decide import decide
from memorywall.records.decision import Target, Verb
from memorywall.records.errors import ResourceNotFoundError, ValidationError
from memorywall.records.event import WorkEvent
from memorywall.records.intent import DefaultPolicy, Intent, IntentGrant
from memorywall.records.lease import Lease
from memorywall.records.namespace import Access
from memorywall.records.principal import Principal
from memorywall.records.tier import Isolation
from memorywall.storage.port import Script, Transaction
from memorywall.wall.door import Door, authorize
from memorywall.wall.fencing import held_lease
from memorywall.wall.limits import check_agent
from memorywall.wall.log import record_work
from memorywall.wall.work import intent_target

MOST_GRANTS = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class AccessList:
    """Who may do what with an intent."""

    intent: Intent
    grants: list[IntentGrant]


@dataclass(frozen=True, kw_only=True, slots=True)
class NewGrant:
    """A line to be added to an access list."""

    principal_id: str
    principal_type: str
    access: Access
    reason: str | None
    expires_at: str | None


async def enter_intent(
    transaction: Transaction, principal: Principal, verb: Verb, intent_id: str, now: str
) -> tuple[Intent, Target]:
    """The intent, once `principal` has been found to be allowed `verb` on it.

    Raises ResourceNotFoundError, MemoryAccessError, and FencedError for a change under a lease
    that is over.
    """
    intent = await transaction.intents.get(principal.tenant, intent_id)
    if intent is None:
        raise ResourceNotFoundError("there is no such intent")
    target = await intent_target(transaction, principal, intent, now)
    authorize(principal, verb, target)
    if verb is not Verb.READ:
        await held_lease(transaction, principal, now)
    return intent, target


async def is_allowed(
    transaction: Transaction, principal: Principal, verb: Verb, intent: Intent, now: str
) -> bool:
    """Whether `principal` is allowed `verb` on an intent, for listings of some of them."""
    target = await intent_target(transaction, principal, intent, now)
    return decide(principal, verb, target).allowed


def readable(door: Door, principal: Principal, intent_id: str | None = None) -> Script[object]:
    """A script that raises unless the principal may see again what it wrote to an intent, or to
    one of its own: it may hold another key now, or have lost its part in the intent."""
    now = door.now()

    async def script(transaction: Transaction) -> object:
        await check_writer(transaction, principal, now)
        if intent_id is None:
            return None
        return await enter_intent(transaction, principal, Verb.READ, intent_id, now)

    return script


def anywhere(principal: Principal) -> Target:
    """The target that stands for whatever the principal has every part in: what is decided about
    it is what the key may do at all."""
    return Target(tenant=principal.tenant, isolation=Isolation.INTENT, level=Access.ADMIN)


async def check_writer(transaction: Transaction, principal: Principal, now: str) -> Lease | None:
    """The lease the request is made under, if it names one. Raises MemoryAccessError for a key that
    may write nothing, FencedError for a lease that is over. For what depends on nobody's part in an
    intent."""
    authorize(principal, Verb.UPDATE, anywhere(principal))
    return await held_lease(transaction, principal, now)


async def get_access(door: Door, principal: Principal, intent_id: str) -> AccessList:
    """The access list of an intent the caller may read."""
    now = door.now()

    async def script(transaction: Transaction) -> AccessList:
        intent, _ = await enter_intent(transaction, principal, Verb.READ, intent_id, now)
        grants = await transaction.intents.grants(principal.tenant, intent_id)
        return AccessList(intent=intent, grants=grants)

    return await door.store.read(principal.tenant, script)


async def set_access(
    door: Door,
    principal: Principal,
    intent_id: str,
    default_policy: DefaultPolicy,
    entries: Sequence[NewGrant],
) -> Script[AccessList]:
    """A script that replaces the whole access list. Raises ValidationError; when run
    ResourceNotFoundError, MemoryAccessError."""
    if len(entries) > MOST_GRANTS:
        raise ValidationError(f"`entries` may have at most {MOST_GRANTS} lines")
    _check(entries)
    now = door.now()

    async def script(transaction: Transaction) -> AccessList:
        intent, _ = await enter_intent(transaction, principal, Verb.ADMINISTER, intent_id, now)
        for old in await transaction.intents.grants(principal.tenant, intent_id):
            await _remove(transaction, principal, old, now)
        changed = msgspec.structs.replace(intent, default_policy=default_policy)
        await transaction.intents.replace(changed)
        grants = [
            await _add(door, transaction, principal, intent_id, entry, now) for entry in entries
        ]
        return AccessList(intent=changed, grants=grants)

    return script


async def grant(
    door: Door, principal: Principal, intent_id: str, entry: NewGrant
) -> Script[IntentGrant]:
    """A script that adds a line. Raises like `set_access`."""
    _check((entry,))
    now = door.now()

    async def script(transaction: Transaction) -> IntentGrant:
        await enter_intent(transaction, principal, Verb.ADMINISTER, intent_id, now)
        if len(await transaction.intents.grants(principal.tenant, intent_id)) >= MOST_GRANTS:
            raise ValidationError(f"an access list may have at most {MOST_GRANTS} lines")
        return await _add(door, transaction, principal, intent_id, entry, now)

    return script


async def revoke(door: Door, principal: Principal, intent_id: str, grant_id: str) -> Script[None]:
    """A script that takes a line away. Raises when run: ResourceNotFoundError,
    MemoryAccessError."""
    now = door.now()

    async def script(transaction: Transaction) -> None:
        await enter_intent(transaction, principal, Verb.ADMINISTER, intent_id, now)
        for one in await transaction.intents.grants(principal.tenant, intent_id):
            if one.id == grant_id:
                await _remove(transaction, principal, one, now)
                return
        raise ResourceNotFoundError("the access list has no such line")

    return script


def _check(entries: Sequence[NewGrant]) -> None:
    for entry in entries:
        check_agent("principal_id", entry.principal_id)
        if entry.principal_type not in ("agent", "user", "service"):
            raise ValidationError("`principal_type` must be agent, user or service")
        if entry.access is Access.NONE:
            raise ValidationError("`permission` must be read, write or admin")


async def _add(
    door: Door,
    transaction: Transaction,
    principal: Principal,
    intent_id: str,
    entry: NewGrant,
    now: str,
) -> IntentGrant:
    made = IntentGrant(
        tenant=principal.tenant,
        intent_id=intent_id,
        id=door.ids.next("acl"),
        principal_id=entry.principal_id,
        principal_type=entry.principal_type,
        access=entry.access,
        granted_by=principal.id,
        granted_at=now,
        expires_at=entry.expires_at,
        reason=entry.reason,
    )
    await transaction.intents.add_grant(made)
    await _record(transaction, WorkEvent.ACCESS_GRANTED, principal, made, now)
    return made


async def _remove(
    transaction: Transaction, principal: Principal, old: IntentGrant, now: str
) -> None:
    await transaction.intents.remove_grant(old.tenant, old.intent_id, old.id)
    await _record(transaction, WorkEvent.ACCESS_REVOKED, principal, old, now)


async def _record(
    transaction: Transaction, kind: WorkEvent, by: Principal, line: IntentGrant, at: str
) -> None:
    await record_work(
        transaction,
        kind,
        tenant=line.tenant,
        by=by,
        at=at,
        intent_id=line.intent_id,
        data={"id": line.id, "principal_id": line.principal_id, "permission": line.access},
    )
