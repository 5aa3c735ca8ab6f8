"""Marks the items of a context whose sources changed since, and adds what the sources say now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from memorywall.context.item import ContextItem, SegmentName
from memorywall.context.sources import CURRENT_SOURCE, item_of
from memorywall.records.decision import Verb
from memorywall.records.entry import Entry, is_expired
from memorywall.records.tier import Tier
from memorywall.service.access.targets import load_target
from memorywall.service.requests.operation_context import OperationContext

DEEPEST_CHAIN = 8
"""The most sources between an item and a source that changed."""
MOST_SOURCES = 512
"""The most sources that are looked at; those after them count as unchanged."""
_BEFORE = 1e-9
"""The difference of scores that puts a source before what was derived from it."""
_BEST = 1.0
"""The score of the present source of a turn, which says what holds now."""
_SEGMENT_OF_TIER: dict[Tier, SegmentName] = {
    Tier.SEMANTIC: "semantic", Tier.EPISODIC: "episodic", Tier.SESSION: "episodic",
    Tier.SHARED: "shared", Tier.PROCEDURAL: "procedural", Tier.WORKING: "episodic",
}  # fmt: skip
_VALID = frozenset({"live", "cold"})


async def mark_changed(
    context: OperationContext, items: Sequence[ContextItem]
) -> list[ContextItem]:
    """Returns the items: one is marked if a source that it was derived from, directly or not, has a
    newer version, or is deleted, expired, withdrawn or hidden from the caller. The present versions
    of such sources are added, to stand beside the marked items."""
    derived = [item for item in items if item.sources]
    if not derived:
        return list(items)
    known = await _load(context, derived)
    marked: dict[str, bool] = {}
    beside: dict[str, list[ContextItem]] = {}
    for item in derived:
        is_changed, current = _changes(item.sources, known)
        marked[item.id] = is_changed
        for name in current:
            beside.setdefault(name, []).append(item)
    found = [
        replace(
            item,
            source_changed=marked.get(item.id, False),
            # A turn has the number of tokens that was stored with it, without the mark.
            tokens=0 if marked.get(item.id) else item.tokens,
            score=max([item.score, *(one.score + _BEFORE for one in beside.get(item.id, ()))]),
            beside=tuple(one.id for one in beside.get(item.id, ())),
        )
        for item in items
    ]
    present = {item.id for item in items}
    for name, entry in known.items():
        if name in beside and name not in present and entry is not None:
            best = max(beside[name], key=lambda one: (one.score, one.id))
            opened = await context.service.cipher.open(context.transaction, entry)
            is_of_turn = best.segment == "turns"
            segment = _SEGMENT_OF_TIER[entry.tier] if is_of_turn else best.segment
            source = item_of(opened, segment, moment=context.now, reason=CURRENT_SOURCE)
            found.append(
                replace(
                    source,
                    mandatory=False,
                    score=_BEST if is_of_turn else best.score + _BEFORE,
                    beside=tuple(one.id for one in beside[name]),
                    source_changed=_changes(source.sources, known)[0],
                )
            )
    return found


async def _load(context: OperationContext, items: Iterable[ContextItem]) -> dict[str, Entry | None]:
    """Returns the sources of items, and their sources in turn; None for one that is not there for
    the caller."""
    known: dict[str, Entry | None] = {}
    wanted = {name for item in items for name, _ in item.sources}
    for _ in range(DEEPEST_CHAIN):
        missing = sorted(wanted - known.keys())[: MOST_SOURCES - len(known)]
        if not missing:
            break
        entries = await context.transaction.entries.get_many(missing, context.now)
        found = {entry.id: entry for entry in entries if not is_expired(entry, context.now)}
        wanted = set()
        for name in missing:
            entry = found.get(name)
            if entry is not None:
                target = await load_target(context, Verb.READ, entry)
                if entry.state not in _VALID or not context.allows(Verb.READ, target):
                    entry = None
            known[name] = entry
            if entry is not None:
                wanted |= {source.id for source in entry.provenance.derived_from}
    return known


def _changes(
    sources: Iterable[tuple[str, int]], known: Mapping[str, Entry | None]
) -> tuple[bool, set[str]]:
    """Returns whether one of the sources changed, and the ids of the changed ones that exist."""
    is_changed, current, seen = False, set[str](), set[tuple[str, int]]()
    waiting = list(sources)
    while waiting:
        name, version = one = waiting.pop()
        if one in seen or name not in known:
            continue
        seen.add(one)
        entry = known[name]
        if entry is None:
            is_changed = True
            continue
        if entry.version != version:
            is_changed = True
            current.add(name)
        waiting += [(source.id, source.version) for source in entry.provenance.derived_from]
    return is_changed, current
