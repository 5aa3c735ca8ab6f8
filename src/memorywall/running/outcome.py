"""What came of a workflow."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from memorywall.records.task import ENDS, TaskStatus
from memorywall.wire.work import TaskView
from memorywall.workflow import PlanStep


@dataclass(frozen=True, kw_only=True, slots=True)
class StepOutcome:
    """What came of a step.

    outputs: the names of what it gave
    reason: why it was not completed, as far as that is known
    """

    step: str
    agent: str
    task_id: str
    status: TaskStatus
    outputs: list[str] = field(default_factory=list)
    reason: str | None = None

    @property
    def completed(self) -> bool:
        """Whether it was carried out to its end."""
        return self.status is TaskStatus.COMPLETED

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes of it; what is only blocked may still be completed."""
        return self.status in ENDS


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What came of a workflow; `steps` in the order of its plan.

    completed: whether every step was
    """

    name: str
    intent_id: str
    completed: bool
    steps: list[StepOutcome]


def outcome_of(step: PlanStep, task: TaskView, reason: str | None) -> StepOutcome:
    """What came of a step whose task is now like this.

    reason: why it was not completed, where its task does not tell
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


def listed(names: Iterable[str]) -> str:
    """Names as a sentence holds them."""
    return ", ".join(f"`{name}`" for name in names)
