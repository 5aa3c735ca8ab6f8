"""The results of a workflow."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from memorywall.records.task import TERMINAL_STATUSES, TaskStatus
from memorywall.wire.tasks import TaskResponse
from memorywall.workflow import PlanStep


@dataclass(frozen=True, kw_only=True, slots=True)
class StepOutcome:
    """The result of a step.

    outputs: the names of its outputs
    reason: why the step was not completed, None if unknown or completed
    """

    step: str
    agent: str
    task_id: str
    status: TaskStatus
    outputs: list[str] = field(default_factory=list)
    reason: str | None = None

    @property
    def completed(self) -> bool:
        """Whether the step was completed."""
        return self.status is TaskStatus.COMPLETED

    @property
    def is_terminal(self) -> bool:
        """Whether the status is final; a blocked step may still be completed."""
        return self.status in TERMINAL_STATUSES


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkflowResult:
    """The result of a workflow, with `steps` in the order of the plan.

    completed: whether every step was completed
    """

    name: str
    intent_id: str
    completed: bool
    steps: list[StepOutcome]


def outcome_of(step: PlanStep, task: TaskResponse, reason: str | None) -> StepOutcome:
    """The result of a step.

    task: the present state of its task
    reason: why the step was not completed, if the task does not contain the reason
    """
    status = TaskStatus(task.status)
    why = None
    if status is not TaskStatus.COMPLETED:
        why = task.error or task.blocked_reason or reason
    return StepOutcome(
        step=step.task,
        agent=step.agent,
        task_id=task.id,
        status=status,
        outputs=sorted(task.output or {}),
        reason=why,
    )


def format_names(names: Iterable[str]) -> str:
    """Names as text for a sentence."""
    return ", ".join(f"`{name}`" for name in names)
