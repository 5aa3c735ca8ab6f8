"""Changes and removes entries (RFC-0015 section 3)."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from memorywall.records.attached_members import MARK
from memorywall.records.decision import Verb
from memorywall.records.draft import EntryMergePatch, EntryPatch
from memorywall.records.entry import Entry, ValueCorrection
from memorywall.records.event import EventType
from memorywall.records.principal import Principal
from memorywall.service.access.session_binding import bind_scope
from memorywall.service.access.subjects import check_count, check_reseal, check_subjects
from memorywall.service.access.targets import (
    load_authorized_entry,
    load_authorized_target,
    load_target,
)
from memorywall.service.entries.checks import CheckedPatch, check_patch
from memorywall.service.entries.kind_rules import check_kind, refuse_governed, refuse_removal
from memorywall.service.entries.names import free_name, may_read, refuse_version
from memorywall.service.entries.provenance import (
    check_context,
    pass_on_subjects,
    provenance_of,
    replace_sources,
    update_provenance,
)
from memorywall.service.entries.redaction import refuse_unredacted
from memorywall.service.entries.removal import remove_entry, remove_replaced_members
from memorywall.service.entries.value_schemas import check_value
from memorywall.service.entries.work import enter_work
from memorywall.service.entries.writes import make_next_version, replace_entry
from memorywall.service.requests.fencing import guard, require_lease
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.validation import TASK_LIFETIME, expiry
from memorywall.wire.entries import upgrade_entry


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
        await refuse_version(context, entry)
    opened = upgrade_entry(await context.service.cipher.open(context.transaction, entry))
    patch = change.applied_to(msgspec.json.decode(opened.value), opened.scope)
    return await update(context, entry_id, version, patch)


async def update_checked(
    context: OperationContext,
    entry_id: str,
    version: int,
    patch: CheckedPatch,
    correction: ValueCorrection | None = None,
) -> Entry:
    """Replaces fields of an entry at `version` by checked ones.

    correction: of an update that corrects the value; default: none

    Raises MemoryNotFoundError, MemoryAccessError, MemoryConflictError, SchemaViolationError,
    MemoryCapacityError.
    """
    require_lease(context)
    old, target = await load_authorized_target(context, Verb.UPDATE, entry_id)
    if old.version != version:
        await refuse_version(context, old)
    await guard(context, old)
    opened = await context.service.cipher.open(context.transaction, old)
    if old.kind is not None:
        refuse_governed(old.kind)
        opened = upgrade_entry(opened)
    shared = not old.owner
    change, given = patch.change, patch.fields
    fields: dict[str, Any] = {**given, **_implied_fields(context, opened, change)}
    new = make_next_version(
        context,
        opened,
        curated_by=context.principal.id if shared else None,
        subjects=_subjects_of(context.principal, opened, change),
        **fields,
    )
    if "scope" in given:
        scope = bind_scope(context.principal, old.tier, new.scope)
        new = replace(new, scope=scope)
    check_reseal(old, new)
    if "value" in given:
        await check_value(context, target.namespace, new)
    if new.scope != old.scope or (new.ttl == TASK_LIFETIME != old.ttl):
        scope = await enter_work(context, new)
        new = replace(new, scope=scope)
        await guard(context, new)
    if new.scope.session_id != old.scope.session_id:
        # The opened entry has the full name of its namespace.
        await free_name(context, new)
    if change.context_id:
        await check_context(context, change.context_id)
    new = update_provenance(context, opened, new, change, correction)
    if patch.sources is not None or opened.provenance.derived_from:
        new = await replace_sources(context, opened, new, patch.sources)
    new = await replace_entry(context, old, new)
    if MARK in opened.value or MARK in new.value:
        refuse_unredacted(context, new)
        await remove_replaced_members(context, opened, new)
    if new.subjects != opened.subjects:
        await pass_on_subjects(context, opened, new)
    shown = await hide_unread(context, old, new)
    if shown is new:
        return new
    # A caller that may write and not read gets only the fields that it sent.
    own = provenance_of(context.principal, shared, change.origin or None, change.source or None)
    return replace(
        shown,
        value=new.value if "value" in given else b"",
        tags=new.tags if "tags" in given else (),
        provenance=replace(own, derived_from=patch.sources or ()),
    )


async def hide_unread(context: OperationContext, old: Entry, new: Entry) -> Entry:
    """Returns a written entry as its writer may see it: without what the caller may not read.

    old: the entry before the write
    """
    if await may_read(context, old):
        return new
    own = provenance_of(context.principal, not new.owner)
    return replace(new, value=b"", tags=(), subjects=(), provenance=own)


async def delete(context: OperationContext, entry_id: str, version: int | None = None) -> None:
    """Removes an entry permanently; with `version` only if the entry has that version.

    Raises MemoryNotFoundError, MemoryAccessError, MemoryConflictError, ValidationError.
    """
    require_lease(context)
    entry = await load_authorized_entry(context, Verb.DELETE, entry_id)
    if version is not None and entry.version != version:
        await refuse_version(context, entry)
    await refuse_removal(context, entry)
    await guard(context, entry)
    await remove_entry(context, EventType.DELETED, entry)


def _implied_fields(context: OperationContext, old: Entry, change: EntryPatch) -> dict[str, Any]:
    """Returns the fields of an updated entry that follow from the given ones: an expiry that is
    counted anew, and its kind with the version against which a new value is checked.

    old: the opened entry
    Raises ValidationError.
    """
    fields: dict[str, Any] = {}
    if change.expires_at is None and change.ttl is UNSET:
        fields["expires_at"] = expiry(old.ttl, None, context.moment)
    if change.kind is None:
        return {**fields, "kind": None, "kind_version": 0}
    kind = old.kind if change.kind is UNSET else change.kind
    if kind is None or (change.value is UNSET and change.kind is UNSET):
        return fields
    value = msgspec.json.decode(old.value) if change.value is UNSET else change.value
    kind, version = check_kind(kind, old.tier, value)
    return {**fields, "kind": kind, "kind_version": version}


def _subjects_of(principal: Principal, old: Entry, change: EntryPatch) -> tuple[str, ...]:
    """Returns the subjects of an updated entry. Raises ValidationError, MemoryAccessError.

    old: the opened entry
    """
    if change.subjects is not UNSET:
        return check_subjects(principal, change.subjects)
    if not principal.subjects:
        return old.subjects
    return check_count(tuple(dict.fromkeys((*old.subjects, *principal.subjects))))
