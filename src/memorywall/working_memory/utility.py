"""The utility of items, and the order in which they go. Pure functions."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from memorywall.kinds.working_memory import Scratch, WorkingPolicy
from memorywall.recall.analyzer import long_words_of

_FADING = 0.8
"""The recency of an item that was written one tick before one of recency 1."""
_UNKNOWN_RELEVANCE = 0.5


def text_of(item: Scratch) -> str:
    """The text of an item that is read for relevance; the name alone of an externalized one."""
    if item.content is None:
        return item.name
    content = item.content
    return content if isinstance(content, str) else msgspec.json.encode(content).decode()


def utilities(
    items: Sequence[Scratch], goal: str, tick: int, policy: WorkingPolicy
) -> dict[str, float]:
    """The utility of each item by its name: a weighted sum of three measures from 0 to 1.

    relevance: the share of the goal's words that the item has; 0.5 without a goal
    recency: 0.8 to the power of the ticks since the last write
    dependency: the share of the other items that need it, directly or not
    """
    wanted = long_words_of(goal)
    dependents = _count_dependents(items)
    others = max(1, len(items) - 1)
    scores = {}
    for item in items:
        found = len(wanted & long_words_of(f"{item.name} {text_of(item)}")) if wanted else 0
        relevance = found / len(wanted) if wanted else _UNKNOWN_RELEVANCE
        score = policy.relevance * relevance
        score += policy.recency * _FADING ** max(0, tick - item.tick)
        score += policy.dependency * dependents[item.name] / others
        scores[item.name] = round(score, 9)
    return scores


def with_dependencies(items: Iterable[Scratch], names: Iterable[str]) -> set[str]:
    """These names and those of everything the items need, directly or not."""
    return _closure({item.name: item.depends_on for item in items}, names)


def _closure(needs: Mapping[str, tuple[str, ...]], names: Iterable[str]) -> set[str]:
    found: set[str] = set()
    waiting = [name for name in names if name in needs]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(other for other in needs[name] if other in needs)
    return found


def in_order_of_going(
    items: Sequence[Scratch], scores: dict[str, float], held: Collection[str] = ()
) -> Iterator[Scratch]:
    """Yields items, the lowest utility first, each after every item that needs it.

    held: names of items that stay; what they need stays as well
    """
    by_name = {item.name: item for item in items}
    needed_by = dict.fromkeys(by_name, 0)
    for item in items:
        for name in set(item.depends_on) & by_name.keys():
            needed_by[name] += 1
    free = [
        (scores[item.name], item.order, item.name)
        for item in items
        if not needed_by[item.name] and item.name not in held
    ]
    heapq.heapify(free)
    while free:
        item = by_name[heapq.heappop(free)[2]]
        yield item
        for name in set(item.depends_on) & by_name.keys():
            needed_by[name] -= 1
            if not needed_by[name] and name not in held:
                heapq.heappush(free, (scores[name], by_name[name].order, name))


def total_tokens(items: Iterable[Scratch]) -> int:
    """The tokens of all items."""
    return sum(item.tokens for item in items)


def _count_dependents(items: Sequence[Scratch]) -> dict[str, int]:
    """Returns the number of items that need each item, directly or not."""
    needs = {item.name: item.depends_on for item in items}
    counts = dict.fromkeys(needs, 0)
    for item in items:
        if item.depends_on:
            for name in _closure(needs, (item.name,)) - {item.name}:
                counts[name] += 1
    return counts
