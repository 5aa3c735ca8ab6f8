"""Look-up of an entry by its name, in the narrowest tier that has one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import msgspec

from memorywall.operations.binding import operation
from memorywall.operations.entries import get
from memorywall.operations.filters import past_instant
from memorywall.records.decision import Verb
from memorywall.records.entry import Entry, authority_of, is_expired
from memorywall.records.filter import LARGEST_PAGE, EntryFilter
from memorywall.records.identifiers import name_forms
from memorywall.records.tier import Tier
from memorywall.service.access.targets import load_target
from memorywall.service.entries.matches import find_matches
from memorywall.service.entries.value_schemas import require_major
from memorywall.service.requests.namespace_names import namespace_forms
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.tiers import NAMESPACE_TIERS, TASK_TIERS
from memorywall.wire.entries import FoundEntry, NameQuery, ShadowedEntry, view

_SHARED = frozenset(NAMESPACE_TIERS)
_TIERS = tuple(Tier)
_BREADTH = {tier: place for place, tier in enumerate(_TIERS)}


class _Found(NamedTuple):
    """The entry of a name.

    entry: the first entry; None if the caller may read none
    own: the readable entries of the caller, and shared ones, without a session, the narrowest
        first; empty for a request that is bound to a person
    """

    entry: Entry | None
    own: Sequence[Entry]


@operation("find_entry", is_long=lambda call: call.query.schema_version is not None)
async def find_entry(context: OperationContext, call: OperationCall) -> FoundEntry:
    entry, own = await _find_by_name(context, call.query)
    if entry is None:
        return FoundEntry(entry=None)
    asked = call.query
    if asked.version is not None or asked.as_of is not None:
        as_of = past_instant("as_of", asked.as_of, context.now)
        entry = await get(context, entry.id, asked.version, as_of)
    elif len(own) == 1 and _lasts(context, asked, entry):
        call.lasting = entry
    await require_major(context, entry, asked.schema_version)
    # Entries of sessions have names of their own.
    shadows = [await _shadow(context, entry, one) for one in own if one.tier is not entry.tier]
    return FoundEntry(entry=view(entry), shadows=tuple(shadows))


async def _shadow(context: OperationContext, entry: Entry, other: Entry) -> ShadowedEntry:
    """Returns what a caller that gets an entry should know about another one of its name.

    entry: with its value in clear text
    other: a readable entry, as it is stored
    """
    opened = await context.service.cipher.open(context.transaction, other)
    return ShadowedEntry(
        id=other.id,
        memory_type=other.tier,
        version=other.version,
        authority=authority_of(other.provenance),
        conflicts=msgspec.json.decode(opened.value) != msgspec.json.decode(entry.value),
    )


async def _find_by_name(context: OperationContext, asked: NameQuery) -> _Found:
    """Finds the entry of a name that the caller may read, in the narrowest tier.

    Working memory of the named task comes first, of any owner; then the caller's own and shared
    memory; then readable memory of other agents. Within a tier, entries without a session come
    first, and then the newest.
    """
    tiers = _TIERS if asked.memory_type is None else (asked.memory_type,)
    own = await _find_own(context, asked, tiers)
    if own and _comes_first(own[0], asked, tiers):
        opened = await context.service.cipher.open(context.transaction, own[0])
        context.service.record_access((opened,), context.now)
        return _Found(opened, own)
    wanted = EntryFilter(
        tenant=context.tenant,
        tiers=() if asked.memory_type is None else tiers,
        namespace=asked.namespace,
        key=asked.key,
        limit=LARGEST_PAGE,
        counted=False,
    )
    page = await find_matches(context, wanted)

    def breadth(entry: Entry) -> tuple[bool, int, bool]:
        in_session = entry.scope.session_id is not None
        if entry.tier in TASK_TIERS and entry.scope.task_id == asked.task_id is not None:
            return (False, -1, in_session)
        foreign = entry.owner not in ("", context.principal.id)
        return (foreign, _BREADTH[entry.tier], in_session)

    return _Found(min(page.entries, key=breadth, default=None), own)


async def _find_own(
    context: OperationContext, asked: NameQuery, tiers: tuple[Tier, ...]
) -> list[Entry]:
    """Returns the caller's own and shared entries without a session, by a look-up of each possible
    name, which takes a fraction of the time of a search. The narrowest is first."""
    if context.principal.subjects is not None:
        # Only searches support a filter by subject.
        return []
    repository, owner = context.transaction.entries, context.principal.id
    entries: list[Entry] = []
    namespaces = await namespace_forms(context, asked.namespace)
    # The form that the request has comes first, like that of the namespace.
    keys = dict.fromkeys((asked.key, *name_forms(asked.key)))
    for namespace, key in product(namespaces, keys):
        if len(tiers) == 1:
            owner = "" if tiers[0] in _SHARED else owner
            entry = await repository.find(tiers[0], owner, namespace, key)
            entries += [] if entry is None else [entry]
        else:
            entries += await repository.find_in(tiers, owner, namespace, key)
    if len(entries) > 1:
        entries.sort(key=lambda entry: _BREADTH[entry.tier])
    return [
        entry
        for entry in entries
        if not is_expired(entry, context.now)
        and _is_shown(entry)
        and context.allows(Verb.READ, await load_target(context, Verb.READ, entry))
    ]


def _lasts(context: OperationContext, asked: NameQuery, entry: Entry) -> bool:
    """Returns whether the caller gets the only own entry that it asks for at any time: the caller
    has named the tier, and no session, lease or role that ends is among the reasons."""
    is_named = asked.memory_type is not None and asked.task_id is None
    is_own = entry.owner == context.principal.id
    return is_named and is_own and context.principal.session is None


def _is_shown(entry: Entry) -> bool:
    """Returns whether lists without a kind and a state contain the entry."""
    return entry.listed and entry.state == "live"


def _comes_first(own: Entry, asked: NameQuery, tiers: tuple[Tier, ...]) -> bool:
    """Returns whether no entry of another agent can take precedence."""
    if asked.task_id is None or TASK_TIERS.isdisjoint(tiers):
        return True
    return own.tier in TASK_TIERS and own.scope.task_id == asked.task_id
