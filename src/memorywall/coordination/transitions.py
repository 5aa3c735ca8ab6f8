"""Transitions of tasks: the only functions that change status, agent and lease together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from memorywall.coordination.archive import archive_task_memory
from memorywall.records.errors import ResourceNotFoundError, TransitionError
from memorywall.records.event import WorkEventType
from memorywall.records.lease import LeaseKind
from memorywall.records.task import TRANSITIONS, Assignment, Task, TaskStatus
from memorywall.service.entries.record_writes import open_record, replace_record
from memorywall.service.requests.event_log import append_work_event
from memorywall.service.requests.operation_context import OperationContext

_EVENT_TYPES = {
    TaskStatus.READY: WorkEventType.TASK_READY,
    TaskStatus.CLAIMED: WorkEventType.TASK_CLAIMED,
    TaskStatus.RUNNING: WorkEventType.TASK_STARTED,
    TaskStatus.BLOCKED: WorkEventType.TASK_BLOCKED,
    TaskStatus.COMPLETED: WorkEventType.TASK_COMPLETED,
    TaskStatus.FAILED: WorkEventType.TASK_FAILED,
    TaskStatus.CANCELLED: WorkEventType.TASK_CANCELLED,
    TaskStatus.SKIPPED: WorkEventType.TASK_SKIPPED,
}
_CLAIMING = frozenset({TaskStatus.CLAIMED, TaskStatus.RUNNING})


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskTransition:
    """A requested transition of a task.

    status: the new status; None for no change, or for the status after a reassignment. A ready
        task with `running` and `assigned_agent` is claimed first.
    reassign: whether the task is assigned to `assigned_agent`, None for no agent
    accepts: whether the agent accepts the task by this request
    fields: other fields of the task to set
    """

    status: TaskStatus | None = None
    reassign: bool = False
    assigned_agent: str | None = None
    accepts: bool = False
    fields: dict[str, Any] = field(default_factory=dict)

    def claims_and_starts(self, task: Task) -> bool:
        """Whether the request claims a ready task and starts it."""
        return (
            self.status is TaskStatus.RUNNING
            and task.status is TaskStatus.READY
            and self.reassign
            and self.assigned_agent is not None
        )


async def apply_transition(
    context: OperationContext, task: Task, transition: TaskTransition
) -> Task:
    """Moves a task, which it returns opened. The caller of this function decides on access.

    Raises TransitionError if the status of the task does not allow the transition.
    """
    by = "" if context.is_system else context.principal.id
    changed = task = await open_record(context, task)
    given_away = transition.reassign and transition.assigned_agent != task.assigned_agent
    status = transition.status
    if given_away:
        changed = _reassigned(changed, transition.assigned_agent, by, context.now)
        if status is None and task.is_under_way:
            status = TaskStatus.READY
    passes_claimed = transition.claims_and_starts(task)
    if passes_claimed:
        changed = _move(changed, TaskStatus.CLAIMED, context.now)
    if status is not None and not (given_away and status is task.status):
        changed = _move(changed, status, context.now)
    takes_up = transition.accepts or (changed.status in _CLAIMING and status is not None)
    if takes_up and changed.assigned_agent == by and changed.assignments:
        changed = _accepted(changed, context.now)
    changed = msgspec.structs.replace(
        changed, version=task.version + 1, updated_at=context.now, **transition.fields
    )
    if given_away or changed.is_terminal or (status is TaskStatus.READY and task.is_under_way):
        await end_lease(context, task)
    await replace_record(context, changed)
    if changed.is_terminal and not task.is_terminal:
        await _finish(context, changed)
    if passes_claimed:
        claimed = msgspec.structs.replace(changed, status=TaskStatus.CLAIMED)
        await _append_events(context, task, claimed, given_away)
        await _append_events(context, claimed, changed, False)
    else:
        await _append_events(context, task, changed, given_away)
    return changed


async def waits_for_any(context: OperationContext, tasks: Iterable[str]) -> bool:
    """Whether any of these tasks is not completed."""
    wanted = frozenset(tasks)
    return wanted != await context.transaction.tasks.completed(wanted)


async def end_lease(context: OperationContext, task: Task) -> None:
    """Ends the task's lease, if there is one; its token is stale from now on."""
    lease = await context.transaction.leases.current(LeaseKind.TASK, task.intent_id, task.id)
    if lease is not None:
        await context.transaction.leases.end(lease.token)


def _move(task: Task, status: TaskStatus, now: str) -> Task:
    if status not in TRANSITIONS[task.status]:
        raise TransitionError(
            f"a task that is {task.status} cannot become {status}", current_version=task.version
        )
    if task.status is TaskStatus.FAILED:
        if task.attempt >= task.max_attempts:
            raise TransitionError("the task has reached its `max_attempts`")
        return msgspec.structs.replace(
            task,
            status=status,
            attempt=task.attempt + 1,
            output=None,
            error=None,
            started_at=None,
            completed_at=None,
        )
    task = msgspec.structs.replace(task, status=status)
    if status is TaskStatus.RUNNING and task.started_at is None:
        return msgspec.structs.replace(task, started_at=now)
    if task.is_terminal:
        return msgspec.structs.replace(task, completed_at=now)
    return task


def _reassigned(task: Task, agent: str | None, by: str, now: str) -> Task:
    """The task with a new assignment; the former assignment stays in its history."""
    history = list(task.assignments)
    if history and history[-1].ended_at is None:
        history[-1] = msgspec.structs.replace(history[-1], ended_at=now)
    if agent is not None:
        history.append(Assignment(agent_id=agent, assigned_by=by, assigned_at=now))
    return msgspec.structs.replace(task, assigned_agent=agent, assignments=tuple(history))


def _accepted(task: Task, now: str) -> Task:
    last = task.assignments[-1]
    if last.accepted_at is not None:
        return task
    last = msgspec.structs.replace(last, accepted_at=now)
    return msgspec.structs.replace(task, assignments=(*task.assignments[:-1], last))


async def _finish(context: OperationContext, task: Task) -> None:
    """Archives the task's working memory, and makes tasks ready that waited only for this task."""
    intent = await context.transaction.intents.get(task.intent_id)
    if intent is None or context.is_system:
        raise ResourceNotFoundError("the task's intent is missing")
    await archive_task_memory(context, task, intent)
    if task.status is not TaskStatus.COMPLETED:
        return
    waiting = await context.transaction.tasks.dependents(task.intent_id, task.id)
    needed = {other for one in waiting for other in one.depends_on}
    completed = await context.transaction.tasks.completed(needed)
    for one in waiting:
        if completed.issuperset(one.depends_on):
            ready = msgspec.structs.replace(
                one, status=TaskStatus.READY, version=one.version + 1, updated_at=context.now
            )
            await replace_record(context, ready)
            await _append_events(context, one, ready, False, by_system=True)


async def _append_events(
    context: OperationContext,
    before: Task,
    after: Task,
    given_away: bool,
    *,
    by_system: bool = False,
) -> None:
    """Appends the events of a transition to the intent's log and to the stream of the agent."""
    data: dict[str, Any] = {"task_id": after.id, "status": after.status, "version": after.version}
    kinds: list[WorkEventType] = []
    if given_away:
        kinds.append(WorkEventType.TASK_DELEGATED)
        data.update(assigned_agent=after.assigned_agent, previous_agent=before.assigned_agent)
    if after.status is not before.status:
        retried = before.status is TaskStatus.FAILED
        kinds.append(WorkEventType.TASK_RETRYING if retried else _EVENT_TYPES[after.status])
    for kind in kinds or [WorkEventType.TASK_PROGRESS]:
        await append_work_event(
            context,
            kind,
            intent_id=after.intent_id,
            task_id=after.id,
            agent=after.assigned_agent or before.assigned_agent,
            data=data,
            by_system=by_system,
        )
