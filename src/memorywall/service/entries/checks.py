"""Checks of a write that need no stored data."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from msgspec import UNSET

from memorywall.records.decision import Verb
from memorywall.records.draft import EntryPatch, NewEntry
from memorywall.records.entry import EMPTY_SCOPE, Entry, Source
from memorywall.records.errors import (
    MemoryAccessError,
    ValidationError,
)
from memorywall.records.identifiers import is_same_name, normalize_name
from memorywall.records.tier import Isolation, Tier
from memorywall.service.access.session_binding import bind_scope
from memorywall.service.access.subjects import check_subjects
from memorywall.service.access.targets import owner_target
from memorywall.service.entries.kind_rules import check_kind, refuse_governed
from memorywall.service.entries.provenance import add_place, check_sources, provenance_of
from memorywall.service.requests.namespace_names import check_full_name, own_namespace
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.validation import (
    check_key,
    check_namespace,
    check_scope,
    check_tags,
    encode_value,
    expiry,
    stored_lifetime,
)
from memorywall.tiers import TIERS
from memorywall.tiers import shared as shared_tier


@dataclass(frozen=True, slots=True)
class CheckedEntry:
    """A new entry after all checks that need no stored data; still with the full name of its
    namespace, without an id, and without a key if the server makes the key."""

    entry: Entry
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class CheckedPatch:
    """The fields of an update after all checks that need no stored data.

    sources: None to keep those of the entry
    """

    change: EntryPatch
    fields: dict[str, object]
    sources: tuple[Source, ...] | None


def check_new(context: OperationContext, draft: NewEntry) -> CheckedEntry:
    """Checks a new entry without stored data.

    Raises ValidationError, ValueTooLargeError, MemoryAccessError.
    """
    shared = TIERS[draft.memory_type].isolation is Isolation.NAMESPACE
    if draft.agent_id is not None and not is_same_name(draft.agent_id, context.principal.id):
        raise MemoryAccessError("`agent_id` must be the agent this request speaks for")
    principal = context.principal
    place = normalize_name(own_namespace(principal, draft.namespace))
    if not shared:
        target = owner_target(principal.tenant, principal.id, place)
        if principal.session is not None:
            session = principal.session.id
            target = msgspec.structs.replace(target, tier=draft.memory_type, session=session)
        context.authorize(Verb.CREATE, target)
    if draft.kind is not None:
        refuse_governed(draft.kind)
    entry = _drafted(context, draft, place)
    return CheckedEntry(entry, check_sources(draft.derived_from) if draft.derived_from else ())


def check_patch(context: OperationContext, change: EntryPatch) -> CheckedPatch:
    """Checks an update without stored data.

    Raises ValidationError, ValueTooLargeError.
    """
    if change.is_empty:
        raise ValidationError("nothing to change: give at least one field")
    if change.kind is not UNSET:
        refuse_governed(change.kind)
    return CheckedPatch(
        change=change,
        fields=_checked(change, context.moment),
        sources=None if change.derived_from is UNSET else check_sources(change.derived_from),
    )


def _drafted(context: OperationContext, draft: NewEntry, namespace: str) -> Entry:
    """Returns the checked entry of a request, still without an id.

    namespace: the full name of its namespace
    """
    principal, now = context.principal, context.now
    shared = TIERS[draft.memory_type].isolation is Isolation.NAMESPACE
    value = encode_value(draft.value)
    kind, kind_version = None, 0
    if draft.kind is not None:
        kind, kind_version = check_kind(draft.kind, draft.memory_type, draft.value)
    check_namespace(draft.namespace)
    if namespace != draft.namespace:
        check_namespace(namespace)
    scope, expires_at = EMPTY_SCOPE, None
    subjects: tuple[str, ...] = ()
    if draft.scope is not None:
        scope = check_scope(draft.scope)
    provenance = provenance_of(principal, shared, draft.origin, draft.source, draft.context_id)
    if scope is not EMPTY_SCOPE or principal.session is not None:
        scope = bind_scope(principal, draft.memory_type, scope)
        provenance = add_place(principal, scope, provenance)
    if draft.subjects or principal.subjects is not None:
        subjects = check_subjects(principal, draft.subjects or ())
    ttl = None if draft.ttl is None else stored_lifetime(draft.ttl)
    if ttl is not None or draft.expires_at is not None:
        expires_at = expiry(ttl, draft.expires_at, context.moment)
    return Entry(
        tenant=principal.tenant,
        id="",
        tier=draft.memory_type,
        owner="" if shared else principal.id,
        agent_id=principal.id,
        namespace=_check_place(draft.memory_type, check_full_name(namespace)),
        key="" if draft.key is UNSET else check_key(draft.key),
        value=value,
        size=len(value),
        scope=scope,
        tags=check_tags(draft.tags) if draft.tags else (),
        ttl=ttl,
        expires_at=expires_at,
        pinned=draft.pinned,
        priority=draft.priority,
        sensitivity=draft.sensitivity,
        created_at=now,
        updated_at=now,
        created_by=principal.id,
        curated_by=principal.id if shared else None,
        provenance=provenance,
        kind=kind,
        kind_version=kind_version,
        subjects=subjects,
    )


def _check_place(tier: Tier, namespace: str) -> str:
    """Returns a valid namespace for entries of this tier."""
    if problem := shared_tier.namespace_problem(tier, namespace):
        raise ValidationError(problem)
    return namespace


def _checked(change: EntryPatch, moment: int) -> dict[str, object]:
    """Returns the checked fields of an update."""
    fields: dict[str, object] = {}
    if change.value is not UNSET:
        fields["value"] = encode_value(change.value)
    if change.scope is not UNSET:
        fields["scope"] = check_scope(change.scope)
    if change.tags is not UNSET:
        fields["tags"] = check_tags(change.tags)
    if change.ttl is not UNSET:
        absolute = None if change.expires_at is UNSET else change.expires_at
        ttl = stored_lifetime(change.ttl)
        fields.update(ttl=ttl, expires_at=expiry(ttl, absolute, moment))
    elif change.expires_at is not UNSET and change.expires_at is not None:
        fields["expires_at"] = expiry(None, change.expires_at, moment)
    for name in ("pinned", "priority", "sensitivity"):
        if getattr(change, name) is not UNSET:
            fields[name] = getattr(change, name)
    return fields
