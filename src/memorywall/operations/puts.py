"""Writes by name: create an entry, or replace the value of the entry of that name."""

from __future__ import annotations

from memorywall.operations.binding import operation
from memorywall.operations.entries import create_checked, update_checked
from memorywall.operations.entry_checks import CheckedEntry, check_new, check_patch
from memorywall.records.decision import Verb
from memorywall.records.draft import EntryPut
from memorywall.records.entry import Entry
from memorywall.records.errors import (
    EntryExistsError,
    MemoryNotFoundError,
    PreconditionError,
    RequestError,
)
from memorywall.records.tier import Admission, Isolation
from memorywall.service.access.targets import load_first_target
from memorywall.service.requests.namespace_names import find_holder, namespace_forms
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.tiers import TIERS
from memorywall.wire.entries import EntryResponse, view

_ONE_CONDITION = "send `If-Match` to replace or `If-None-Match: *` to create, and not both"
_NOT_THERE = "there is no entry of this name; leave `If-Match` out to create it"
_UNCONDITIONAL = (
    "an entry of this name exists; read it, and send its version as `If-Match` to replace it"
)


@operation("put_entry", shows=lambda shown: (shown.id,))
async def put_entry(context: OperationContext, call: OperationCall) -> EntryResponse:
    if call.if_match is not None and call.if_none_match:
        raise RequestError(_ONE_CONDITION)
    return view(await put(context, call.body, call.if_match, must_create=call.if_none_match))


async def put(
    context: OperationContext,
    given: EntryPut,
    version: int | None = None,
    *,
    must_create: bool = False,
) -> Entry:
    """Creates an entry, or replaces the value and the given fields of the entry of its name.

    version: the version to replace; without it an entry is only replaced in a namespace where the
        last write wins
    must_create: whether an existing entry is an EntryExistsError; default: false

    Raises PreconditionError for an existing entry without a version, MemoryNotFoundError for a
    version without an entry, and the errors of creation and update.
    """
    checked = check_new(context, given.as_new())
    holder = await find_holder(context, checked.entry)
    if holder is None:
        if version is None:
            return await create_checked(context, checked)
        await _authorize_creation(context, checked.entry)
        raise MemoryNotFoundError(_NOT_THERE)
    if version is None and not must_create and await _lets_last_write_win(context, holder):
        version = holder.version
    if version is not None:
        patch = check_patch(context, given.as_patch())
        return await update_checked(context, holder.id, version, patch)
    return await _refuse(context, checked, must_create=must_create)


async def _lets_last_write_win(context: OperationContext, holder: Entry) -> bool:
    """Whether the namespace of an entry accepts replacements without a precondition."""
    spec = TIERS[holder.tier]
    if spec.isolation is not Isolation.NAMESPACE or spec.admission is Admission.CLAIM_HOLDER:
        return False
    namespace = await context.transaction.namespaces.get(holder.namespace)
    return namespace is not None and namespace.last_write_wins


async def _authorize_creation(context: OperationContext, entry: Entry) -> None:
    """Raises MemoryAccessError for a namespace that the caller may not write to, whether or not an
    entry has the name."""
    if TIERS[entry.tier].isolation is Isolation.NAMESPACE:
        forms = await namespace_forms(context, entry.namespace)
        target = await load_first_target(context, entry.tier, forms)
        context.authorize(Verb.CREATE, target)


async def _refuse(context: OperationContext, checked: CheckedEntry, *, must_create: bool) -> Entry:
    """Refuses a name that is taken, after every check of a creation, so that the refusal tells a
    caller no more than that of a creation."""
    try:
        return await create_checked(context, checked)
    except EntryExistsError:
        if must_create:
            raise
        raise PreconditionError(_UNCONDITIONAL) from None
