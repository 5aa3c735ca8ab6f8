"""Checks that what the steps of a plan name is there, and that they can be done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memorywall.workflow.model import AgentBlock, PlanStep
from memorywall.workflow.order import circles
from memorywall.workflow.section import Word
from memorywall.workflow.tree import Position, Report


@dataclass(frozen=True, kw_only=True, slots=True)
class WrittenStep:
    """A step with the places of what it names. `task` is None when the step has no good name."""

    step: PlanStep
    at: Position
    where: str
    task: Word | None
    agent: Word | None
    depends_on: tuple[Word, ...]
    parent: Word | None


def check_references(
    plan: Sequence[WrittenStep], agents: Mapping[str, AgentBlock], report: Report
) -> None:
    """Reports names that nothing has or two steps have, and steps that wait in a circle."""
    lines = _lines(plan, report)
    for written in plan:
        _check_agent(written, agents, report)
        parent = (written.parent,) if written.parent else ()
        for word in (*written.depends_on, *parent):
            # Without its name nobody can say which step is meant; the lack of it is reported.
            if word.text not in lines and all(other.task for other in plan):
                nearest = report.nearest(word.text, lines)
                hint = f"; did you mean the one at line {lines[nearest]}?" if nearest else ""
                report.add(word.at, word.where, f"no step has this name{hint}")
    _check_circles(plan, report)


def _lines(plan: Sequence[WrittenStep], report: Report) -> dict[str, int]:
    """The line of each step's name."""
    lines: dict[str, int] = {}
    for task in (written.task for written in plan):
        if task is not None and task.text in lines:
            report.add(task.at, task.where, f"the step at line {lines[task.text]} has this name")
        elif task is not None:
            lines[task.text] = task.at.line
    return lines


def _check_agent(written: WrittenStep, agents: Mapping[str, AgentBlock], report: Report) -> None:
    agent = written.agent
    # Where there are no agents at all, that is what is wrong.
    if agent is not None and agents and agent.text not in agents:
        nearest = report.nearest(agent.text, agents)
        hint = f"; did you mean `{nearest}`?" if nearest else ""
        report.add(agent.at, agent.where, f"no agent has this name{hint}")


def _check_circles(plan: Sequence[WrittenStep], report: Report) -> None:
    for circle in circles([written.step for written in plan]):
        first, *others = (plan[index] for index in circle)
        reason = "waits for itself"
        if others:
            listed = ", ".join(str(other.at.line) for other in others)
            lines = (
                f"the step at line {listed}" if len(others) == 1 else f"the steps at lines {listed}"
            )
            reason = f"waits for itself by way of {lines}"
        if any(plan[index].parent for index in circle):
            reason += "; a parent ends after its sub-steps"
        report.add(first.at, first.where, reason)
