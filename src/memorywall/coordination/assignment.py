"""Claiming a task, renewing its lease and releasing it."""

from __future__ import annotations

from dataclasses import dataclass

from memorywall.coordination.access import anywhere, check_writer, is_allowed
from memorywall.coordination.intents import list_participating
from memorywall.coordination.leases import acquire_lease, expiry_after, record_lease, renew
from memorywall.coordination.tasks import is_of_session, load_authorized_task
from memorywall.coordination.transitions import TaskTransition, apply_transition, end_lease
from memorywall.records.decision import Verb
from memorywall.records.errors import (
    FencedError,
    MemoryAccessError,
    ResourceNotFoundError,
    TransitionError,
)
from memorywall.records.event import WorkEventType
from memorywall.records.intent import IntentStatus
from memorywall.records.lease import Lease, LeaseKind
from memorywall.records.task import Task, TaskStatus
from memorywall.service.entries.record_writes import open_record
from memorywall.service.requests.operation_context import OperationContext

_CLAIMABLE = frozenset({TaskStatus.READY, TaskStatus.CLAIMED, TaskStatus.RUNNING})
_MOST_LOOKED_AT = 1_000


@dataclass(frozen=True, slots=True)
class ClaimedTask:
    """A claimed task with its lease."""

    task: Task
    lease: Lease


async def claim(context: OperationContext, task_id: str, seconds: int) -> ClaimedTask:
    """Claims a task. A task without an agent is assigned to the caller.

    seconds: the time to live of the lease
    Raises ResourceNotFoundError, MemoryAccessError, TransitionError, LeaseHeldError.
    """
    task, target = await load_authorized_task(context, task_id)
    context.authorize(Verb.UPDATE, target)
    if task.assigned_agent not in (None, context.principal.id):
        raise MemoryAccessError("the task is assigned to another agent")
    return await _claim_task(context, task, seconds)


async def find_next(
    context: OperationContext, capabilities: frozenset[str], intent_id: str | None
) -> Task | None:
    """The oldest task that the caller can claim, None for none.

    The task is assigned to the caller, or to no agent in an intent that the caller may write to. It
    requires only these capabilities and has no lease. Inside a session it names the session.

    intent_id: only tasks of this intent, None for any
    """
    # The response shows the task, so the caller must also be allowed to read.
    context.authorize(Verb.READ, anywhere(context.principal))
    await check_writer(context)
    return await _next(context, capabilities, intent_id)


async def claim_next(
    context: OperationContext, capabilities: frozenset[str], intent_id: str | None, seconds: int
) -> ClaimedTask | None:
    """Claims the task that `find_next` finds; None for none."""
    task = await find_next(context, capabilities, intent_id)
    return None if task is None else await _claim_task(context, task, seconds)


async def renew_lease(context: OperationContext, task_id: str, seconds: int) -> Lease:
    """Renews the lease of the request's fencing token. Raises FencedError."""
    lease = await _held(context, task_id)
    return await renew(context, lease.token, until=expiry_after(context.now, seconds))


async def release(context: OperationContext, task_id: str) -> None:
    """Releases the task of the request's fencing token, which becomes ready again.

    A task that the caller had claimed without an assignment has no agent afterwards. Raises
    FencedError.
    """
    lease = await _held(context, task_id)
    task = await context.transaction.tasks.get(task_id)
    if task is None:
        raise ResourceNotFoundError("there is no such task")
    await requeue(context, task)
    await record_lease(context, WorkEventType.LEASE_RELEASED, lease)


async def requeue(context: OperationContext, task: Task) -> None:
    """Ends the task's lease and makes a task that was under way ready. An agent that was assigned
    stays assigned; an agent that had claimed the task itself does not."""
    last = task.assignments[-1] if task.assignments else None
    by_itself = last is not None and last.assigned_by == last.agent_id
    if task.status in (TaskStatus.CLAIMED, TaskStatus.RUNNING):
        transition = TaskTransition(status=TaskStatus.READY, reassign=by_itself)
        await apply_transition(context, task, transition)
    else:
        await end_lease(context, task)


async def _claim_task(context: OperationContext, task: Task, seconds: int) -> ClaimedTask:
    if task.status not in _CLAIMABLE:
        raise TransitionError(
            f"a task that is {task.status} cannot be claimed", current_version=task.version
        )
    transition = TaskTransition(
        status=TaskStatus.CLAIMED if task.status is TaskStatus.READY else None,
        reassign=task.assigned_agent is None,
        assigned_agent=context.principal.id,
        accepts=True,
    )
    if transition.status is not None or transition.reassign or not task.is_accepted:
        task = await apply_transition(context, task, transition)
    lease = await acquire_lease(
        context,
        context.principal.id,
        LeaseKind.TASK,
        task.intent_id,
        task.id,
        until=expiry_after(context.now, seconds),
    )
    await record_lease(context, WorkEventType.LEASE_ACQUIRED, lease)
    return ClaimedTask(await open_record(context, task), lease)


async def _held(context: OperationContext, task_id: str) -> Lease:
    lease = await check_writer(context)
    if lease is None or lease.kind is not LeaseKind.TASK or lease.name != task_id:
        raise FencedError("send the fencing token of this task as `Fencing-Token`")
    if context.principal.session is not None:
        await load_authorized_task(context, task_id)
    return lease


async def _next(
    context: OperationContext, capabilities: frozenset[str], intent_id: str | None
) -> Task | None:
    for task in await context.transaction.tasks.open_of(context.principal.id):
        if intent_id in (None, task.intent_id) and await _is_free(context, task, capabilities):
            return task
    ids = await _open_to(context, intent_id)
    if ids:
        for task in await context.transaction.tasks.unassigned(ids, _MOST_LOOKED_AT):
            if await _is_free(context, task, capabilities):
                return task
    return None


async def _is_free(context: OperationContext, task: Task, capabilities: frozenset[str]) -> bool:
    if task.status not in _CLAIMABLE or not capabilities.issuperset(task.capabilities_required):
        return False
    lease = await context.transaction.leases.current(LeaseKind.TASK, task.intent_id, task.id)
    is_held = lease is not None and lease.is_live(context.now)
    await context.transaction.give_way()
    return not is_held and await is_of_session(context, task)


async def _open_to(context: OperationContext, intent_id: str | None) -> list[str]:
    """The intents in which the principal may claim tasks without an agent."""
    if intent_id is not None:
        intent = await context.transaction.intents.get(intent_id)
        found = [] if intent is None else [intent]
    else:
        ids = await list_participating(context)
        found, _ = await context.transaction.intents.list(
            context.principal.id, ids, IntentStatus.ACTIVE, _MOST_LOOKED_AT, 0
        )
    return [intent.id for intent in found if await is_allowed(context, Verb.UPDATE, intent)]
