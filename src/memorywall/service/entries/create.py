"""Creates entries by name (RFC-0015 section 1), and replaces the value of a name."""

from __future__ import annotations

from msgspec.structs import replace

from memorywall.records.decision import Verb
from memorywall.records.draft import EntryPut, NewEntry
from memorywall.records.entry import EMPTY_SCOPE, SEALED_SENSITIVITIES, Entry
from memorywall.records.errors import (
    EntryExistsError,
    MemoryCapacityError,
    MemoryNotFoundError,
    PreconditionError,
)
from memorywall.records.tier import Admission, Isolation
from memorywall.service.access.targets import load_first_target
from memorywall.service.entries.checks import CheckedEntry, check_new, check_patch
from memorywall.service.entries.names import free_name, refuse_existing, remove_expired
from memorywall.service.entries.namespace_entry import enter_namespace
from memorywall.service.entries.provenance import add_sources, check_context
from memorywall.service.entries.update import update_checked
from memorywall.service.entries.value_schemas import check_value
from memorywall.service.entries.work import enter_work
from memorywall.service.entries.writes import create_entry, with_lifetime
from memorywall.service.requests.fencing import guard, require_lease
from memorywall.service.requests.namespace_names import (
    find_holder,
    has_several_forms,
    namespace_forms,
    stored_namespace,
)
from memorywall.service.requests.operation_context import OperationContext
from memorywall.tiers import TIERS
from memorywall.wire.operation import ANY_VERSION

_NOT_THERE = "there is no entry of this name; leave `If-Match` out to create it"
_UNCONDITIONAL = (
    "an entry of this name exists; read it, and send its version as `If-Match` to replace it"
)


async def create(context: OperationContext, draft: NewEntry) -> Entry:
    """Creates an entry.

    Raises ValidationError, ValueTooLargeError, MemoryAccessError, SchemaViolationError,
    EntryExistsError, MemoryCapacityError.
    """
    return await create_checked(context, check_new(context, draft))


async def create_checked(context: OperationContext, checked: CheckedEntry) -> Entry:
    """Creates a checked entry. Raises MemoryAccessError, SchemaViolationError, EntryExistsError,
    MemoryCapacityError."""
    require_lease(context)
    entry = checked.entry
    full_name = entry.namespace
    if entry.sensitivity in SEALED_SENSITIVITIES:
        entry = replace(entry, namespace=await stored_namespace(context, entry))
    namespace = None
    if not entry.owner:
        namespace = await enter_namespace(context, entry.tier, entry.namespace, full_name)
    # Transactions of a tenant are serial, so ids follow the order of commits.
    made_id = context.service.ids.next("mem")
    entry = replace(entry, id=made_id, key=entry.key or made_id)
    if namespace is not None:
        await check_value(context, namespace, entry)
    if entry.scope is not EMPTY_SCOPE:
        entry = await with_lifetime(context, entry)
        entry = replace(entry, scope=await enter_work(context, entry))
    await guard(context, entry)
    if entry.provenance.context is not None:
        await check_context(context, entry.provenance.context)
    if checked.sources:
        entry = await add_sources(context, entry, checked.sources)
    named = replace(entry, namespace=full_name) if entry.namespace != full_name else entry
    if has_several_forms(named):
        # The store knows the stored form only, and another form may have the name.
        await free_name(context, named)
    try:
        stored = await create_entry(context, entry)
        if stored is None and await remove_expired(context, named):
            stored = await create_entry(context, entry)
    except MemoryCapacityError:
        await refuse_existing(context, named)
        raise
    if stored is None:
        await refuse_existing(context, named)
        raise EntryExistsError
    return replace(stored, namespace=full_name) if stored.namespace != full_name else stored


async def put(
    context: OperationContext,
    given: EntryPut,
    version: int | None = None,
    *,
    must_create: bool = False,
) -> Entry:
    """Creates an entry, or replaces the value and the given fields of the entry of its name.

    version: the version to replace; without it, and with `ANY_VERSION`, an entry is only replaced
        in a namespace where the last write wins
    must_create: whether an existing entry is an EntryExistsError; default: false

    Raises PreconditionError for an existing entry without a version, MemoryNotFoundError for a
    version without an entry, and the errors of creation and update.
    """
    checked = check_new(context, given.as_new())
    holder = await find_holder(context, checked.entry)
    if holder is None:
        if version is None:
            return await create_checked(context, checked)
        await authorize_creation(context, checked.entry)
        raise MemoryNotFoundError(_NOT_THERE)
    if version == ANY_VERSION:
        version = None
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


async def authorize_creation(context: OperationContext, entry: Entry) -> None:
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
