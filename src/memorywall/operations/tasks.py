"""Tasks, their assignment and their claims."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from memorywall.coordination import assignment, tasks
from memorywall.coordination.access import check_readable
from memorywall.coordination.assignment import ClaimedTask
from memorywall.coordination.tasks import NewTask, TaskPatch
from memorywall.longterm.episodes import store_task_episode
from memorywall.operations.binding import multi_transaction_operation, operation
from memorywall.records.copier import copier
from memorywall.records.errors import ValidationError
from memorywall.records.task import MemoryPolicy, Task
from memorywall.service.access.known_names import find_agent
from memorywall.service.entries.record_writes import open_record
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.service.runner.operation_runner import OperationTransactions
from memorywall.sessions.handoff import admit_assigned_agent
from memorywall.wire.leases import LeaseResponse, lease_view
from memorywall.wire.tasks import (
    KEPT_TASK_FIELDS,
    ClaimedTaskResponse,
    TaskRequest,
    TaskResponse,
    task_view,
)


async def _recheck(context: OperationContext, call: OperationCall) -> None:
    await check_readable(context, call.body.intent_id)


def _others(body: TaskRequest) -> dict[str, Any]:
    kept = {name: getattr(body, name) for name in KEPT_TASK_FIELDS}
    return {name: value for name, value in kept.items() if value is not None}


_wanted = copier(
    TaskRequest,
    NewTask,
    memory_policy=lambda body: body.memory_policy or MemoryPolicy(),
    capabilities_required=lambda body: tuple(dict.fromkeys(body.capabilities_required)),
    depends_on=lambda body: tuple(dict.fromkeys(body.depends_on)),
    others=_others,
)


@operation("create_task", recheck=_recheck)
async def create_task(context: OperationContext, call: OperationCall) -> TaskResponse:
    task = await tasks.create(context, _wanted(call.body))
    await admit_assigned_agent(context, await open_record(context, task))
    return await _show(context, task)


@operation("get_task")
async def get_task(context: OperationContext, call: OperationCall) -> TaskResponse:
    return await _show(context, await tasks.get(context, call.path["task_id"]))


@operation("list_intent_tasks")
async def list_intent_tasks(context: OperationContext, call: OperationCall) -> list[TaskResponse]:
    asked = call.query
    found = await tasks.list_of_intent(
        context,
        call.path["intent_id"],
        asked.status,
        asked.limit,
        asked.offset,
    )
    return [await _show(context, one) for one in found]


@operation("list_tasks")
async def list_tasks(context: OperationContext, call: OperationCall) -> list[TaskResponse]:
    asked = call.query
    agent = await find_agent(context, asked.assigned_agent or context.principal.id)
    found = await tasks.list_of_agent(
        context,
        agent,
        asked.status,
        asked.limit,
        asked.offset,
        intent_id=asked.intent_id,
    )
    return [await _show(context, one) for one in found]


# A task may end with a thousand entries to archive.
@operation("update_task", is_long=lambda call: bool(call.body.ends))
async def update_task(context: OperationContext, call: OperationCall) -> TaskResponse:
    given = {
        name: getattr(call.body, name)
        for name in call.body.__struct_fields__
        if getattr(call.body, name) is not UNSET
    }
    state = given.pop("state", UNSET)
    if state is not UNSET and given.setdefault("status", state) is not state:
        raise ValidationError("`state` and `status` are the same; give one of them")
    report = given.pop("episode", None)
    if report is not None and not call.body.ends:
        raise ValidationError("`episode` belongs to the update that completes or fails the task")
    if not given:
        raise ValidationError("nothing to change: give at least one field")
    result = await tasks.update(context, call.path["task_id"], call.version, TaskPatch(**given))
    if "assigned_agent" in given:
        await admit_assigned_agent(context, result)
    if call.body.ends and result.completed_at == context.now:
        await store_task_episode(context, result, report)
    return await _show(context, result)


@multi_transaction_operation("next_task")
async def next_task(transactions: OperationTransactions) -> ClaimedTaskResponse | None:
    body = transactions.call.body
    capabilities = frozenset(body.capabilities)
    # Usually no task is available, and a read is sufficient to find that out.
    if await transactions.read(assignment.find_next, capabilities, body.intent_id) is None:
        return None
    taken = await transactions.write(
        assignment.claim_next, capabilities, body.intent_id, body.lease_seconds
    )
    return None if taken is None else _claimed_view(taken)


@operation("claim_task")
async def claim_task(context: OperationContext, call: OperationCall) -> ClaimedTaskResponse:
    result = await assignment.claim(context, call.path["task_id"], call.body.lease_seconds)
    return _claimed_view(result)


@operation("renew_task_lease")
async def renew_task_lease(context: OperationContext, call: OperationCall) -> LeaseResponse:
    result = await assignment.renew_lease(context, call.path["task_id"], call.body.duration_seconds)
    return lease_view(result)


@operation("release_task")
async def release_task(context: OperationContext, call: OperationCall) -> None:
    await assignment.release(context, call.path["task_id"])


async def _show(context: OperationContext, task: Task) -> TaskResponse:
    """Returns the response for a task, with its sealed fields in clear text."""
    return task_view(await open_record(context, task))


def _claimed_view(taken: ClaimedTask) -> ClaimedTaskResponse:
    return ClaimedTaskResponse(task=task_view(taken.task), lease=lease_view(taken.lease))
