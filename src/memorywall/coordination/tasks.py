"""Creation, reading and updates of tasks (RFC-0012)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from msgspec import UNSET, UnsetType, structs

from memorywall.coordination.access import is_allowed, load_authorized_intent
from memorywall.coordination.transitions import TaskTransition, apply_transition, waits_for_any
from memorywall.records.decision import Target, Verb
from memorywall.records.errors import (
    MemoryAccessError,
    MemoryCapacityError,
    ResourceConflictError,
    ResourceNotFoundError,
    TransitionError,
    ValidationError,
)
from memorywall.records.event import WorkEventType
from memorywall.records.principal import Principal
from memorywall.records.task import SESSION_FIELD, Assignment, MemoryPolicy, Task, TaskStatus
from memorywall.records.tier import Tier
from memorywall.service.access.authorization_facts import DEEPEST_TASK
from memorywall.service.access.known_names import known_agent
from memorywall.service.entries.record_writes import insert_record, open_record
from memorywall.service.requests.event_log import append_work_event
from memorywall.service.requests.fencing import guard_task, require_lease
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.validation import check_name, encode_value

MOST_TASKS = 10_000
MOST_NAMES = 64
_CHUNK = 500
_UNKNOWN = "there is no such task"
_FULL = f"an intent may have at most {MOST_TASKS} tasks"


@dataclass(frozen=True, kw_only=True, slots=True)
class NewTask:
    """A new task; see `Task`."""

    intent_id: str
    name: str
    description: str | None
    parent_task_id: str | None
    memory_policy: MemoryPolicy
    assigned_agent: str | None
    capabilities_required: tuple[str, ...]
    depends_on: tuple[str, ...]
    input: dict[str, Any]
    priority: str
    max_attempts: int
    metadata: dict[str, Any]
    others: dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskPatch:
    """An update of a task; omitted fields do not change."""

    status: TaskStatus | UnsetType = UNSET
    assigned_agent: str | UnsetType | None = UNSET
    output: dict[str, Any] | UnsetType | None = UNSET
    error: str | UnsetType | None = UNSET
    blocked_reason: str | UnsetType | None = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET


async def create(context: OperationContext, wanted: NewTask) -> Task:
    """Creates a task: ready, or pending until its dependencies are completed.

    Raises ValidationError, ValueTooLargeError and ResourceNotFoundError, MemoryAccessError,
    MemoryCapacityError.
    """
    wanted = await _checked(context, wanted)
    intent, target = await load_authorized_intent(context, Verb.CREATE, wanted.intent_id)
    if await context.transaction.tasks.count(intent.id) >= MOST_TASKS:
        raise MemoryCapacityError(_FULL, current_count=MOST_TASKS, max_capacity=MOST_TASKS)
    if wanted.parent_task_id is not None:
        await _check_parent(context, wanted, target)
    await _check_dependencies(context, wanted)
    waits = await waits_for_any(context, wanted.depends_on)
    task = Task(
        tenant=context.tenant,
        id=context.service.ids.next("task"),
        intent_id=intent.id,
        name=wanted.name,
        description=wanted.description,
        status=TaskStatus.PENDING if waits else TaskStatus.READY,
        priority=wanted.priority,
        input=wanted.input,
        assigned_agent=wanted.assigned_agent,
        assignments=_first_assignment(context.principal, wanted, context.now),
        capabilities_required=wanted.capabilities_required,
        depends_on=wanted.depends_on,
        parent_task_id=wanted.parent_task_id,
        memory_policy=wanted.memory_policy,
        max_attempts=wanted.max_attempts,
        metadata=wanted.metadata,
        others=wanted.others,
        created_by=context.principal.id,
        created_at=context.now,
        updated_at=context.now,
    )
    await insert_record(context, task)
    await append_work_event(
        context,
        WorkEventType.TASK_CREATED,
        intent_id=intent.id,
        task_id=task.id,
        agent=task.assigned_agent,
        data={"task_id": task.id, "name": task.name, "status": task.status},
    )
    return task


async def get(context: OperationContext, task_id: str) -> Task:
    """A task of an intent that the caller may read. Raises ResourceNotFoundError,
    MemoryAccessError."""
    task, _ = await load_authorized_task(context, task_id)
    return task


async def list_of_intent(
    context: OperationContext, intent_id: str, status: TaskStatus | None, limit: int, offset: int
) -> list[Task]:
    """The tasks of an intent that the caller may read, oldest first."""
    await load_authorized_intent(context, Verb.READ, intent_id)
    return await context.transaction.tasks.list(intent_id, status, limit, offset)


async def list_of_agent(
    context: OperationContext,
    agent: str,
    status: TaskStatus | None,
    limit: int,
    offset: int,
    *,
    intent_id: str | None = None,
) -> list[Task]:
    """The tasks that are assigned to an agent, in intents that the caller may read; inside a
    session those of the session.

    intent_id: only tasks of this intent, None for any
    """
    tasks = context.transaction.tasks
    if intent_id is not None:
        await load_authorized_intent(context, Verb.READ, intent_id)
        readable = {intent_id}
        page = partial(tasks.list, intent_id, status, _CHUNK)
    else:
        context.decide_by_row()
        readable = await _readable_intents(context, agent)
        page = partial(tasks.assigned, agent, status, _CHUNK)
    found: list[Task] = []
    looked_at = 0
    # Tasks of other agents, and those that the caller may not read, do not count on a page.
    while readable and len(found) < offset + limit:
        some = await page(looked_at)
        allowed = [
            task for task in some if task.assigned_agent == agent and task.intent_id in readable
        ]
        found.extend(await _of_session(context, allowed))
        looked_at += len(some)
        if len(some) < _CHUNK:
            break
    return found[offset:][:limit]


async def _readable_intents(context: OperationContext, agent: str) -> set[str]:
    """The intents with tasks of an agent that the caller may read."""
    readable = set()
    for one in await context.transaction.tasks.intents_of(agent):
        intent = await context.transaction.intents.get(one)
        if intent is not None and await is_allowed(context, Verb.READ, intent):
            readable.add(one)
        await context.transaction.give_way()
    return readable


async def update(context: OperationContext, task_id: str, version: int, change: TaskPatch) -> Task:
    """Updates a task at `version`.

    The assigned agent changes the status, with the task's fencing token if there is one.
    Administrators and coordinators of the intent may also change the status, and assign the task.

    Raises ValidationError, ValueTooLargeError, ResourceNotFoundError,
    MemoryAccessError, ResourceConflictError, TransitionError, FencedError.
    """
    for content in (change.output, change.metadata):
        if isinstance(content, dict):
            encode_value(content)
    if isinstance(change.assigned_agent, str):
        agent = await known_agent(context, "assigned_agent", change.assigned_agent)
        change = replace(change, assigned_agent=agent)
    task, target = await load_authorized_task(context, task_id)
    change = _keep_session(context, change)
    if task.version != version:
        raise ResourceConflictError(
            "the task has another version now; read it and send the current one",
            current_version=task.version,
        )
    manages = context.allows(Verb.ADMINISTER, target)
    await _check_part(context, task, target, change, manages)
    status = None if change.status is UNSET else change.status
    ready = status is TaskStatus.READY
    if ready and await waits_for_any(context, task.depends_on):
        raise TransitionError("a dependency of the task is not completed yet")
    transition = TaskTransition(
        status=status,
        reassign=change.assigned_agent is not UNSET,
        assigned_agent=None if change.assigned_agent is UNSET else change.assigned_agent,
        fields={
            name: getattr(change, name)
            for name in ("output", "error", "blocked_reason", "metadata")
            if getattr(change, name) is not UNSET
        },
    )
    return await apply_transition(context, task, transition)


async def load_authorized_task(
    context: OperationContext, task_id: str, *, for_steps: bool = False
) -> tuple[Task, Target]:
    """A task that the principal may read, and its target. Inside a session it is one that names the
    session; others look like missing ones.

    for_steps: whether a task of the principal that names no session is accepted as well, because
        only what the session has in its working memory is read and written; default: false
    """
    task = await context.transaction.tasks.get(task_id)
    if task is None:
        raise ResourceNotFoundError(_UNKNOWN)
    _, target = await load_authorized_intent(context, Verb.READ, task.intent_id)
    if context.principal.session is None:
        return task, target
    session = (await open_record(context, task)).session_id
    if session is None and for_steps and task.assigned_agent == context.principal.id:
        session = context.principal.session.id
    target = structs.replace(target, tier=Tier.WORKING, session=session)
    if not context.allows(Verb.READ, target):
        error = ResourceNotFoundError(_UNKNOWN)
        error.hides_refusal = True
        raise error
    return task, target


async def is_of_session(context: OperationContext, task: Task) -> bool:
    """Whether a request is outside of sessions, or inside the session that a task names."""
    session = context.principal.session
    return session is None or (await open_record(context, task)).session_id == session.id


async def _of_session(context: OperationContext, tasks: Sequence[Task]) -> list[Task]:
    return [task for task in tasks if await is_of_session(context, task)]


def _keep_session(context: OperationContext, change: TaskPatch) -> TaskPatch:
    """Returns an update after which a task still names the session of the request. Raises
    ValidationError."""
    session, metadata = context.principal.session, change.metadata
    if session is None or isinstance(metadata, UnsetType):
        return change
    if metadata.get(SESSION_FIELD, session.id) != session.id:
        raise ValidationError(
            f"`metadata.{SESSION_FIELD}` must be the session of this request, or left out"
        )
    return replace(change, metadata={**metadata, SESSION_FIELD: session.id})


async def _check_part(
    context: OperationContext, task: Task, target: Target, change: TaskPatch, manages: bool
) -> None:
    """Raises MemoryAccessError or FencedError unless the principal may make this update."""
    require_lease(context)
    own = task.assigned_agent == context.principal.id
    reassigns = change.assigned_agent is not UNSET and change.assigned_agent != task.assigned_agent
    if own and not (manages and reassigns):
        await guard_task(context, task.intent_id, task.id)
    if manages:
        return
    context.authorize(Verb.UPDATE, target)
    if change.status in (TaskStatus.CANCELLED, TaskStatus.SKIPPED) or task.is_terminal:
        raise MemoryAccessError("only a coordinator or administrator of the intent can do this")
    if task.assigned_agent is None and change.assigned_agent == context.principal.id:
        return
    if not own:
        raise MemoryAccessError(
            "the task is assigned to another agent; a coordinator of the intent can reassign it"
        )
    if reassigns and change.assigned_agent is not None:
        raise MemoryAccessError(
            "only a coordinator or administrator of the intent can reassign the task"
        )


async def _check_parent(context: OperationContext, wanted: NewTask, target: Target) -> None:
    """Checks that the parent task is of the same intent, and that the caller may let a task inherit
    its memory: the caller must be able to read that memory."""
    above: Task | None = await context.transaction.tasks.get(wanted.parent_task_id or "")
    if above is None or above.intent_id != wanted.intent_id:
        raise ResourceNotFoundError("`parent_task_id` is not a task of this intent")
    manages = context.allows(Verb.ADMINISTER, target)
    if (
        wanted.memory_policy.inherit_from_parent
        and not manages
        and above.assigned_agent != context.principal.id
    ):
        raise MemoryAccessError(
            "only the parent task's agent or coordinator can let a task inherit its memory"
        )
    depth = 1
    while above is not None and above.parent_task_id is not None:
        depth += 1
        above = await context.transaction.tasks.get(above.parent_task_id)
    if depth >= DEEPEST_TASK:
        raise MemoryCapacityError(
            "tasks are nested too deep", current_count=depth, max_capacity=DEEPEST_TASK
        )


async def _check_dependencies(context: OperationContext, wanted: NewTask) -> None:
    for other in wanted.depends_on:
        task = await context.transaction.tasks.get(other)
        if task is None or task.intent_id != wanted.intent_id:
            raise ResourceNotFoundError(
                "`depends_on` names an id that is not a task of this intent"
            )


def _first_assignment(principal: Principal, wanted: NewTask, now: str) -> tuple[Assignment, ...]:
    if wanted.assigned_agent is None:
        return ()
    return (Assignment(agent_id=wanted.assigned_agent, assigned_by=principal.id, assigned_at=now),)


async def _checked(context: OperationContext, wanted: NewTask) -> NewTask:
    """Returns a new task with its names in the stored form. Raises ValidationError."""
    agent = wanted.assigned_agent
    if agent is not None:
        agent = await known_agent(context, "assigned_agent", agent)
    for field, names in (
        ("capabilities_required", wanted.capabilities_required),
        ("depends_on", wanted.depends_on),
    ):
        if len(names) > MOST_NAMES:
            raise ValidationError(f"`{field}` may have at most {MOST_NAMES} members")
        for name in names:
            check_name(field, name)
    encode_value(wanted.input)
    encode_value(wanted.metadata)
    encode_value(wanted.others)
    if wanted.description is not None and len(wanted.description) > 65_536:
        raise ValidationError("`description` may have at most 65536 characters")
    name = check_name("name", wanted.name, longest=512)
    return replace(wanted, name=name, assigned_agent=agent)
