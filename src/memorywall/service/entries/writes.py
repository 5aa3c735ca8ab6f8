"""The only functions that create, replace and rename entries.

Each redacts the entry, derives what its kind derives, enforces the limits, seals, stores, and
appends an event. Whoever creates an entry, a request, an operation of a kind or a job, calls them.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from memorywall.kinds.registry import KINDS, Derived
from memorywall.records.clock import after, parse_duration
from memorywall.records.entry import Entry
from memorywall.records.errors import ResourceConflictError
from memorywall.records.event import EventType
from memorywall.records.feature_errors import RuleError
from memorywall.service.entries.admission import admit
from memorywall.service.entries.capacity import check_task, enforce_capacity
from memorywall.service.entries.kind_rules import (
    derived_from_value,
    to_stored,
    with_fields,
    with_stored_instants,
)
from memorywall.service.entries.quotas import check_quota
from memorywall.service.entries.redaction import redact_entry
from memorywall.service.requests.event_log import append_entry_event
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.run_secrets import RunSecret
from memorywall.service.requests.validation import expiry
from memorywall.tiers import TIERS


async def create_entry(
    context: OperationContext,
    entry: Entry,
    *,
    policy: str | None = None,
    data: dict[str, Any] | None = None,
) -> Entry | None:
    """Stores a new entry and returns it as it is stored, with its value in clear text. Returns None
    without a row if its unique name is taken.

    An entry without an expiry gets the lifetime of its kind, or else the `ttl` of its tier. A rule
    of its kind may store a proposal in its place, see `admission.py`.

    policy: what to do with personal data, `keep`, `mark` or `mask`; default: the setting
        `personal_data`
    data: see `append_entry_event`
    Raises MemoryCapacityError.
    """
    admitted = await admit(context, None, await with_lifetime(context, entry))
    if admitted.id != entry.id:
        return await create_proposal(context, admitted, policy, data)
    return await _insert(context, admitted, policy, data)


async def _insert(
    context: OperationContext, entry: Entry, policy: str | None, data: dict[str, Any] | None
) -> Entry | None:
    entry, derived = await _derive(context, entry, policy)
    entry = await enforce_capacity(context, entry)
    stored = await to_stored(context, entry, derived)
    if not await context.transaction.entries.insert(stored, context.now):
        return None
    await append_entry_event(context, EventType.CREATED, entry, stored=stored, data=data)
    return entry


async def create_proposal(
    context: OperationContext,
    entry: Entry,
    policy: str | None = None,
    data: dict[str, Any] | None = None,
) -> Entry:
    """Stores a proposal, whose key follows from its content, unless the same one waits already.
    Returns the stored one."""
    stored = await _insert(context, entry, policy, data)
    if stored is not None:
        return stored
    place, session = (entry.tier, entry.owner, entry.namespace, entry.key), entry.scope.session_id
    waiting = await context.transaction.entries.find(*place, session)
    if waiting is None:
        raise ResourceConflictError("the proposal cannot be stored; try again")
    return await context.service.cipher.open(context.transaction, waiting)


async def create_new_entry(
    context: OperationContext,
    entry: Entry,
    *,
    policy: str | None = None,
    data: dict[str, Any] | None = None,
) -> Entry:
    """Stores a new entry like `create_entry`, whose name only an entry of a caller can have, and
    which cannot wait for a person.

    Raises ResourceConflictError if one has it, RuleError for an entry of which a rule would store a
    proposal, MemoryCapacityError.
    """
    stored = await create_entry(context, entry, policy=policy, data=data)
    if stored is None:
        name = (entry.kind or "entry").replace("_", " ")
        raise ResourceConflictError(
            f"an entry of another kind has the name of this {name} in `{entry.namespace}`;"
            " delete it"
        )
    refuse_proposal(entry.kind, stored)
    return stored


def refuse_proposal(kind: str | None, stored: Entry) -> None:
    """Raises RuleError if a proposal was stored in place of an entry of a kind, for operations
    whose results are of that kind."""
    if stored.kind != kind:
        raise RuleError("the tier takes what agents write by promotion only", rule="admission")


async def replace_entry(
    context: OperationContext,
    old: Entry,
    new: Entry,
    *,
    policy: str | None = None,
    data: dict[str, Any] | None = None,
    is_decided: bool = False,
) -> Entry:
    """Stores the next version of an entry that was read in this transaction, and returns it as it
    is stored, with its value in clear text. A rule of its kind may store a proposal instead.

    old: the entry as read, with its value sealed
    new: the next version, with its value in clear text
    policy: see `create_entry`
    data: see `append_entry_event`
    is_decided: whether the change follows from a decision about a promotion, which a closed tier
        does not weigh again; default: false
    Raises MemoryCapacityError.
    """
    new = await admit(context, old, new, is_decided=is_decided)
    if new.id != old.id:
        # The namespace of an opened entry may name a subject, also that of a proposal for it.
        hidden = msgspec.structs.replace(new, namespace=old.namespace)
        proposal = await create_proposal(context, hidden, policy, data)
        return msgspec.structs.replace(proposal, namespace=new.namespace)
    new, derived = await _derive(context, new, policy)
    if new.scope.task_id is not None:
        await check_task(context, new, old if new.scope.task_id == old.scope.task_id else None)
    if new.size > old.size or new.listed is not old.listed:
        await check_quota(context, new, old)
    # The namespace of an opened entry may name a subject whose digest the stored name has.
    named = new
    if new.namespace != old.namespace:
        named = msgspec.structs.replace(new, namespace=old.namespace)
    stored = await to_stored(context, named, derived)
    keep_old = TIERS[old.tier].durability.versioned
    await context.transaction.entries.replace(old, stored, keep_old=keep_old)
    await append_entry_event(
        context, EventType.UPDATED, named, previous_version=old.version, stored=stored, data=data
    )
    return new


def make_next_version(
    context: OperationContext, opened: Entry, value: bytes | None = None, **fields: Any
) -> Entry:
    """Returns the next version of an entry for `replace_entry`, which differs in these fields.

    opened: the entry as read, with its value in clear text
    value: its next value as JSON; default: that it has
    """
    fields["version"], fields["updated_at"] = opened.version + 1, context.now
    if value is not None:
        fields["value"], fields["size"] = value, len(value)
    return msgspec.structs.replace(opened, **fields)


async def rename_entry(context: OperationContext, old: Entry, new: Entry) -> None:
    """Stores the next version of an entry under another form of its name. Earlier versions keep
    theirs.

    old: the entry as read, with its value sealed
    new: its next version, with its value in clear text, and with a name in its stored form that no
        entry has
    """
    stored = await to_stored(context, new, derived_from_value(new))
    await context.transaction.entries.rename(old, stored)
    keep_old = TIERS[old.tier].durability.versioned
    await context.transaction.entries.replace(old, stored, keep_old=keep_old)
    await append_entry_event(
        context, EventType.UPDATED, new, previous_version=old.version, stored=stored
    )


async def _derive(
    context: OperationContext, given: Entry, policy: str | None
) -> tuple[Entry, Derived]:
    """Returns an entry, redacted and with the fields that its kind derives, and all that it
    derives."""
    entry, policy = given, policy or context.service.settings.personal_data
    registry, secrets = context.service.secrets, list[RunSecret]()
    if registry.values:
        run = given.provenance.session or given.scope.session_id
        secrets = registry.of(context.tenant, run)
    if secrets or policy != "keep":
        # The masks of a large value take longer than the event loop may be held.
        entry = await context.transaction.compute(
            len(given.value), partial(redact_entry, policy, given, secrets)
        )
    if entry.kind is not None:
        entry = with_stored_instants(entry)
    derived = derived_from_value(entry)
    return with_fields(entry, derived), derived


async def with_lifetime(context: OperationContext, entry: Entry) -> Entry:
    """Returns the entry with the lifetime of its kind or tier unless it has a `ttl`. Its own
    `expires_at` stays."""
    if entry.ttl is not None:
        return entry
    spec = None if entry.kind is None else KINDS.get(entry.kind)
    if spec is not None and spec.lifetime is not None:
        if entry.expires_at is not None or not spec.lifetime:
            return entry
        expires_at = after(context.moment, parse_duration(spec.lifetime))
        return msgspec.structs.replace(entry, expires_at=expires_at)
    ttl = (await context.load_tiers()).effective[entry.tier].default_ttl
    if ttl is None:
        return entry
    lasting = entry.expires_at or expiry(ttl, None, context.moment)
    return msgspec.structs.replace(entry, ttl=ttl, expires_at=lasting)
