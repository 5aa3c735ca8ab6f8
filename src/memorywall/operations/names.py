"""Look-up of an entry by its name, in the narrowest tier that has one."""

from __future__ import annotations

from memorywall.operations.binding import operation
from memorywall.operations.queries import find
from memorywall.records.decision import Verb, VisibilityFilter
from memorywall.records.entry import Entry, is_expired
from memorywall.records.filter import LARGEST_PAGE, EntryFilter
from memorywall.records.tier import Tier
from memorywall.service.operation_context import OperationCall, OperationContext
from memorywall.service.subjects import own_filter
from memorywall.service.targets import load_target
from memorywall.service.value_schemas import require_major
from memorywall.tiers import NAMESPACE_TIERS, TASK_TIERS
from memorywall.wire.entries import FoundEntry, NameQuery, ShadowedEntry, view

_SHARED = frozenset(NAMESPACE_TIERS)
_TIERS = tuple(Tier)
_BREADTH = {tier: place for place, tier in enumerate(_TIERS)}


@operation("find_entry")
async def find_entry(context: OperationContext, call: OperationCall) -> FoundEntry:
    entry = await find_by_name(context, call.query)
    if entry is None:
        return FoundEntry(entry=None)
    await require_major(context, entry, call.query.schema_version)
    shadowed = [] if call.query.memory_type is not None else await _find_shadowed(context, entry)
    return FoundEntry(
        entry=view(entry),
        shadows=tuple(ShadowedEntry(id=one.id, memory_type=one.tier) for one in shadowed),
    )


async def find_by_name(context: OperationContext, asked: NameQuery) -> Entry | None:
    """Returns the entry of a name that the caller may read, in the narrowest tier, or None.

    Working memory of the named task comes first, of any owner; then the caller's own and shared
    memory; then readable memory of other agents. Within a tier, entries without a session come
    first, and then the newest.
    """
    tiers = _TIERS if asked.memory_type is None else (asked.memory_type,)
    own = await _find_own(context, asked, tiers)
    if own is not None and _comes_first(own, asked, tiers):
        opened = await context.service.cipher.open(context.transaction, own)
        context.service.record_access((opened,), context.now)
        return opened
    wanted = EntryFilter(
        tenant=context.tenant,
        tiers=() if asked.memory_type is None else tiers,
        namespace=asked.namespace,
        key=asked.key,
        limit=LARGEST_PAGE,
        counted=False,
    )
    page = await find(context, own_filter(context.principal, wanted))

    def breadth(entry: Entry) -> tuple[bool, int, bool]:
        in_session = entry.scope.session_id is not None
        if entry.tier in TASK_TIERS and entry.scope.task_id == asked.task_id is not None:
            return (False, -1, in_session)
        foreign = entry.owner not in ("", context.principal.id)
        return (foreign, _BREADTH[entry.tier], in_session)

    return min(page.entries, key=breadth, default=None)


async def _find_own(
    context: OperationContext, asked: NameQuery, tiers: tuple[Tier, ...]
) -> Entry | None:
    """Returns the caller's own or shared entry without a session, by a look-up of each possible
    name, which takes a fraction of the time of a search."""
    if context.principal.subjects is not None:
        # Only searches support a filter by subject.
        return None
    for tier in tiers:
        owner = "" if tier in _SHARED else context.principal.id
        entry = await context.transaction.entries.find(tier, owner, asked.namespace, asked.key)
        if entry is None or is_expired(entry, context.now) or not _is_shown(entry):
            continue
        if context.allows(Verb.READ, await load_target(context, Verb.READ, entry)):
            return entry
    return None


async def _find_shadowed(context: OperationContext, found: Entry) -> list[Entry]:
    """Returns the caller's own and shared entries with the name of `found` in other tiers, the
    narrowest first, at the cost of one statement. Entries of sessions have names of their own. A
    request that is bound to a person gets none."""
    if context.principal.subjects is not None:
        return []
    wanted = EntryFilter(
        tenant=context.tenant,
        namespace=found.namespace,
        key=found.key,
        limit=LARGEST_PAGE,
        counted=False,
    )
    # Every tier has one entry of this name at most for each owner.
    candidates = VisibilityFilter(owners=(context.principal.id,), namespaces=(found.namespace,))
    entries, _ = await context.transaction.entries.search(wanted, candidates, context.now)
    others = [
        entry
        for entry in entries
        if entry.tier is not found.tier and entry.scope.session_id is None
    ]
    return [
        entry
        for entry in sorted(others, key=lambda one: _BREADTH[one.tier])
        if context.allows(Verb.READ, await load_target(context, Verb.READ, entry))
    ]


def _is_shown(entry: Entry) -> bool:
    """Returns whether lists without a kind and a state contain the entry."""
    return entry.listed and entry.state == "live"


def _comes_first(own: Entry, asked: NameQuery, tiers: tuple[Tier, ...]) -> bool:
    """Returns whether no entry of another agent can take precedence."""
    if asked.task_id is None or TASK_TIERS.isdisjoint(tiers):
        return True
    return own.tier in TASK_TIERS and own.scope.task_id == asked.task_id
