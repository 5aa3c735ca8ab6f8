"""Checks a history of entries: is there one order of events that explains all anybody saw?

The version of an entry grows by one with each write, and each write names the version it replaces.
So the states of a name stand in one line, and all that is left to find is a moment for each step
from one state to the next: after the write was sent and after everyone who still saw the state
before began, before anyone who was shown the state after had the reply. If the earliest possible
moments exist for all steps in turn, the history is linearizable; if not, the step where they run
out tells what is wrong.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

from tests.history.anomalies import Breach, Violation
from tests.history.evidence import Life, Name, State, describe, gather
from tests.history.record import NEVER, History, Kind, Operation, Outcome


@dataclass(slots=True)
class Step:
    """From one state of a name to the next, at some moment between `after` and `before`.

    cause: who makes it happen no earlier than `after`
    """

    life: Life
    what: str
    state: State
    after: int
    cause: Operation | None
    before: int
    ends: bool = False


def check_entries(history: History) -> list[Violation]:
    """Every violation in what clients saw of entries, by name of the entry."""
    names: dict[str, list[Operation]] = {}
    writers: dict[str, Operation] = {}
    for operation in history.entries:
        names.setdefault(operation.key, []).append(operation)
        if operation.mark:
            assert operation.mark not in writers, f"the mark {operation.mark} was used twice"
            writers[operation.mark] = operation
    violations: list[Violation] = []
    for key, operations in names.items():
        name = gather(key, operations, writers)
        _check_lives(name)
        steps = _steps_of(name, writers)
        earliest = _walk(name, steps)
        _check_not_found(name, steps, earliest)
        violations += name.violations
    return violations


def _check_lives(name: Name) -> None:
    """Each version by itself."""
    for life in name.lives.values():
        for version, state in life.states.items():
            where = f"{life.entry} version {version}"
            if len(state.marks) > 1:
                name.blame(Breach.DUPLICATE_VERSION, f"{where} with {sorted(state.marks)}")
            if len(state.takers) > 1:
                names = "; ".join(describe(taker) for taker in state.takers)
                name.blame(Breach.LOST_UPDATE, f"{where} was replaced by {names}")
            elif any(taker.kind is Kind.DELETE for taker in state.takers) and version < life.last:
                name.blame(Breach.LOST_UPDATE, f"{where} was deleted, yet version {life.last} seen")
        if len(life.deletions) > 1:
            name.blame(Breach.DELETED_TWICE, life.entry)
    written_last = -1
    for life in name.in_order():
        if written_last > life.known_from:
            name.blame(Breach.DUPLICATE_ENTRY, f"{life.entry} was there at {life.known_from}")
        takers = [taker.invoked for state in life.states.values() for taker in state.takers]
        written_last = max(written_last, *takers, -1)


def _steps_of(name: Name, writers: Mapping[str, Operation]) -> list[Step]:
    """All steps of a name in their order."""
    steps: list[Step] = []
    lives = name.in_order()
    for number, life in enumerate(lives):
        for version in range(1, life.last + 1):
            steps.append(_step_to(name, life, version, writers))
        followed = number + 1 < len(lives)
        if followed or life.absent.asked_by or life.deletions or life.perhaps_deleted:
            steps.append(_step_out(name, life))
    for before, step in itertools.pairwise(steps):
        # Who still saw the state before began before this step. Only an id that is gone stays gone.
        if not before.ends and before.state.asked_last > step.after:
            step.after, step.cause = before.state.asked_last, before.state.asked_by
    return steps


def _step_to(name: Name, life: Life, version: int, writers: Mapping[str, Operation]) -> Step:
    """The creation of an entry, or a change of it."""
    state = life.states.get(version) or State()
    what = f"{life.entry} version {version}"
    causes = [writers[mark] for mark in state.marks]
    if not causes:
        causes = name.perhaps_created if version == 1 else life.perhaps_changed.get(version, [])
        if not causes:
            name.blame(Breach.VERSION_GAP, what)
    first = min(causes, key=lambda cause: cause.invoked, default=None)
    return Step(life, what, state, first.invoked if first else -1, first, state.known_from)


def _step_out(name: Name, life: Life) -> Step:
    """The deletion of an entry."""
    causes = life.deletions or life.perhaps_deleted
    what = f"{life.entry} deleted"
    if not causes:
        name.blame(Breach.LOST_WRITE, f"{life.entry} is gone and nobody deleted it")
    first = min(causes, key=lambda cause: cause.invoked, default=None)
    returned = min((deletion.returned for deletion in life.deletions), default=NEVER)
    before = min(returned, life.absent.known_from)
    after = first.invoked if first else -1
    return Step(life, what, life.absent, after, first, before, ends=True)


def _walk(name: Name, steps: list[Step]) -> list[int]:
    """The earliest moment of each step; where there is none, says why."""
    shown_last = _shown_last(steps)
    earliest: list[int] = []
    moment, cause = -1, None
    for number, step in enumerate(steps):
        if step.after > moment:
            moment, cause = step.after, step.cause
        if moment > step.before:
            _explain(name, step, cause, shown_last[number])
            moment = step.before
        earliest.append(moment)
    return earliest


def _shown_last(steps: list[Step]) -> list[int]:
    """For each step, when somebody last began an operation that showed its state or a later one."""
    shown, last = [], -1
    for step in reversed(steps):
        last = max(last, step.state.asked_last)
        shown.append(last)
    return shown[::-1]


def _explain(name: Name, step: Step, cause: Operation | None, shown: int) -> None:
    """Names what happened when `cause` began after `step` was surely done, and yet before it."""
    detail = f"{step.what} was there at {step.before}"
    if cause is None:
        name.blame(Breach.WRITE_OUT_OF_ORDER, detail)
        return
    detail += f", then {describe(cause)}"
    wrote = cause.outcome is not Outcome.REFUSED and cause.kind is not Kind.READ
    if wrote:
        name.blame(Breach.WRITE_OUT_OF_ORDER, detail)
    elif shown >= cause.returned:
        name.blame(Breach.STALE_READ, detail)
    else:
        name.blame(Breach.LOST_WRITE, f"{detail}, and it was not seen again")


def _check_not_found(name: Name, steps: list[Step], earliest: list[int]) -> None:
    """Who did not find the name looked while there was no entry of that name."""
    latest, last = [], NEVER
    for step in reversed(steps):
        last = min(last, step.before)
        latest.append(last)
    latest.reverse()
    # Before the first entry, between two, and after the last if that was deleted.
    gaps = [(-1, latest[0] if steps else NEVER)]
    for number, step in enumerate(steps):
        if step.ends:
            following = latest[number + 1] if number + 1 < len(steps) else NEVER
            gaps.append((earliest[number], following))
    for operation in name.not_found:
        if not any(
            begun <= operation.returned and operation.invoked <= ended for begun, ended in gaps
        ):
            name.blame(Breach.HIDDEN_ENTRY, describe(operation))
