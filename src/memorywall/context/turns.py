"""Which turns of a session a context contains, by strategy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memorywall.context.item import ContextItem, Strategy
from memorywall.context.units import Unit, fill
from memorywall.summaries.importance import RECENCY_BONUS, TURNS

REFILL = 0.75
"""The share of the budget that is filled when the first turn moves. The rest lets the conversation
grow before it moves again, so that most prompts begin like the one before them."""
RECALLED_SHARE = 0.08
"""The share of the budget for turns before the verbatim ones that the query recalls."""


@dataclass(frozen=True, slots=True)
class ChosenTurns:
    """Turns that a context contains.

    verbatim: those in the segment `turns`, in order
    recalled: those before them that the query recalls, in order
    """

    verbatim: list[Unit]
    recalled: list[Unit]


def choose_turns(
    units: Sequence[Unit],
    allowance: int,
    heading: int,
    strategy: Strategy,
    epoch: int,
    first: int,
) -> ChosenTurns:
    """Returns the turns that fit, in the order of the session.

    units: all turns in order
    allowance: the most tokens
    heading: the tokens that the first recalled turn needs in addition
    epoch: the last turn that the summary covers
    first: the first turn that the previous context showed; 0 for none
    """
    if strategy == "importance":
        return ChosenTurns(_important(units, allowance), [])
    if strategy == "compaction":
        units = [unit for unit in units if unit.mandatory or unit.first.sequence > epoch]
        return ChosenTurns(_newest(units, allowance, first), [])
    if strategy == "recency" or sum(unit.tokens for unit in units) <= allowance:
        return ChosenTurns(_newest(units, allowance, first), [])
    recalled = [unit for unit in sorted(units, key=lambda one: -one.score) if unit.score > 0]
    share = int(allowance * RECALLED_SHARE) if recalled else 0
    verbatim = _newest(units, allowance - share, first)
    shown = {unit.first.id for unit in verbatim}
    older = [unit for unit in recalled if unit.first.id not in shown]
    left = allowance - sum(unit.tokens for unit in verbatim)
    taken, _ = fill(older, min(share, left), heading)
    return ChosenTurns(verbatim, _in_order(taken))


def _newest(units: Sequence[Unit], allowance: int, first: int) -> list[Unit]:
    """Returns the newest units. The first one of the previous context stays the first while all
    from it on fit."""
    if sum(unit.tokens for unit in units) <= allowance:
        return list(units)
    suffix = [unit for unit in units if unit.first.sequence >= first]
    if first and suffix and sum(unit.tokens for unit in suffix) <= allowance:
        return suffix
    kept: list[Unit] = []
    used = sum(unit.tokens for unit in units if unit.mandatory)
    limit = max(used, int(allowance * REFILL))
    if units and limit < units[-1].tokens <= allowance - used:
        limit = units[-1].tokens + used
    for unit in reversed(units):
        if not unit.mandatory:
            used += unit.tokens
            if used > limit:
                break
        kept.append(unit)
    return kept[::-1]


def _important(units: Sequence[Unit], allowance: int) -> list[Unit]:
    weights = {unit.first.id: weight(units, place) for place, unit in enumerate(units)}
    ranked = sorted(
        units, key=lambda one: (not one.mandatory, -weights[one.first.id], -one.first.sequence)
    )
    return _in_order(fill(ranked, allowance)[0])


def weight(units: Sequence[Unit], place: int) -> float:
    """Returns the importance of a unit among all units of a session."""
    unit = units[place]
    return (
        TURNS[_class(unit, place)]
        + RECENCY_BONUS * place / max(1, len(units) - 1)
        + 0.5 * unit.score
    )


def _class(unit: Unit, place: int) -> str:
    turn: ContextItem = unit.first
    if len(unit.items) > 1:
        return "tool_result"
    if turn.role == "user" and turn.trusted:
        return "first_user" if place == 0 else "user"
    return "system" if turn.role == "system" and turn.trusted else "assistant"


def _in_order(units: Sequence[Unit]) -> list[Unit]:
    return sorted(units, key=lambda one: one.first.sequence)
