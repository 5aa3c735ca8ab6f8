"""Tasks, and how agents take them up."""

from __future__ import annotations

from msgspec import UNSET

from memorywall.coordination import assignment, tasks
from memorywall.coordination.access import readable
from memorywall.coordination.assignment import Taken
from memorywall.coordination.tasks import NewTask, TaskChange
from memorywall.records.errors import ValidationError
from memorywall.records.task import MemoryPolicy, Task
from memorywall.server.dispatch import Call
from memorywall.server.once import write_once
from memorywall.server.replies import Reply, json_reply
from memorywall.wire.leases import lease_view
from memorywall.wire.work import KEPT_TASK_FIELDS, TakenTask, task_view


async def create_task(call: Call) -> Reply:
    body = call.body
    wanted = NewTask(
        intent_id=body.intent_id,
        name=body.name,
        description=body.description,
        parent_task_id=body.parent_task_id,
        memory_policy=body.memory_policy or MemoryPolicy(),
        assigned_agent=body.assigned_agent,
        capabilities_required=tuple(dict.fromkeys(body.capabilities_required)),
        depends_on=tuple(dict.fromkeys(body.depends_on)),
        input=body.input,
        priority=body.priority,
        max_attempts=body.max_attempts,
        metadata=body.metadata,
        others={
            name: getattr(body, name)
            for name in KEPT_TASK_FIELDS
            if getattr(body, name) is not None
        },
    )
    script = await tasks.create(call.door, call.principal, wanted)
    return await write_once(
        call,
        script,
        lambda made: _task_reply(made, 201),
        lambda made: (),
        recheck=readable(call.door, call.principal, body.intent_id),
    )


async def get_task(call: Call) -> Reply:
    return _task_reply(await tasks.get(call.door, call.principal, call.path["task_id"]))


async def list_intent_tasks(call: Call) -> Reply:
    asked = call.query
    found = await tasks.list_of_intent(
        call.door,
        call.principal,
        call.path["intent_id"],
        asked.status,
        asked.limit,
        asked.offset,
    )
    return json_reply([task_view(one) for one in found])


async def list_tasks(call: Call) -> Reply:
    asked = call.query
    agent = asked.assigned_agent or call.principal.id
    found = await tasks.list_of_agent(
        call.door,
        call.principal,
        agent,
        asked.status,
        asked.limit,
        asked.offset,
        intent_id=asked.intent_id,
    )
    return json_reply([task_view(one) for one in found])


async def update_task(call: Call) -> Reply:
    assert call.if_match is not None  # noqa: S101 - the table requires it
    given = {
        name: getattr(call.body, name)
        for name in call.body.__struct_fields__
        if getattr(call.body, name) is not UNSET
    }
    state = given.pop("state", UNSET)
    if state is not UNSET and given.setdefault("status", state) is not state:
        raise ValidationError("`state` and `status` are the same; give one of them")
    if not given:
        raise ValidationError("nothing to change: give at least one field")
    script = await tasks.update(
        call.door, call.principal, call.path["task_id"], call.if_match, TaskChange(**given)
    )
    # A task may end with a thousand entries to archive.
    return _task_reply(
        await call.door.store.write(call.principal.tenant, script, long=call.body.ends)
    )


async def next_task(call: Call) -> Reply:
    body = call.body
    taken = await assignment.claim_next(
        call.door,
        call.principal,
        frozenset(body.capabilities),
        body.intent_id,
        body.lease_seconds,
    )
    return Reply(204, b"") if taken is None else _taken_reply(taken)


async def claim_task(call: Call) -> Reply:
    script = await assignment.claim(
        call.door, call.principal, call.path["task_id"], call.body.lease_seconds
    )
    return _taken_reply(await call.door.store.write(call.principal.tenant, script))


async def renew_task_lease(call: Call) -> Reply:
    script = await assignment.renew_lease(
        call.door, call.principal, call.path["task_id"], call.body.duration_seconds
    )
    return json_reply(lease_view(await call.door.store.write(call.principal.tenant, script)))


async def give_task_back(call: Call) -> Reply:
    script = await assignment.give_back(call.door, call.principal, call.path["task_id"])
    await call.door.store.write(call.principal.tenant, script)
    return Reply(204, b"")


def _task_reply(task: Task, status: int = 200) -> Reply:
    headers = ((b"etag", b'"%d"' % task.version),)
    return json_reply(task_view(task), status, headers)


def _taken_reply(taken: Taken) -> Reply:
    return json_reply(TakenTask(task=task_view(taken.task), lease=lease_view(taken.lease)))
