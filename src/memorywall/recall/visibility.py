"""The access rules of a search, as filters of index shards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from msgspec import structs

from memorywall.recall.filtering import ShardFilter
from memorywall.records.decision import Verb, VisibilityFilter
from memorywall.records.filter import LARGEST_PAGE, EntryFilter
from memorywall.records.tier import Tier
from memorywall.service.access.visibility import load_visibility
from memorywall.service.requests.operation_context import OperationContext

_EPISODIC = frozenset({Tier.EPISODIC})
_SESSION = frozenset({Tier.SESSION})


async def load_shard_filters(context: OperationContext, wanted: EntryFilter) -> list[ShardFilter]:
    """The shard filters of the entries that the principal may read and `wanted` could match.

    They follow from the visibility filter; see `service.visibility`.
    """
    within = await load_visibility(context, Verb.READ, wanted)
    parts = [ShardFilter(owner=owner) for owner in within.owners]
    if within.namespaces:
        parts.append(ShardFilter(owner="", namespaces=frozenset(within.namespaces)))
    parts.extend(ShardFilter(owner=agent, tiers=_EPISODIC) for agent in within.episodic)
    parts.extend(ShardFilter(owner=agent, tiers=_SESSION) for agent in within.session_owners)
    if within.by_group:
        parts.extend(_opened_to_groups(within))
    if within.tasks or within.intents or within.coordinated:
        # The caller's own memory is included already, and is most of the memory of its work.
        own = context.principal.id if within.owners else None
        others = structs.replace(wanted, except_owner=own)
        parts.extend(await _opened_by_work(context, within, others))
    if within.subjects is not None:
        bound = frozenset(within.subjects)
        parts = [replace(part, subjects=bound) for part in parts]
    if within.session is not None:
        parts = [replace(part, session=within.session) for part in parts]
    if within.limited_to is not None:
        places = frozenset(within.limited_to)
        parts = [replace(part, limited_to=places) for part in parts]
    return parts


def _opened_to_groups(within: VisibilityFilter) -> Iterator[ShardFilter]:
    """Shard filters for other agents' episodic memory in some namespaces."""
    namespaces: dict[str, set[str]] = {}
    for namespace, owner in within.by_group:
        namespaces.setdefault(owner, set()).add(namespace)
    for owner, names in namespaces.items():
        yield ShardFilter(owner=owner, tiers=_EPISODIC, namespaces=frozenset(names))


async def _opened_by_work(
    context: OperationContext, within: VisibilityFilter, wanted: EntryFilter
) -> list[ShardFilter]:
    """Shard filters for other agents' working memory, entry by entry."""
    opened = structs.replace(
        within, owners=(), namespaces=(), episodic=(), by_group=(), session_owners=()
    )
    asked = structs.replace(wanted, limit=LARGEST_PAGE, offset=0, counted=False, before=None)
    owners: dict[str, set[str]] = {}
    while True:
        entries, _ = await context.transaction.entries.search(asked, opened, context.now)
        for entry in entries:
            owners.setdefault(entry.owner, set()).add(entry.id)
        if len(entries) < LARGEST_PAGE:
            break
        asked = structs.replace(asked, before=entries[-1].id)
    return [ShardFilter(owner=owner, entry_ids=frozenset(ids)) for owner, ids in owners.items()]
