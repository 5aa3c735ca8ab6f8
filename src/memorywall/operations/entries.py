"""Create, get, update and delete one entry (RFC-0015 "Memory CRUD")."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from memorywall.operations.binding import operation
from memorywall.operations.context_showing import check_context
from memorywall.operations.entry_checks import CheckedEntry, CheckedPatch, check_new, check_patch
from memorywall.operations.filters import past_instant
from memorywall.records.decision import Verb, WorkRelations
from memorywall.records.draft import EntryMergePatch, EntryPatch, NewEntry
from memorywall.records.entry import EMPTY_SCOPE, Entry, Scope, is_expired
from memorywall.records.errors import (
    EntryExistsError,
    MemoryCapacityError,
    MemoryConflictError,
    RequestError,
    ValidationError,
)
from memorywall.records.event import EventType
from memorywall.records.principal import Principal
from memorywall.records.tier import Admission, Isolation
from memorywall.service.authorization_facts import load_task_relations, resolve_scope
from memorywall.service.capacity import check_task, enforce_capacity
from memorywall.service.entry_writes import insert_entry, remove_entry, replace_entry
from memorywall.service.fencing import guard, held_lease
from memorywall.service.history import load_version, load_versions
from memorywall.service.meaning import check_kind, refuse_governed, refuse_removal, with_derived
from memorywall.service.namespace_entry import enter_namespace
from memorywall.service.namespace_names import (
    USER_PREFIX,
    find_holder,
    find_holders,
    stored_namespace,
)
from memorywall.service.operation_context import OperationCall, OperationContext
from memorywall.service.provenance import (
    add_sources,
    pass_on_subjects,
    provenance_of,
    replace_sources,
    updated,
    with_place,
)
from memorywall.service.quotas import check_quota
from memorywall.service.redaction import redact_entry
from memorywall.service.session_binding import own_scope
from memorywall.service.subjects import check_count, check_reseal, check_subjects
from memorywall.service.targets import (
    load_authorized_entry,
    load_authorized_target,
    load_target,
    owner_target,
)
from memorywall.service.validation import (
    TASK_LIFETIME,
    expiry,
)
from memorywall.service.value_schemas import check_value, require_major
from memorywall.tiers import TIERS
from memorywall.wire.entries import EntryResponse, HistoryResponse, upgraded, view


@operation("create_entry", shows=lambda shown: (shown.id,))
async def create_entry(context: OperationContext, call: OperationCall) -> EntryResponse:
    return view(await create(context, call.body))


@operation("get_entry", is_long=lambda call: call.query.schema_version is not None)
async def get_entry(context: OperationContext, call: OperationCall) -> EntryResponse:
    asked, as_of = call.query, past_instant("as_of", call.query.as_of, context.now)
    entry = await get(context, call.path["entry_id"], asked.version, as_of)
    await require_major(context, entry, asked.schema_version)
    return view(entry)


@operation("get_entry_history")
async def get_entry_history(context: OperationContext, call: OperationCall) -> HistoryResponse:
    entry = await load_authorized_entry(context, Verb.READ, call.path["entry_id"])
    asked, open_entry = call.query, context.service.cipher.open
    shown = []
    for one in await load_versions(context, entry, asked.before_version, asked.limit):
        # The subjects of each version need an access decision of their own.
        if one is entry or context.allows(Verb.READ, await load_target(context, Verb.READ, one)):
            shown.append(view(await open_entry(context.transaction, one)))
    context.service.record_access((entry,), context.now)
    return HistoryResponse(versions=shown)


@operation("update_entry", shows=lambda shown: (shown.id,))
async def update_entry(context: OperationContext, call: OperationCall) -> EntryResponse:
    write = merge if isinstance(call.body, EntryMergePatch) else update
    return view(await write(context, call.path["entry_id"], call.version, call.body))


@operation("delete_entry")
async def delete_entry(context: OperationContext, call: OperationCall) -> None:
    await delete(context, call.path["entry_id"], call.if_match)


async def get(
    context: OperationContext, entry_id: str, version: int | None = None, as_of: str | None = None
) -> Entry:
    """Returns one entry (RFC-0015 "Memory CRUD"), in its current or an earlier state.

    version: an earlier version, in a versioned tier
    as_of: an instant; selects the version at that instant

    Raises RequestError for both, MemoryNotFoundError, MemoryAccessError.
    """
    if version is not None and as_of is not None:
        raise RequestError("`version` and `as_of` cannot be combined; give one of them")
    entry, _ = await load_authorized_target(context, Verb.READ, entry_id)
    if version is not None or as_of is not None:
        entry = await load_version(context, entry, version, as_of)
        # The subjects of the earlier version also need an access decision.
        context.authorize(Verb.READ, await load_target(context, Verb.READ, entry))
    opened = await context.service.cipher.open(context.transaction, entry)
    context.service.record_access((opened,), context.now)
    context.service.usage_tracker.count(entry.tenant, (entry.id,))
    return opened


async def create(context: OperationContext, draft: NewEntry) -> Entry:
    """Creates an entry (RFC-0015 section 1).

    Raises ValidationError, ValueTooLargeError, MemoryAccessError,
    EntryExistsError, MemoryCapacityError.
    """
    return await create_checked(context, check_new(context, draft))


async def create_checked(context: OperationContext, checked: CheckedEntry) -> Entry:
    """Creates a checked entry. Raises MemoryAccessError, SchemaViolationError, EntryExistsError,
    MemoryCapacityError."""
    entry = checked.entry
    await held_lease(context)
    full_name = entry.namespace
    entry = msgspec.structs.replace(entry, namespace=await stored_namespace(context, entry))
    namespace = None
    if TIERS[entry.tier].isolation is Isolation.NAMESPACE:
        namespace = await enter_namespace(context, entry.tier, entry.namespace, full_name)
    entry = await _with_default_ttl(context, entry)
    # Transactions of a tenant are serial, so ids follow the order of commits.
    made_id = context.service.ids.next("mem")
    made = msgspec.structs.replace(entry, id=made_id, key=entry.key or made_id)
    await check_value(context, namespace, made)
    if entry.scope is not EMPTY_SCOPE:
        scope = await _enter_work(context, made)
        made = msgspec.structs.replace(made, scope=scope)
    await guard(context, made)
    await check_context(context, made.provenance.context)
    made = await add_sources(context, with_place(context, made), checked.sources)
    # The response shows the entry as it is stored.
    made = with_derived(await redact_entry(context, made))
    named = msgspec.structs.replace(made, namespace=full_name)
    if full_name.startswith(USER_PREFIX):
        # The store knows the stored form only, and another form may have the name.
        await _free_name(context, named)
    try:
        made = await enforce_capacity(context, made)
        stored = await _insert(context, made)
    except MemoryCapacityError:
        await _refuse_existing(context, named)
        raise
    if not stored:
        await _refuse_existing(context, named)
    return msgspec.structs.replace(made, namespace=full_name)


async def update(
    context: OperationContext, entry_id: str, version: int, change: EntryPatch
) -> Entry:
    """Replaces the given fields of an entry at `version` (RFC-0015 section 3).

    Raises ValidationError, ValueTooLargeError, MemoryNotFoundError,
    MemoryAccessError, MemoryConflictError, MemoryCapacityError.
    """
    return await update_checked(context, entry_id, version, check_patch(context, change))


async def merge(
    context: OperationContext, entry_id: str, version: int, change: EntryMergePatch
) -> Entry:
    """Applies a merge patch (RFC 7396) to an entry at `version`.

    A patch of `value` or `scope` needs read access, because the response shows the merged object.

    Raises the errors of `update`.
    """
    entry = await load_authorized_entry(context, Verb.UPDATE, entry_id)
    if change.needs_entry:
        context.authorize(Verb.READ, await load_target(context, Verb.READ, entry))
    if entry.version != version:
        await _refuse_version(context, entry)
    opened = upgraded(await context.service.cipher.open(context.transaction, entry))
    patch = change.applied_to(msgspec.json.decode(opened.value), opened.scope)
    return await update(context, entry_id, version, patch)


async def update_checked(
    context: OperationContext, entry_id: str, version: int, patch: CheckedPatch
) -> Entry:
    """Replaces fields of an entry at `version` by checked ones.

    Raises MemoryNotFoundError, MemoryAccessError, MemoryConflictError, SchemaViolationError,
    MemoryCapacityError.
    """
    await held_lease(context)
    old, target = await load_authorized_target(context, Verb.UPDATE, entry_id)
    if old.version != version:
        await _refuse_version(context, old)
    await guard(context, old)
    refuse_governed(old.kind)
    opened = upgraded(await context.service.cipher.open(context.transaction, old))
    shared = TIERS[old.tier].isolation is Isolation.NAMESPACE
    change, given = patch.change, patch.fields
    fields: dict[str, Any] = dict(given)
    if change.expires_at is None and change.ttl is UNSET:
        fields["expires_at"] = expiry(old.ttl, None, context.moment)
    new = msgspec.structs.replace(
        opened,
        version=old.version + 1,
        updated_at=context.now,
        curated_by=context.principal.id if shared else None,
        **fields,
    )
    if "scope" in given:
        scope = own_scope(context.principal, old.tier, new.scope)
        new = msgspec.structs.replace(new, scope=scope)
    check_reseal(old, new)
    new = _with_meaning(context.principal, opened, new, change)
    if "value" in given:
        await check_value(context, target.namespace, new)
    if new.scope != old.scope or (new.ttl == TASK_LIFETIME != old.ttl):
        scope = await _enter_work(context, new)
        new = msgspec.structs.replace(new, scope=scope)
        await guard(context, new)
    if new.scope.session_id != old.scope.session_id:
        # The opened entry has the full name of its namespace.
        await _free_name(context, new)
    await check_context(context, change.context_id or None)
    new = updated(context, opened, new, change)
    new = await replace_sources(context, opened, new, patch.sources)
    new = with_derived(await redact_entry(context, new))
    same_task = new.scope.task_id == old.scope.task_id
    await check_task(context, new, old if same_task else None)
    await check_quota(context, new, old)
    await replace_entry(context, old, new)
    await pass_on_subjects(context, opened, new)
    if await _may_read(context, old):
        return new
    # A caller that may write and not read gets only the fields that it sent.
    own = provenance_of(context.principal, shared, change.origin or None, change.source or None)
    return msgspec.structs.replace(
        new,
        value=new.value if "value" in given else b"",
        tags=new.tags if "tags" in given else (),
        subjects=(),
        provenance=msgspec.structs.replace(own, derived_from=patch.sources or ()),
    )


async def delete(context: OperationContext, entry_id: str, version: int | None = None) -> None:
    """Removes an entry permanently; with `version` only if the entry has that version.

    Raises MemoryNotFoundError, MemoryAccessError, MemoryConflictError, ValidationError.
    """
    await held_lease(context)
    entry = await load_authorized_entry(context, Verb.DELETE, entry_id)
    if version is not None and entry.version != version:
        await _refuse_version(context, entry)
    await refuse_removal(context, entry)
    await guard(context, entry)
    await remove_entry(context, EventType.DELETED, entry)


def _with_meaning(principal: Principal, old: Entry, new: Entry, change: EntryPatch) -> Entry:
    """Returns the updated entry with its kind, against which a new value is checked, and its
    subjects.

    old: the opened entry
    """
    kind = old.kind if change.kind is UNSET else change.kind
    if change.value is not UNSET or change.kind is not UNSET:
        kind, version = check_kind(kind, new.tier, msgspec.json.decode(new.value))
        new = msgspec.structs.replace(new, kind=kind, kind_version=version)
    if change.subjects is not UNSET:
        subjects = check_subjects(principal, change.subjects)
    else:
        subjects = check_count(tuple(dict.fromkeys((*old.subjects, *(principal.subjects or ())))))
    return msgspec.structs.replace(new, subjects=subjects)


async def _with_default_ttl(context: OperationContext, entry: Entry) -> Entry:
    """The entry with the `ttl` of its tier if it has none. Its own `expires_at` stays."""
    ttl = (await context.load_tiers()).effective[entry.tier].default_ttl
    if entry.ttl is not None or ttl is None:
        return entry
    expires_at = entry.expires_at or expiry(ttl, None, context.moment)
    return msgspec.structs.replace(entry, ttl=ttl, expires_at=expires_at)


async def _may_read(context: OperationContext, entry: Entry) -> bool:
    return context.allows(Verb.READ, await load_target(context, Verb.READ, entry))


async def _insert(context: OperationContext, entry: Entry) -> bool:
    if await insert_entry(context, entry):
        return True
    return await _end_expired(context, entry) and await insert_entry(context, entry)


async def _end_expired(context: OperationContext, entry: Entry) -> bool:
    """Removes expired entries with the name of `entry` that the sweep has not removed yet. Returns
    whether the name is free afterwards and was not before."""
    holders = await find_holders(context, entry)
    expired = [one for one in holders if is_expired(one, context.now)]
    for holder in expired:
        await remove_entry(context, EventType.EXPIRED, holder, by_system=True)
    return bool(expired) and len(expired) == len(holders)


async def _free_name(context: OperationContext, entry: Entry) -> None:
    """Raises EntryExistsError if the new name of an entry is taken."""
    if not await _end_expired(context, entry):
        await _refuse_existing(context, entry)


async def _refuse_existing(context: OperationContext, entry: Entry) -> None:
    """Raises EntryExistsError if the entry's name is taken."""
    holder = await find_holder(context, entry)
    if holder is None:
        return
    hint = (
        "an entry with this namespace and key exists; read it, and send its version as `If-Match`"
        " of a PATCH of its id, or of a PUT, to change it"
    )
    raise EntryExistsError(hint, **await _shown(context, holder))


async def _refuse_version(context: OperationContext, entry: Entry) -> None:
    hint = "the entry has another version now; read it, merge, and send the current version"
    raise MemoryConflictError(hint, **await _shown(context, entry))


async def _shown(context: OperationContext, entry: Entry) -> dict[str, Any]:
    """Returns the conflicting entry for the error: complete, or None if the caller may not read
    it."""
    if not await _may_read(context, entry):
        return {}
    current = await context.service.cipher.open(context.transaction, entry)
    return {"current": current, "current_version": current.version}


async def _enter_work(context: OperationContext, entry: Entry) -> Scope:
    """Checks that `principal` may bind memory to this scope, whose log will contain events about
    it, and returns the complete scope."""
    scope, task = await resolve_scope(context, entry.scope)
    working = TIERS[entry.tier].admission is Admission.ASSIGNEE
    work = await load_task_relations(context, scope, task, own=working)
    is_over = False
    if work is not None and not working:
        is_over = work.is_terminal
        # Other tiers outlive a task; current and former workers and participants may refer to the
        # task.
        work = WorkRelations(takes_part=work.takes_part or work.assigned == context.principal.id)
    own = owner_target(context.tenant, context.principal.id, entry.namespace)
    target = replace(own, work=work)
    context.authorize(Verb.CREATE, target)
    if is_over and entry.ttl == TASK_LIFETIME:
        raise ValidationError("the task is over, so nothing can last as long as it any more")
    return scope
