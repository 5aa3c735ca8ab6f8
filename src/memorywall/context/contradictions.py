"""Names the conflicts among the memories of a context, and puts the side that prevails first.

Where tiers disagree, semantic memory prevails; otherwise the higher authority does, and then the
newer entry (memory wall 11.5.3).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec.structs import replace

from memorywall.context.item import ContextItem
from memorywall.context.sources import item_of
from memorywall.kinds.promotions import CONTRADICTS
from memorywall.records.decision import Verb
from memorywall.records.entry import AUTHORITY_RANK, Entry, authority_of, is_expired
from memorywall.records.tier import Tier
from memorywall.records.validity import validity_in
from memorywall.service.access.targets import load_target
from memorywall.service.requests.operation_context import OperationContext

PREVAILS = "prevails over a memory of its name"
"""The reason of semantic memory that is shown because another tier says something else."""
_MEMORIES = frozenset({"semantic", "episodic", "procedural"})
_BEFORE = 1e-9
"""The difference of scores that puts the side that prevails first."""


async def mark_contradicted(
    context: OperationContext,
    items: Sequence[ContextItem],
    known: Mapping[str, Entry],
    namespaces: Collection[str],
) -> list[ContextItem]:
    """Returns the items, with the curated memory of which one in another tier has the name and says
    something else. The side of a conflict that does not prevail names the one that does, which has
    the higher score.

    known: the entries of the items, by id
    namespaces: those that have shared memory which the caller may read
    """
    memories = {one.id: known[one.id] for one in items
                if one.segment in _MEMORIES and one.id in known}  # fmt: skip
    prevailing: dict[str, Entry] = {}

    def prevail(winner: Entry, loser: Entry) -> None:
        known_winner = prevailing.get(loser.id)
        if known_winner is None or _authority(winner) > _authority(known_winner):
            prevailing[loser.id] = winner

    for entry in memories.values():
        if entry.namespace in namespaces and (curated := await _curated(context, entry)):
            prevail(curated, entry)
        for relation, target in entry.edges:
            if relation == CONTRADICTS and (other := memories.get(target)) is not None:
                loser, winner = sorted((entry, other), key=_authority)
                prevail(winner, loser)
    if not prevailing:
        return list(items)
    by_id = {one.id: one for one in items}
    for name, winner in prevailing.items():
        loser_item = by_id[name]
        shown = by_id.get(winner.id)
        if shown is None:
            shown = item_of(winner, "semantic", moment=context.now, reason=PREVAILS)
        score = max(shown.score, loser_item.score + _BEFORE)
        by_id[winner.id] = replace(shown, score=score)
        # The mark takes tokens.
        by_id[name] = replace(loser_item, contradicted_by=(winner.id,), tokens=0)
    return list(by_id.values())


def _authority(entry: Entry) -> tuple[bool, int, str, str]:
    is_shared = not entry.owner
    rank = AUTHORITY_RANK[authority_of(entry.provenance)]
    return is_shared, rank, entry.updated_at, entry.id


async def _curated(context: OperationContext, entry: Entry) -> Entry | None:
    """Returns the semantic entry, with its value in clear text, that has the name of an entry of an
    agent and says something else; None if the caller may read none that holds now."""
    if not entry.owner or entry.key == entry.id or entry.kind is not None:
        return None
    found = await context.transaction.entries.find(Tier.SEMANTIC, "", entry.namespace, entry.key)
    if found is None or found.state != "live" or is_expired(found, context.now):
        return None
    if not context.allows(Verb.READ, await load_target(context, Verb.READ, found)):
        return None
    found, own = [await context.service.cipher.open(context.transaction, one)
                  for one in (found, entry)]  # fmt: skip
    differs = found.value != own.value and validity_in(found.value).holds_at(context.now)
    return found if differs else None
