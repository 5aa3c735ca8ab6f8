"""Create, get, update and delete one entry.

The writing operations return a script: a batch is several of them in one transaction.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
from msgspec import UNSET

from memorywall.policy.decide import decide
from memorywall.records.clock import format_instant
from memorywall.records.decision import Verb, Work
from memorywall.records.draft import Change, Draft
from memorywall.records.entry import EMPTY_SCOPE, Entry, Scope, is_over
from memorywall.records.errors import (
    EntryExistsError,
    MemoryAccessError,
    MemoryCapacityError,
    MemoryConflictError,
    MemoryNotFoundError,
    ValidationError,
)
from memorywall.records.event import EventType
from memorywall.records.namespace import Access, Grant, Namespace
from memorywall.records.principal import Principal
from memorywall.records.tier import Isolation, Tier
from memorywall.storage.port import Script, Transaction
from memorywall.tiers import TIERS
from memorywall.tiers import shared as shared_tier
from memorywall.wall.capacity import check_task, make_room
from memorywall.wall.door import (
    Door,
    authorize,
    end,
    namespace_target,
    owner_target,
    target_of,
)
from memorywall.wall.fencing import guard, held_lease
from memorywall.wall.limits import (
    TASK_LIFETIME,
    check_key,
    check_namespace,
    check_scope,
    check_tags,
    encode_value,
    expiry,
)
from memorywall.wall.log import record
from memorywall.wall.sources import check_sources, provenance_of, with_sources
from memorywall.wall.work import bind, work_in


async def get(door: Door, principal: Principal, entry_id: str) -> Entry:
    """One entry (RFC-0015 "Memory CRUD"). Raises MemoryNotFoundError, MemoryAccessError."""
    now = door.now()

    async def script(transaction: Transaction) -> Entry:
        entry = await _allowed(transaction, principal, Verb.READ, entry_id, now)
        return await door.vault.open(transaction, entry)

    entry = await door.store.read(principal.tenant, script)
    door.accesses.note((entry,), now)
    door.accesses.count(entry.tenant, (entry.id,))
    return entry


async def create(door: Door, principal: Principal, draft: Draft) -> Script[Entry]:
    """A script that makes an entry.

    Raises, here or when run: ValidationError, ValueTooLargeError, MemoryAccessError,
    EntryExistsError, MemoryCapacityError.
    """
    shared = TIERS[draft.memory_type].isolation is Isolation.NAMESPACE
    if draft.agent_id is not None and draft.agent_id != principal.id:
        raise MemoryAccessError("`agent_id` must be the agent this request speaks for")
    if not shared:
        authorize(principal, Verb.CREATE, owner_target(principal.tenant, principal.id))
    entry = _drafted(principal, draft, door.clock.now())
    sources = check_sources(draft.derived_from or ())
    now = entry.created_at

    async def script(transaction: Transaction) -> Entry:
        lease = await held_lease(transaction, principal, now)
        if shared:
            await enter_namespace(door, transaction, principal, entry.tier, entry.namespace, now)
        # The id is made here, where scripts stand in line, so that ids follow the order of commits.
        made = msgspec.structs.replace(entry, id=door.ids.next("mem"))
        if entry.scope is not EMPTY_SCOPE:
            scope = await _enter_work(transaction, principal, made, now)
            made = msgspec.structs.replace(made, scope=scope)
        await guard(transaction, lease, made, now)
        made = await with_sources(transaction, principal, made, sources, now)
        try:
            made = await make_room(door, transaction, made, now)
            stored = await _insert(door, transaction, made, now)
        except MemoryCapacityError:
            await _refuse_existing(door, transaction, principal, made, now)
            raise
        if not stored:
            await _refuse_existing(door, transaction, principal, made, now)
        await record(transaction, EventType.CREATED, made, by=principal, at=now)
        return made

    return script


async def update(
    door: Door, principal: Principal, entry_id: str, version: int, change: Change
) -> Script[Entry]:
    """A script that replaces the given fields of an entry at `version` (RFC-0015 section 3).

    Raises, here or when run: ValidationError, ValueTooLargeError, MemoryNotFoundError,
    MemoryAccessError, MemoryConflictError, MemoryCapacityError.
    """
    if change.is_empty:
        raise ValidationError("nothing to change: give at least one field")
    moment = door.clock.now()
    now = format_instant(moment)
    given = _checked(change, moment)
    sources = () if change.derived_from is UNSET else check_sources(change.derived_from)

    async def script(transaction: Transaction) -> Entry:
        lease = await held_lease(transaction, principal, now)
        old = await _allowed(transaction, principal, Verb.UPDATE, entry_id, now)
        if old.version != version:
            await _refuse_version(door, transaction, principal, old, now)
        await guard(transaction, lease, old, now)
        opened = await door.vault.open(transaction, old)
        shared = TIERS[old.tier].isolation is Isolation.NAMESPACE
        fields = dict(given)
        if change.expires_at is None and change.ttl is UNSET:
            fields["expires_at"] = expiry(old.ttl, None, moment)
        new = msgspec.structs.replace(
            opened,
            version=old.version + 1,
            updated_at=now,
            curated_by=principal.id if shared else None,
            provenance=provenance_of(principal, shared),
            **fields,
        )
        if new.scope != old.scope or (new.ttl == TASK_LIFETIME != old.ttl):
            scope = await _enter_work(transaction, principal, new, now)
            new = msgspec.structs.replace(new, scope=scope)
            await guard(transaction, lease, new, now)
        new = await with_sources(transaction, principal, new, sources, now)
        same_task = new.scope.task_id == old.scope.task_id
        await check_task(door, transaction, new, now, old if same_task else None)
        await transaction.entries.replace(old, await door.vault.seal(transaction, new))
        await record(
            transaction,
            EventType.UPDATED,
            new,
            by=principal,
            at=now,
            previous_version=old.version,
        )
        if await _may_read(transaction, principal, old, now):
            return new
        # Who may write and not read gets back what it sent and nothing of what was there.
        shown = {"value": new.value if "value" in given else b""}
        return msgspec.structs.replace(new, **shown, tags=new.tags if "tags" in given else ())

    return script


async def delete(
    door: Door, principal: Principal, entry_id: str, version: int | None = None
) -> Script[None]:
    """A script that removes an entry for good; at `version` only, when one is given.

    Raises when run: MemoryNotFoundError, MemoryAccessError, MemoryConflictError.
    """
    now = door.now()

    async def script(transaction: Transaction) -> None:
        lease = await held_lease(transaction, principal, now)
        entry = await _allowed(transaction, principal, Verb.DELETE, entry_id, now)
        if version is not None and entry.version != version:
            await _refuse_version(door, transaction, principal, entry, now)
        await guard(transaction, lease, entry, now)
        await end(transaction, EventType.DELETED, entry, by=principal, at=now)

    return script


def _drafted(principal: Principal, draft: Draft, moment: int) -> Entry:
    """The entry a draft asks for, checked, still without an id."""
    spec = TIERS[draft.memory_type]
    shared = spec.isolation is Isolation.NAMESPACE
    now = format_instant(moment)
    ttl = draft.ttl if draft.ttl is not None else spec.default_ttl
    value = encode_value(draft.value)
    return Entry(
        tenant=principal.tenant,
        id="",
        tier=draft.memory_type,
        owner="" if shared else principal.id,
        agent_id=principal.id,
        namespace=_check_place(draft.memory_type, check_namespace(draft.namespace)),
        key=check_key(draft.key),
        value=value,
        size=len(value),
        scope=EMPTY_SCOPE if draft.scope is None else check_scope(draft.scope),
        tags=check_tags(draft.tags) if draft.tags else (),
        ttl=ttl,
        expires_at=expiry(ttl, draft.expires_at, moment),
        pinned=draft.pinned,
        priority=draft.priority,
        sensitivity=draft.sensitivity,
        created_at=now,
        updated_at=now,
        created_by=principal.id,
        curated_by=principal.id if shared else None,
        provenance=provenance_of(principal, shared),
    )


async def _allowed(
    transaction: Transaction, principal: Principal, verb: Verb, entry_id: str, now: str
) -> Entry:
    """The entry, once `principal` has been found to be allowed `verb` on it."""
    entry = await transaction.entries.get(principal.tenant, entry_id, now)
    if entry is None:
        raise MemoryNotFoundError
    authorize(principal, verb, await target_of(transaction, principal, verb, entry, now))
    return entry


async def _may_read(transaction: Transaction, principal: Principal, entry: Entry, now: str) -> bool:
    target = await target_of(transaction, principal, Verb.READ, entry, now)
    return decide(principal, Verb.READ, target).allowed


async def _insert(door: Door, transaction: Transaction, entry: Entry, now: str) -> bool:
    sealed = await door.vault.seal(transaction, entry)
    if await transaction.entries.insert(sealed, now):
        return True
    holder = await transaction.entries.find(
        entry.tenant, entry.tier, entry.owner, entry.namespace, entry.key
    )
    if holder is None or not is_over(holder, now):
        return False
    # Only the sweep has not come by: the name is free.
    await end(transaction, EventType.EXPIRED, holder, by=None, at=now)
    return await transaction.entries.insert(sealed, now)


async def _refuse_existing(
    door: Door, transaction: Transaction, principal: Principal, entry: Entry, now: str
) -> None:
    """Raises EntryExistsError if the entry's name is taken."""
    holder = await transaction.entries.find(
        entry.tenant, entry.tier, entry.owner, entry.namespace, entry.key
    )
    if holder is None or is_over(holder, now):
        return
    hint = "an entry with this namespace and key exists; change it with PATCH and If-Match"
    raise EntryExistsError(hint, **await _shown(door, transaction, principal, holder, now))


async def _refuse_version(
    door: Door, transaction: Transaction, principal: Principal, entry: Entry, now: str
) -> None:
    hint = "the entry has another version now; read it, merge, and send the current version"
    raise MemoryConflictError(hint, **await _shown(door, transaction, principal, entry, now))


async def _shown(
    door: Door, transaction: Transaction, principal: Principal, entry: Entry, now: str
) -> dict[str, Any]:
    """What a conflict shows of the entry in the way: all of it, or nothing to who may not read."""
    if not await _may_read(transaction, principal, entry, now):
        return {}
    current = await door.vault.open(transaction, entry)
    return {"current": current, "current_version": current.version}


async def enter_namespace(
    door: Door, transaction: Transaction, principal: Principal, tier: Tier, name: str, now: str
) -> None:
    """Checks that `principal` may write here, and founds the namespace with its first entry."""
    target = await namespace_target(transaction, principal, tier, name, now)
    authorize(principal, Verb.CREATE, target)
    if target.namespace is None:
        await transaction.namespaces.save(founded(door, principal, name, now))


def founded(door: Door, principal: Principal, name: str, now: str) -> Namespace:
    """A new namespace, administered by its founder; a scope of shared state begins as its kind
    wants it."""
    default, own = Access(door.settings.namespace_default), Access.ADMIN
    if name.startswith(shared_tier.PREFIX):
        default, own = shared_tier.first_access(name)
    return Namespace(
        tenant=principal.tenant,
        name=name,
        default=default,
        grants=() if own is Access.NONE else (Grant(agent=principal.id, access=own),),
        created_at=now,
        updated_at=now,
    )


async def _enter_work(
    transaction: Transaction, principal: Principal, entry: Entry, now: str
) -> Scope:
    """Checks that `principal` may bind this memory to what its scope names, whose log will tell of
    it, and returns the whole scope."""
    scope, task = await bind(transaction, principal.tenant, entry.scope)
    working = entry.tier is Tier.WORKING
    work = await work_in(transaction, principal, scope, task, now, own=working)
    if work is not None and not working:
        if work.is_over and entry.ttl == TASK_LIFETIME:
            raise ValidationError("the task is over, so nothing can last as long as it any more")
        # Other tiers outlive a task; who works or worked on it, or takes part, may refer to it.
        work = Work(takes_part=work.takes_part or work.assigned == principal.id)
    target = replace(owner_target(principal.tenant, principal.id), work=work)
    authorize(principal, Verb.CREATE, target)
    return scope


def _check_place(tier: Tier, namespace: str) -> str:
    """A namespace in which entries of this tier can lie."""
    if tier is Tier.SHARED:
        if not shared_tier.is_scope(namespace):
            raise ValidationError(
                "`namespace` of shared state must be `shared/global`, `shared/team/` and a team,"
                " or `shared/agent/` and an agent"
            )
    elif TIERS[tier].isolation is Isolation.NAMESPACE and namespace.startswith(shared_tier.PREFIX):
        raise ValidationError("`namespace` must not begin with `shared/` in this memory_type")
    return namespace


def _checked(change: Change, moment: int) -> dict[str, object]:
    """The fields of an entry that a change sets, checked."""
    fields: dict[str, object] = {}
    if change.value is not UNSET:
        value = encode_value(change.value)
        fields.update(value=value, size=len(value))
    if change.scope is not UNSET:
        fields["scope"] = check_scope(change.scope)
    if change.tags is not UNSET:
        fields["tags"] = check_tags(change.tags)
    if change.ttl is not UNSET:
        absolute = None if change.expires_at is UNSET else change.expires_at
        fields.update(ttl=change.ttl, expires_at=expiry(change.ttl, absolute, moment))
    elif change.expires_at is not UNSET and change.expires_at is not None:
        fields["expires_at"] = expiry(None, change.expires_at, moment)
    for name in ("pinned", "priority", "sensitivity"):
        if getattr(change, name) is not UNSET:
            fields[name] = getattr(change, name)
    return fields
