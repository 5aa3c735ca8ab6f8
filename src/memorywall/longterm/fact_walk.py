"""Walks over facts: from some nodes to all that a few steps reach, with the facts of each path."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import aclosing
from typing import NamedTuple

from memorywall.kinds.facts import Ontology
from memorywall.longterm.fact_reader import FactReader, StoredFact
from memorywall.longterm.ontology import descendants
from memorywall.longterm.patterns import Term, unify_facts
from memorywall.wire.facts import Direction

_SIDES: dict[str, tuple[str, ...]] = {
    "out": ("subject",), "in": ("object",), "both": ("subject", "object"),
}  # fmt: skip


class Reached(NamedTuple):
    """A node that a walk has reached.

    hops: the number of steps to it, 0 for a start
    path: the facts of the shortest path to it, from a start on
    """

    term: Term
    hops: int
    path: tuple[StoredFact, ...] = ()


async def walk_facts(
    reader: FactReader,
    ontology: Ontology,
    starts: Collection[Term],
    *,
    hops: int,
    relations: Sequence[str] = (),
    direction: Direction = "both",
    limit: int = 100,
) -> list[Reached]:
    """Returns the starts and up to `limit` nodes that at most `hops` steps reach, nearest first.

    relations: only over facts of these relations and those below them; default: any
    direction: `out` from subjects to objects, `in` the other way
    Raises ScanLimitError for a walk over too many facts.
    """
    known = {one for name in relations for one in descendants(ontology.relation_types, name)}
    found = {one.node: Reached(one, 0) for one in starts}
    frontier = list(found)
    for hop in range(1, hops + 1):
        spelled = await reader.spellings(frontier)
        following: list[str] = []
        for side in _SIDES[direction]:
            parts = reader.by_node(side, spelled, sorted(known))
            async with aclosing(parts):
                async for facts in parts:
                    for one in await unify_facts(reader, facts):
                        near, far = one.subject, one.object
                        if side == "object":
                            near, far = far, near
                        before = found.get(near.node)
                        if before is None or far.node in found or one.fact is None:
                            continue
                        found[far.node] = Reached(far, hop, (*before.path, one.fact))
                        # Numbers, dates and truth values link what has nothing in common.
                        if far.node[0] in "@=#":
                            following.append(far.node)
                        if len(found) >= limit + len(starts):
                            return list(found.values())
        if not following:
            break
        frontier = following
    return list(found.values())
