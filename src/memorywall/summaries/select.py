"""Selects statements within a budget of tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import takewhile
from operator import attrgetter

from memorywall.records.words import QUESTION_MARKS
from memorywall.summaries.lines import Line, write_lines
from memorywall.summaries.source import TokenCounter
from memorywall.summaries.statements import Statement

_ROUNDS = 4
_TIERS = 6


def select(statements: Sequence[Statement], budget: int, count: TokenCounter) -> list[Statement]:
    """The statements to keep, in order; see `Selection.choose`."""
    return Selection(budget, count).choose(statements)


def render(statements: Iterable[Statement]) -> str:
    """The text of a summary with these statements."""
    return write_lines(Line(one.role, one.trusted, one.text) for one in statements)


class Selection:
    """Chooses statements within a budget. Counting tokens takes most of the time, so that the
    tokens of every text are counted once.

    budget: the most tokens of the text, by `count`
    opening: the share of the budget that what the user says first may take before everything else
    """

    def __init__(self, budget: int, count: TokenCounter, opening: float = 0.0) -> None:
        self._budget = budget
        self._opening = int(budget * opening)
        self._count = count
        self._sizes: dict[tuple[int, ...], int] = {(): 0}

    def choose(self, statements: Sequence[Statement]) -> list[Statement]:
        """The statements to keep, in order: those that must be kept first, then the last
        question of the user, then data, then context.

        What is not trusted comes after everything trusted that must be kept and after that
        question, so that it displaces none of it.
        """
        candidates = [
            one if one.tokens else replace(one, tokens=self._count(render([one])))
            for one in statements
            if one.category != "chitchat" and not one.superseded
        ]
        asked = next((one.place for one in reversed(candidates) if _asks(one)), -1)
        tiers: list[list[Statement]] = [[] for _ in range(_TIERS)]
        for one in candidates:
            tiers[_tier(one, asked)].append(one)
        chosen = self._first_said(candidates)
        known = {one.place for one in chosen}
        for tier in tiers:
            if waiting := [one for one in tier if one.place not in known]:
                chosen = self._fill(chosen, sorted(waiting, key=_worth))
        return chosen

    def size(self, statements: Sequence[Statement]) -> int:
        """The tokens of the text with these statements."""
        ordered = sorted(statements, key=_position_of)
        places = tuple(map(_position_of, ordered))
        if places not in self._sizes:
            self._sizes[places] = self._count(render(ordered))
        return self._sizes[places]

    def _first_said(self, candidates: Sequence[Statement]) -> list[Statement]:
        """The statements of the user before the first one of the assistant that fit the share of
        the budget, those that must be kept first. One alone may take half of the budget."""
        if not self._opening:
            return []
        said = takewhile(lambda one: one.role != "assistant", candidates)
        opening = [one for one in said if one.role == "user" and one.trusted]
        opening.sort(key=lambda one: not one.must_keep)
        chosen: list[Statement] = []
        left = self._opening
        for one in opening:
            if one.tokens < (left if chosen else max(left, self._budget // 2)):
                chosen.append(one)
                left -= one.tokens + 1
        return sorted(chosen, key=_position_of)

    def _fill(self, chosen: list[Statement], ranked: list[Statement]) -> list[Statement]:
        """Adds statements in their order as long as the text stays within the budget.

        A statement costs the tokens of its own line at first; what lines of one speaker save
        together is spent in further rounds. The statements chosen before stay.
        """
        added: list[Statement] = []
        waiting = ranked
        for _ in range(_ROUNDS):
            left = self._budget - self.size(chosen + added)
            more: list[Statement] = []
            rest: list[Statement] = []
            for one in waiting:
                cost = one.tokens + bool(chosen or added or more)
                if cost <= left:
                    more.append(one)
                    left -= cost
                else:
                    rest.append(one)
            if not more:
                break
            added += more
            waiting = rest
            while added and self.size(chosen + added) > self._budget:
                waiting.append(added.pop())
        return sorted(chosen + added, key=_position_of)


_position_of = attrgetter("place")


def _asks(one: Statement) -> bool:
    return one.role == "user" and one.trusted and one.text.endswith(QUESTION_MARKS)


def _tier(one: Statement, asked: int) -> int:
    """Corrections, what else must be kept, the last question of the user, data that must be kept,
    context, other data.

    asked: the place of that question
    """
    if not one.trusted:
        return 3 if one.must_keep else 5
    if not one.must_keep:
        return 2 if one.place == asked else 4
    return 0 if one.category == "correction" else 1


def _worth(one: Statement) -> tuple[float, int]:
    """The most important for their length first; later ones first among equals."""
    return (-one.importance.weight / one.tokens, -one.place)
