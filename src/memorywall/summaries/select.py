"""Selects statements within a budget of tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from memorywall.summaries.lines import Line, write_lines
from memorywall.summaries.source import TokenCounter
from memorywall.summaries.statements import Statement

_ROUNDS = 4


def select(statements: Sequence[Statement], budget: int, count: TokenCounter) -> list[Statement]:
    """The statements to keep, in order: those that must be kept first, then data, then context.

    What is not trusted comes after everything trusted that must be kept, so that it displaces none
    of it.
    """
    candidates = [one for one in statements if one.category != "chitchat" and not one.superseded]
    tiers: tuple[Callable[[Statement], bool], ...] = (
        lambda one: one.trusted and one.category == "correction",
        lambda one: one.trusted and one.must_keep and one.category != "correction",
        lambda one: not one.trusted and one.must_keep,
        lambda one: one.trusted and not one.must_keep,
        lambda one: not one.trusted and not one.must_keep,
    )
    chosen: list[Statement] = []
    for belongs in tiers:
        tier = [one for one in candidates if belongs(one)]
        if tier:
            chosen = _fill(chosen, _by_value(tier, count), budget, count)
    return chosen


def render(statements: Iterable[Statement]) -> str:
    """The text of a summary with these statements."""
    return write_lines(Line(one.role, one.trusted, one.text) for one in statements)


def _by_value(tier: list[Statement], count: TokenCounter) -> list[Statement]:
    """The most important for their length first; later ones first among equals."""
    return sorted(tier, key=lambda one: (-one.importance.weight / count(render([one])), -one.place))


def _fill(
    chosen: list[Statement], ranked: list[Statement], budget: int, count: TokenCounter
) -> list[Statement]:
    """Adds statements in their order as long as the text stays within the budget.

    A statement costs the tokens of its own line at first; what lines of one speaker save together
    is spent in further rounds. The statements chosen before stay.
    """
    added: list[Statement] = []
    for _ in range(_ROUNDS):
        left = budget - _tokens(chosen + added, count)
        more: list[Statement] = []
        for one in ranked:
            cost = count(render([one])) + bool(chosen or added or more)
            if cost <= left and one not in added:
                more.append(one)
                left -= cost
        if not more:
            break
        added += more
        while added and _tokens(chosen + added, count) > budget:
            added.pop()
    return sorted(chosen + added, key=lambda one: one.place)


def _tokens(statements: list[Statement], count: TokenCounter) -> int:
    text = render(sorted(statements, key=lambda one: one.place))
    return count(text) if text else 0
