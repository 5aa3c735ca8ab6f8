"""How a task moves: the one place where its state, its agent and its lease change together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from memorywall.coordination.archive import close_memory
from memorywall.records.errors import ResourceNotFoundError, TransitionError
from memorywall.records.event import WorkEvent
from memorywall.records.lease import LeaseKind
from memorywall.records.principal import Principal
from memorywall.records.task import TRANSITIONS, Assignment, Task, TaskStatus
from memorywall.storage.port import Transaction
from memorywall.wall.door import Door
from memorywall.wall.log import record_work

_TOLD = {
    TaskStatus.READY: WorkEvent.TASK_READY,
    TaskStatus.CLAIMED: WorkEvent.TASK_CLAIMED,
    TaskStatus.RUNNING: WorkEvent.TASK_STARTED,
    TaskStatus.BLOCKED: WorkEvent.TASK_BLOCKED,
    TaskStatus.COMPLETED: WorkEvent.TASK_COMPLETED,
    TaskStatus.FAILED: WorkEvent.TASK_FAILED,
    TaskStatus.CANCELLED: WorkEvent.TASK_CANCELLED,
    TaskStatus.SKIPPED: WorkEvent.TASK_SKIPPED,
}
_TAKES_UP = frozenset({TaskStatus.CLAIMED, TaskStatus.RUNNING})
_MOST_WAITING = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Move:
    """What is to become of a task.

    status: where it shall go, None to stay, or to where a reassignment puts it
    reassign: whether it shall be given to `assigned_agent`, None for nobody
    accepts: whether its agent takes it up by this, wherever it goes
    fields: other fields of the task to set
    """

    status: TaskStatus | None = None
    reassign: bool = False
    assigned_agent: str | None = None
    accepts: bool = False
    fields: dict[str, Any] = field(default_factory=dict)


async def carry_out(
    door: Door,
    transaction: Transaction,
    principal: Principal | None,
    task: Task,
    move: Move,
    now: str,
) -> Task:
    """Moves a task, whoever wants it, None for the server itself. Access is the caller's business.

    Raises TransitionError where the states do not allow it.
    """
    by = "" if principal is None else principal.id
    changed = task
    given_away = move.reassign and move.assigned_agent != task.assigned_agent
    status = move.status
    if given_away:
        changed = _reassigned(changed, move.assigned_agent, by, now)
        if status is None and task.is_under_way:
            status = TaskStatus.READY
    if status is not None and not (given_away and status is task.status):
        changed = _moved(changed, status, now)
    takes_up = move.accepts or (changed.status in _TAKES_UP and status is not None)
    if takes_up and changed.assigned_agent == by and changed.assignments:
        changed = _accepted(changed, now)
    changed = msgspec.structs.replace(
        changed, version=task.version + 1, updated_at=now, **move.fields
    )
    if given_away or changed.is_over or (status is TaskStatus.READY and task.is_under_way):
        await end_lease(transaction, task)
    await transaction.tasks.replace(changed)
    if changed.is_over and not task.is_over:
        await _finish(door, transaction, principal, changed, now)
    await _tell(transaction, principal, task, changed, given_away, now)
    return changed


async def waits_for_any(transaction: Transaction, tenant: str, tasks: Iterable[str]) -> bool:
    """Whether any of these tasks is not completed."""
    for one in tasks:
        found = await transaction.tasks.get(tenant, one)
        if found is None or found.status is not TaskStatus.COMPLETED:
            return True
    return False


async def end_lease(transaction: Transaction, task: Task) -> None:
    """Ends the task's lease, if there is one: its token is good for nothing from now on."""
    lease = await transaction.leases.current(task.tenant, LeaseKind.TASK, task.intent_id, task.id)
    if lease is not None:
        await transaction.leases.end(task.tenant, lease.token)


def _moved(task: Task, status: TaskStatus, now: str) -> Task:
    if status not in TRANSITIONS[task.status]:
        raise TransitionError(
            f"a task that is {task.status} cannot become {status}", current_version=task.version
        )
    if task.status is TaskStatus.FAILED:
        if task.attempt >= task.max_attempts:
            raise TransitionError("the task has been tried as often as it may")
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
    if task.is_over:
        return msgspec.structs.replace(task, completed_at=now)
    return task


def _reassigned(task: Task, agent: str | None, by: str, now: str) -> Task:
    """The task in other hands; who had it before stays in its history."""
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


async def _finish(
    door: Door, transaction: Transaction, principal: Principal | None, task: Task, now: str
) -> None:
    """Archives the task's working memory and makes ready what waited for it alone."""
    intent = await transaction.intents.get(task.tenant, task.intent_id)
    if intent is None or principal is None:
        raise ResourceNotFoundError("the task's intent is not there")
    await close_memory(door, transaction, principal, task, intent, now)
    if task.status is not TaskStatus.COMPLETED:
        return
    waiting = await transaction.tasks.list(
        task.tenant, task.intent_id, TaskStatus.PENDING, _MOST_WAITING, 0
    )
    for one in waiting:
        if task.id not in one.depends_on:
            continue
        if not await waits_for_any(transaction, task.tenant, one.depends_on):
            ready = msgspec.structs.replace(
                one, status=TaskStatus.READY, version=one.version + 1, updated_at=now
            )
            await transaction.tasks.replace(ready)
            await _tell(transaction, None, one, ready, False, now)


async def _tell(
    transaction: Transaction,
    principal: Principal | None,
    before: Task,
    after: Task,
    given_away: bool,
    now: str,
) -> None:
    """Writes to the intent's log, and to the stream of the task's agent, what happened."""
    data: dict[str, Any] = {"task_id": after.id, "status": after.status, "version": after.version}
    kinds: list[WorkEvent] = []
    if given_away:
        kinds.append(WorkEvent.TASK_DELEGATED)
        data.update(assigned_agent=after.assigned_agent, previous_agent=before.assigned_agent)
    if after.status is not before.status:
        retried = before.status is TaskStatus.FAILED
        kinds.append(WorkEvent.TASK_RETRYING if retried else _TOLD[after.status])
    for kind in kinds or [WorkEvent.TASK_PROGRESS]:
        await record_work(
            transaction,
            kind,
            tenant=after.tenant,
            by=principal,
            at=now,
            intent_id=after.intent_id,
            task_id=after.id,
            agent=after.assigned_agent or before.assigned_agent,
            data=data,
        )
