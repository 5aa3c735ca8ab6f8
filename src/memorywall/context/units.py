"""Units: items that a context contains together or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from memorywall.context.exchanges import pair_exchanges
from memorywall.context.item import ContextItem
from memorywall.context.rendering import STRAY_TOKENS


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


def exchanges(
    turns: Sequence[ContextItem], *, is_cut: bool = False
) -> tuple[list[Unit], list[ContextItem]]:
    """Returns the units of turns in order, and the turns of incomplete exchanges with tools: those
    that only called tools and got no result.

    is_cut: whether there are turns before these, so that the calls of the first results may be
        among them
    """
    first = 0
    while is_cut and first < len(turns) and turns[first].role == "tool":
        first += 1
    units: list[Unit] = []
    incomplete = list(turns[:first])
    for one in pair_exchanges(turns[first:]):
        if one.is_empty:
            incomplete.append(one.turn)
        elif one.turn.role == "tool":
            units.append(Unit((replace(one.turn, tokens=one.turn.tokens + STRAY_TOKENS),)))
        else:
            units.append(Unit(one.items))
    return units, incomplete


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
