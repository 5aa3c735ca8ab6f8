"""The selection of the turns of a session for a context, by strategy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memorywall.context.item import ContextItem, Slices, Strategy
from memorywall.context.units import Unit, fill
from memorywall.summaries.importance import RECENCY_BONUS, TURNS
from memorywall.summaries.statements import Statement

REFILL = 0.75
"""The share of the budget that is filled when the first turn moves. The rest lets the conversation
grow before it moves again, so that most prompts begin like the one before them."""
LEAST_REFILL = 0.3
"""The share that is filled with verbatim turns, in a series of contexts, if a summary covers those
before them."""
RECALLED_SHARE = 0.08
"""The share of the budget for turns before the verbatim ones that the query recalls."""


@dataclass(frozen=True, slots=True)
class ChosenTurns:
    """The content of a context from its session.

    summary: the summary of the turns before the verbatim ones; None if it is not needed or does not
        fit
    verbatim: the turns in the segment `turns`, in order
    recalled: those before them that the query recalls, in order
    epoch: the last turn that the chosen summary covers, also if it does not fit; 0 for no summary,
        and for that of the session that this one continues
    uncovered: the last turn that is not verbatim and that no summary covers; 0 for none
    """

    summary: Unit | None
    verbatim: list[Unit]
    recalled: list[Unit]
    epoch: int
    uncovered: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionContent:
    """The candidates for the content of a context from its session.

    units: the turns in order
    summaries: the newest summary and, if they are other ones, that of the previous context and that
        of the session that this one continues, by the turns that they cover
    unread: the last turn that was not read; 0 for none
    goes_on: whether there is a previous context of the same form
    weights: of the classes of turns, for `importance`
    """

    units: Sequence[Unit]
    summaries: Sequence[Unit]
    unread: int = 0
    goes_on: bool = False
    weights: Mapping[str, float] = field(default_factory=lambda: TURNS)

    def summary_of(self, epoch: int) -> Unit | None:
        """Returns the summary of the turns up to one."""
        return next((one for one in self.summaries if one.first.sequence == epoch), None)

    def uncovered(self, verbatim: Sequence[Unit], epoch: int) -> int:
        """Returns the last turn after an epoch that is not among the verbatim ones; 0 for none."""
        shown = {unit.first.id for unit in verbatim}
        left = (one.items[-1].sequence for one in self.units if one.first.id not in shown)
        last = max(left, default=0)
        return last if (last := max(last, self.unread)) > epoch else 0


def choose_turns(
    content: SessionContent,
    allowance: int,
    headings: tuple[int, int],
    strategy: Strategy,
    previous: Slices | None,
) -> ChosenTurns | None:
    """Returns the summary and the turns that fit.

    A session whose turns all fit needs no summary but that of the session that it continues.
    Otherwise the context begins like the previous one, with the same summary and the same first
    turn, as long as the turns from it on fit and the summary covers those before it.

    allowance: the most tokens
    headings: the tokens that a summary, and the first recalled turn, need in addition
    previous: the previous context; None to choose anew
    Returns None if the context cannot begin like the previous one.
    """
    units, newest = content.units, content.summaries[-1] if content.summaries else None
    is_kept = previous is not None and previous.first_turn > 0 and strategy != "importance"
    epoch = previous.epoch if is_kept and previous is not None else 0
    # What the session began with is in none of its turns.
    inherited = content.summary_of(0)
    needed = _total(units) + (0 if inherited is None else inherited.tokens + headings[0])
    is_whole = not content.unread and needed <= allowance
    if strategy != "compaction" and is_whole and not epoch:
        return ChosenTurns(inherited, list(units), [], 0)
    if not is_kept or strategy == "compaction":
        epoch = newest.first.sequence if newest is not None else 0
    summary = content.summary_of(epoch)
    if epoch and summary is None:
        return None
    reserved = _total([unit for unit in units if unit.mandatory])
    if summary is not None and (
        not summary.first.text or summary.tokens + headings[0] > allowance - reserved
    ):
        summary = None
    room = allowance - (0 if summary is None else summary.tokens + headings[0])
    if strategy == "importance":
        chosen = _important(units, room, content.weights)
        return ChosenTurns(summary, chosen, [], epoch, content.uncovered(chosen, epoch))
    share = int(allowance * RECALLED_SHARE) if strategy == "hierarchical" else 0
    if reserved > room - share:
        share = 0
    first = previous.first_turn if previous is not None else 0
    if first and previous is not None:
        if previous.epoch != epoch:
            return None
        verbatim = [unit for unit in units if unit.mandatory or unit.first.sequence >= first]
        is_there = any(unit.first.sequence == first for unit in verbatim)
        if not is_there or _total(verbatim) > room - share or content.uncovered(verbatim, epoch):
            return None
    else:
        least = LEAST_REFILL if epoch and content.goes_on else REFILL
        verbatim = _refill(units, room - share, epoch, least)
    recalled = _recalled(verbatim, units, (room, share, headings[1]))
    uncovered = content.uncovered(verbatim, epoch)
    if not first and content.goes_on and epoch:
        # With a summary that ends earlier, more turns would stay, and they would move again sooner.
        last = units[-1].items[-1].sequence if units else 0
        fewest = _refill(units, room - share, last, LEAST_REFILL)
        uncovered = max(uncovered, content.uncovered(fewest, epoch))
    return ChosenTurns(summary, verbatim, recalled, epoch, uncovered)


def _recalled(
    verbatim: Sequence[Unit], units: Sequence[Unit], limits: tuple[int, int, int]
) -> list[Unit]:
    """Returns the turns before the verbatim ones that the query recalls.

    limits: the tokens for turns, the most of them for recalled turns, and those of their heading
    """
    room, share, heading = limits
    shown = {unit.first.id for unit in verbatim}
    older = [unit for unit in units if unit.score > 0 and unit.first.id not in shown]
    older.sort(key=lambda one: -one.score)
    taken, _ = fill(older, min(share, room - _total(verbatim)), heading)
    return _in_order(taken)


def _refill(units: Sequence[Unit], allowance: int, epoch: int, share: float) -> list[Unit]:
    """Returns the newest units, so that there is room for more: those that no summary covers, but
    at least a share of the allowance and at most `REFILL`, and the newest one if it fits."""
    if _total(units) <= allowance:
        return list(units)
    kept: list[Unit] = []
    used = _total([unit for unit in units if unit.mandatory])
    newest = next((unit.tokens for unit in reversed(units) if not unit.mandatory), 0) + used
    newest = newest if newest <= allowance else 0
    limit = max(used, newest, int(allowance * REFILL))
    least = max(used, newest, int(allowance * share))
    is_full = False
    for unit in reversed(units):
        if not unit.mandatory:
            used += unit.tokens
            is_full = is_full or used > (limit if unit.first.sequence > epoch else least)
        if unit.mandatory or not is_full:
            kept.append(unit)
    return kept[::-1]


def turns_with_statements(units: Sequence[Unit], missing: Sequence[Statement]) -> list[Unit]:
    """Returns the turns that have some of the statements, the most important for their size first.

    An exchange with a tool is left out, as a part of it alone is of no use.
    """
    worth: dict[str, float] = {}
    alone = [unit for unit in units if len(unit.items) == 1] if missing else []
    for unit in alone:
        said = [one.importance.weight for one in missing if one.text in unit.first.text]
        worth[unit.first.id] = sum(said) / unit.tokens
    ranked = [unit for unit in alone if worth[unit.first.id]]
    return sorted(ranked, key=lambda one: (-worth[one.first.id], one.first.sequence))


def _total(units: Sequence[Unit]) -> int:
    return sum(unit.tokens for unit in units)


def _important(
    units: Sequence[Unit], allowance: int, of_classes: Mapping[str, float]
) -> list[Unit]:
    weights = {unit.first.id: weight(units, place, of_classes) for place, unit in enumerate(units)}
    ranked = sorted(
        units, key=lambda one: (not one.mandatory, -weights[one.first.id], -one.first.sequence)
    )
    return _in_order(fill(ranked, allowance)[0])


def weight(units: Sequence[Unit], place: int, of_classes: Mapping[str, float] = TURNS) -> float:
    """Returns the importance of a unit among all units of a session.

    of_classes: the weights of classes of turns
    """
    unit = units[place]
    return (
        of_classes[_class(unit, place)]
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
