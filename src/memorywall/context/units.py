"""Units: items that a context contains together or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from memorywall.context.item import ContextItem


@dataclass(slots=True, eq=False)
class Unit:
    """Items of one segment that stay together, such as a call of a tool and its result.

    first: the first item
    tokens: those of all items
    score: that of the best item
    mandatory: whether one of the items is, or it is pinned
    pinned: whether it is shown whatever else is left out, as long as it fits
    """

    items: tuple[ContextItem, ...]
    first: ContextItem = field(init=False)
    tokens: int = field(init=False)
    score: float = field(init=False)
    mandatory: bool = field(init=False)
    pinned: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        # A compilation reads these many times of each of up to thousands of units.
        self.first = first = self.items[0]
        self.tokens, self.score, self.mandatory = first.tokens, first.score, first.mandatory
        for item in self.items[1:]:
            self.tokens += item.tokens
            self.score = max(self.score, item.score)
            self.mandatory = self.mandatory or item.mandatory

    def pin(self) -> None:
        """Makes the unit a mandatory one, unless it is one already."""
        self.pinned = self.pinned or not self.mandatory
        self.mandatory = True


def group(items: Iterable[ContextItem]) -> list[Unit]:
    """Returns items as units, in the order of their first items."""
    found: dict[str, list[ContextItem]] = {}
    for item in items:
        found.setdefault(item.group or f"\0{item.id}", []).append(item)
    return [Unit(tuple(one)) for one in found.values()]


def exchanges(turns: Sequence[ContextItem]) -> tuple[list[Unit], list[ContextItem]]:
    """Returns the units of turns in order, and the turns of incomplete exchanges with tools.

    A provider refuses a call without all of its results, and a result without its call, so an
    assistant turn with calls and their results, which follow it directly, are one unit. Other
    results among them belong to no call.
    """
    units: list[Unit] = []
    incomplete: list[ContextItem] = []
    position = 0
    while position < len(turns):
        turn = turns[position]
        end = position + 1
        if turn.tool_calls:
            while end < len(turns) and turns[end].role == "tool":
                end += 1
            results, others = _results(turn, turns[position + 1 : end])
            if len(results) == len(turn.tool_calls):
                units.append(Unit((turn, *results)))
                incomplete += others
            else:
                incomplete += turns[position:end]
        elif turn.role == "tool":
            incomplete.append(turn)
        else:
            units.append(Unit((turn,)))
        position = end
    return units, incomplete


def _results(
    turn: ContextItem, candidates: Sequence[ContextItem]
) -> tuple[list[ContextItem], list[ContextItem]]:
    """Returns the first result of each call of a turn, and the other candidates."""
    open_calls = {str(call["id"]) for call in turn.tool_calls}
    results: list[ContextItem] = []
    others: list[ContextItem] = []
    for one in candidates:
        if one.tool_call_id in open_calls:
            open_calls.remove(one.tool_call_id)
            results.append(one)
        else:
            others.append(one)
    return results, others


def fill(units: Iterable[Unit], allowance: int, heading: int = 0) -> tuple[list[Unit], int]:
    """Returns the units that fit, taken in their order, and their tokens.

    allowance: the most tokens
    heading: tokens that the first unit needs in addition
    """
    kept: list[Unit] = []
    used = 0
    for unit in units:
        needed = unit.tokens + (0 if kept else heading)
        if used + needed <= allowance:
            kept.append(unit)
            used += needed
    return kept, used
