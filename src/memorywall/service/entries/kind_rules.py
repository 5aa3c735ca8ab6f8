"""Checks the kind of an entry, and derives the fields that storage keeps beside the value.

For a sealed entry, derived literals are replaced by digests keyed by the tenant, so that equal
literals stay equal. Its kind, status, state, due instant, edges to ids and the instants that its
kind indexes stay in clear text.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

import msgspec

from memorywall.expressions.value_index import relation_of
from memorywall.kinds.indexed import store_instants
from memorywall.kinds.registry import (
    KINDS,
    NOTHING_DERIVED,
    Derived,
    KindError,
    check,
    derive,
    read,
    spec_of,
)
from memorywall.kinds.spec import (
    ABOUT,
    DERIVED_FROM,
    SUPERSEDED_BY,
    WITHDRAWN_BY,
    Edge,
    KindSpec,
    Lookup,
)
from memorywall.records.entry import SEALED_SENSITIVITIES, Entry
from memorywall.records.errors import ValidationError
from memorywall.records.tier import Tier
from memorywall.service.entries.value_index import INDEXED_TIERS, index_rows, rows_of_kind
from memorywall.service.requests.operation_context import OperationContext

_decode = msgspec.json.Decoder(dict[str, Any]).decode


def check_kind(name: str | None, tier: Tier, value: dict[str, Any]) -> tuple[str | None, int]:
    """The kind of a value and its version.

    Raises ValidationError for an unknown kind, a kind of another tier, and a value that does not
    fit.
    """
    if name is None:
        return None, 0
    try:
        # The fields that the kind derives are also checked before any write.
        derive(name, check(name, tier, value))
    except KindError as error:
        raise ValidationError(str(error)) from None
    return name, KINDS[name].version


def refuse_governed(name: str | None) -> None:
    """Raises ValidationError for a governed kind; the message names its operations."""
    spec = spec_of(name)
    if spec is not None and spec.is_governed:
        _refuse(spec, "written", spec.operations)


async def refuse_removal(context: OperationContext, entry: Entry) -> None:
    """Raises ValidationError for an entry that plain requests do not delete; the message names the
    operations that do. What is left of a session that is gone may be deleted."""
    if await is_removed_by_others(context, entry):
        refuse_removal_of(entry.kind)


def refuse_removal_of(kind: str | None) -> None:
    """Raises ValidationError for a kind whose entries plain requests do not delete."""
    spec = spec_of(kind)
    if spec is not None and spec.removed_by:
        _refuse(spec, "deleted", spec.removed_by)


async def is_removed_by_others(context: OperationContext, entry: Entry) -> bool:
    """Returns whether only operations of its kind delete an entry."""
    spec = spec_of(entry.kind)
    if spec is None or not spec.removed_by:
        return False
    session = entry.scope.session_id
    if session is None:
        return True
    return await context.transaction.entries.get(session, context.now) is not None


def _refuse(spec: KindSpec, action: str, operations: Iterable[str]) -> NoReturn:
    names = " or ".join(f"`{one}`" for one in operations)
    raise ValidationError(f"an entry of kind `{spec.name}` is {action} only by {names}")


async def to_stored(context: OperationContext, entry: Entry, derived: Derived) -> Entry:
    """Returns the stored form of an entry with a value and subjects in clear text.

    derived: the fields that its kind derives from its value
    """
    stored = entry
    if entry.sensitivity in SEALED_SENSITIVITIES:
        stored = await context.service.cipher.seal(context.transaction, entry)
    rows = await index_rows(context, entry) if entry.tier in INDEXED_TIERS else []
    if entry.kind is not None:
        rows += rows_of_kind(entry)
    for one in derived.lookups:
        rows.append(await lookup_row(context, entry, one))
    sources, newer = entry.provenance.derived_from, entry.provenance.superseded_by
    withdrawal = entry.provenance.withdrawal
    if not (rows or entry.subjects or sources or newer or withdrawal or derived.edges):
        return msgspec.structs.replace(stored, edges=()) if entry.edges else stored
    edges = [Edge(ABOUT, subject) for subject in entry.subjects]
    edges += [Edge(DERIVED_FROM, one.id, is_id=True) for one in sources]
    if newer is not None:
        edges.append(Edge(SUPERSEDED_BY, newer, is_id=True))
    if withdrawal is not None:
        edges += [Edge(WITHDRAWN_BY, one.id, is_id=True) for one in withdrawal.by]
    edges += derived.edges
    subjects = entry.subjects
    if entry.sensitivity in SEALED_SENSITIVITIES:
        subjects = tuple([await _digest(context, subject) for subject in subjects])
        edges = [
            one if one.is_id else Edge(one.relation, await _digest(context, one.target))
            for one in edges
        ]
    pairs = tuple(dict.fromkeys([*((one.relation, one.target) for one in edges), *rows]))
    return msgspec.structs.replace(stored, subjects=subjects, edges=pairs)


async def lookup_row(context: OperationContext, entry: Entry, lookup: Lookup) -> tuple[str, str]:
    """Returns the edge that is the row of a look-up of an entry in the stored form of its
    namespace."""
    relation = relation_of(lookup.name, entry.kind)
    if entry.sensitivity in SEALED_SENSITIVITIES:
        return relation, await _digest(context, lookup_target(entry.namespace, lookup.parts[:1]))
    return relation, lookup_target(entry.namespace, lookup.parts)


def lookup_target(namespace: str, parts: Iterable[str]) -> str:
    """Returns the target of the row of a look-up, or the beginning of all that begin so."""
    return "\n".join((namespace, *parts))


def with_stored_instants(entry: Entry) -> Entry:
    """Returns the entry with the instants that its kind indexes in their stored form."""
    spec = spec_of(entry.kind)
    fields = () if spec is None else spec.indexed_at(entry.kind_version)
    if not any(field.is_instant for field in fields):
        return entry
    given = _decode(entry.value)
    value, _ = store_instants(fields, given)
    if value is given:
        return entry
    encoded = msgspec.json.encode(value)
    return msgspec.structs.replace(entry, value=encoded, size=len(encoded))


def derived_from_value(entry: Entry) -> Derived:
    """Returns the fields that the kind derives; none if the value does not fit the kind any
    more."""
    if entry.kind is None:
        return NOTHING_DERIVED
    value = read(entry.kind, entry.kind_version, _decode(entry.value))
    if value is None:
        spec = spec_of(entry.kind)
        return NOTHING_DERIVED if spec is None else Derived(listed=spec.listed)
    try:
        return derive(entry.kind, value)
    except KindError:
        return Derived(listed=KINDS[entry.kind].listed)


def with_fields(entry: Entry, derived: Derived) -> Entry:
    """Returns the entry with the status, due instant and listing that its kind derives."""
    if derived is NOTHING_DERIVED and entry.kind is None:
        return entry
    if (entry.status, entry.due_at, entry.listed) == (
        derived.status,
        derived.due_at,
        derived.listed,
    ):
        return entry
    return msgspec.structs.replace(
        entry, status=derived.status, due_at=derived.due_at, listed=derived.listed
    )


async def _digest(context: OperationContext, literal: str) -> str:
    return await context.service.cipher.literal_digest(context.transaction, literal, context.now)
