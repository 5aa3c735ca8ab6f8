"""Whose memory a search goes through: the access rules as parts of slices."""

from __future__ import annotations

from dataclasses import replace

from memorywall.recall.filtering import Part
from memorywall.records.decision import Reach, Verb
from memorywall.records.filter import LARGEST_PAGE, Filter
from memorywall.records.principal import Principal
from memorywall.records.tier import Tier
from memorywall.storage.port import Transaction
from memorywall.wall.queries import reach_of

_EPISODIC = frozenset({Tier.EPISODIC})


async def parts_of(
    transaction: Transaction, principal: Principal, wanted: Filter, now: str
) -> list[Part]:
    """What `principal` may read of what `wanted` could match, as one part or more of a slice each.

    Every part is an answer of the wall: see `wall.queries.reach_of`.
    """
    within = await reach_of(transaction, principal, Verb.READ, wanted, now)
    parts = [Part(owner=owner) for owner in within.owners]
    if within.namespaces:
        parts.append(Part(owner="", namespaces=frozenset(within.namespaces)))
    parts.extend(Part(owner=agent, tiers=_EPISODIC) for agent in within.episodic)
    if within.tasks or within.intents or within.coordinated:
        # The caller's own is there already, and is most of what is bound to its work.
        own = principal.id if within.owners else None
        others = replace(wanted, except_owner=own)
        parts.extend(await _opened_by_work(transaction, within, others, now))
    return parts


async def _opened_by_work(
    transaction: Transaction, within: Reach, wanted: Filter, now: str
) -> list[Part]:
    """Working memory of others, entry by entry: work opens no owner's memory as a whole."""
    opened = replace(within, owners=(), namespaces=(), episodic=())
    asked = replace(wanted, limit=LARGEST_PAGE, offset=0, counted=False, before=None)
    owners: dict[str, set[str]] = {}
    while True:
        entries, _ = await transaction.entries.search(asked, opened, now)
        for entry in entries:
            owners.setdefault(entry.owner, set()).add(entry.id)
        if len(entries) < LARGEST_PAGE:
            break
        asked = replace(asked, before=entries[-1].id)
    return [Part(owner=owner, entry_ids=frozenset(ids)) for owner, ids in owners.items()]
