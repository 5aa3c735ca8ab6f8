"""Checks the references between steps and agents of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memorywall.workflow.mapping_reader import LocatedText
from memorywall.workflow.model import AgentBlock, PlanStep
from memorywall.workflow.order import circles
from memorywall.workflow.tree import Diagnostics, Position


@dataclass(frozen=True, kw_only=True, slots=True)
class WrittenStep:
    """A step with the positions of its references. `task` is None for a step without a valid
    name."""

    step: PlanStep
    at: Position
    where: str
    task: LocatedText | None
    agent: LocatedText | None
    depends_on: tuple[LocatedText, ...]
    parent: LocatedText | None


def check_references(
    plan: Sequence[WrittenStep], agents: Mapping[str, AgentBlock], diagnostics: Diagnostics
) -> None:
    """Reports unknown and duplicate names, and cycles of steps."""
    lines = _lines(plan, diagnostics)
    for written in plan:
        _check_agent(written, agents, diagnostics)
        parent = (written.parent,) if written.parent else ()
        for word in (*written.depends_on, *parent):
            # A step without a name cannot be referenced; the missing name is reported elsewhere.
            if word.text not in lines and all(other.task for other in plan):
                nearest = diagnostics.nearest(word.text, lines)
                hint = f"; do you mean the one at line {lines[nearest]}?" if nearest else ""
                diagnostics.add(word.at, word.where, f"no step has this name{hint}")
    _check_circles(plan, diagnostics)


def _lines(plan: Sequence[WrittenStep], diagnostics: Diagnostics) -> dict[str, int]:
    """The line of each step's name."""
    lines: dict[str, int] = {}
    for task in (written.task for written in plan):
        if task is not None and task.text in lines:
            diagnostics.add(
                task.at, task.where, f"the step at line {lines[task.text]} has this name"
            )
        elif task is not None:
            lines[task.text] = task.at.line
    return lines


def _check_agent(
    written: WrittenStep, agents: Mapping[str, AgentBlock], diagnostics: Diagnostics
) -> None:
    agent = written.agent
    # Without any agents, only their absence is reported.
    if agent is not None and agents and agent.text not in agents:
        nearest = diagnostics.nearest(agent.text, agents)
        hint = f"; do you mean `{nearest}`?" if nearest else ""
        diagnostics.add(agent.at, agent.where, f"no agent has this name{hint}")


def _check_circles(plan: Sequence[WrittenStep], diagnostics: Diagnostics) -> None:
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
        diagnostics.add(first.at, first.where, reason)
