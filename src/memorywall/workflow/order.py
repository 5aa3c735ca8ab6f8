"""The order of the steps of a plan.

Each step has a beginning and an end. A plan can be executed if and only if the order of beginnings
and ends has no cycle.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

from memorywall.workflow.model import PlanStep


class _Moment(NamedTuple):
    step: int
    is_end: bool


_Waits = dict[_Moment, set[_Moment]]


def in_order(steps: Sequence[PlanStep]) -> tuple[PlanStep, ...]:
    """The steps in the order of their beginnings, each as early as the given order allows.

    The plan must have no cycle; see `circles`.
    """
    sorter = TopologicalSorter(_waits(steps))
    sorter.prepare()
    ready = list(sorter.get_ready())
    heapq.heapify(ready)
    ordered = []
    while ready:
        moment = heapq.heappop(ready)
        if not moment.is_end:
            ordered.append(steps[moment.step])
        sorter.done(moment)
        for freed in sorter.get_ready():
            heapq.heappush(ready, freed)
    return tuple(ordered)


def circles(steps: Sequence[PlanStep]) -> list[list[int]]:
    """The cycles of a plan: for each cycle the indexes of its steps, the first step first.

    A step occurs in at most one cycle.
    """
    waits = _waits(steps)
    found = []
    while True:
        try:
            TopologicalSorter(waits).prepare()
        except CycleError as error:
            indexes = list(dict.fromkeys(moment.step for moment in error.args[1]))
            first = indexes.index(min(indexes))
            found.append(indexes[first:] + indexes[:first])
            named = set(indexes)
            waits = {
                moment: {before for before in all_before if before.step not in named}
                for moment, all_before in waits.items()
                if moment.step not in named
            }
        else:
            return sorted(found)


def _waits(steps: Sequence[PlanStep]) -> _Waits:
    """For each beginning and end, those that must come before it."""
    indexes: dict[str | None, int] = {}
    for index, step in enumerate(steps):
        indexes.setdefault(step.task, index)
    waits: _Waits = {}
    for index in range(len(steps)):
        waits[_Moment(index, False)] = set()
        waits[_Moment(index, True)] = {_Moment(index, False)}
    for index, step in enumerate(steps):
        for name in step.depends_on:
            if name in indexes:
                waits[_Moment(index, False)].add(_Moment(indexes[name], True))
        if step.parent in indexes:
            parent = indexes[step.parent]
            waits[_Moment(index, False)].add(_Moment(parent, False))
            waits[_Moment(parent, True)].add(_Moment(index, True))
    return waits
