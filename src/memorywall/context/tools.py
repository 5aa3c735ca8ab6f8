"""Tools: those that fit in whole, the others by name."""

from __future__ import annotations

from collections.abc import Sequence

from memorywall.context.item import ContextItem
from memorywall.context.rendering import tokens_of
from memorywall.context.units import Unit, fill
from memorywall.recall.analyzer import long_words_of
from memorywall.tokens.estimate import TokenCounter

LISTED = "request.tools"
"""The id of the item that lists the tools that do not fit."""
LISTING_SHARE = 0.3
"""The share of the budget of tools for the names of those that do not fit."""
_MOST_LISTED = 200


def choose_tools(
    tools: Sequence[Unit], budget: int, query: str, heading: int, count: TokenCounter
) -> list[Unit]:
    """Returns the tools that fit, in the order of the request, and a list of others by name.

    The tools are taken by the words that they share with the query.
    budget: the most tokens
    heading: the tokens of the heading of the segment
    """
    if not tools:
        return []
    if sum(unit.tokens for unit in tools) + heading <= budget:
        return list(tools)
    wanted = long_words_of(query)
    ranked = sorted(
        range(len(tools)), key=lambda at: (not tools[at].mandatory, -_shared(tools[at], wanted), at)
    )
    in_whole, used = fill((tools[at] for at in ranked), int(budget * (1 - LISTING_SHARE)), heading)
    shown = {id(unit) for unit in in_whole}
    rest = [tools[at] for at in ranked if id(tools[at]) not in shown]
    listing = _list(rest, budget - used - (0 if in_whole else heading), count)
    kept = [unit for unit in tools if id(unit) in shown]
    return kept if listing is None else [*kept, Unit((listing,))]


def _shared(unit: Unit, wanted: set[str]) -> int:
    if not wanted:
        return 0
    return len(wanted & long_words_of(unit.first.text))


def _list(rest: Sequence[Unit], room: int, count: TokenCounter) -> ContextItem | None:
    """Returns an item with as many names as fit."""
    lines: list[str] = []
    used = count("- \n")
    for unit in rest[:_MOST_LISTED]:
        line = f"{unit.first.name}: {unit.first.brief}"
        used += count(line + "\n") + 1
        if used > room:
            break
        lines.append(line)
    if not lines:
        return None
    item = ContextItem(
        id=LISTED, segment="tools", content="\n".join(lines), reason="listed_by_name"
    )
    tokens = tokens_of(item, count)
    if tokens > room:
        return None
    return ContextItem(id=LISTED, segment="tools", content=item.content, reason=item.reason,
                       tokens=tokens)  # fmt: skip
