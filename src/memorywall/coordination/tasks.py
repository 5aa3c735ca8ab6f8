"""Tasks: making them, looking at them, moving them through their states (RFC-0012)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from msgspec import UNSET, UnsetType

from memorywall.coordination.access import enter_intent, is_allowed
from memorywall.coordination.progress import Move, carry_out, waits_for_any
from memorywall.policy.decide import decide
from memorywall.records.decision import Target, Verb
from memorywall.records.errors import (
    MemoryAccessError,
    MemoryCapacityError,
    ResourceConflictError,
    ResourceNotFoundError,
    TransitionError,
    ValidationError,
)
from memorywall.records.event import WorkEvent
from memorywall.records.principal import Principal
from memorywall.records.task import Assignment, MemoryPolicy, Task, TaskStatus
from memorywall.storage.port import Script, Transaction
from memorywall.wall.door import Door, authorize
from memorywall.wall.fencing import guard_task, held_lease
from memorywall.wall.limits import check_agent, check_name, encode_value
from memorywall.wall.log import record_work
from memorywall.wall.work import DEEPEST_TASK

MOST_TASKS = 10_000
MOST_NAMES = 64
_CHUNK = 500
_FULL = f"an intent may have at most {MOST_TASKS} tasks"


@dataclass(frozen=True, kw_only=True, slots=True)
class NewTask:
    """A task to be made; see `Task`."""

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
class TaskChange:
    """What to change of a task; what is left out stays."""

    status: TaskStatus | UnsetType = UNSET
    assigned_agent: str | UnsetType | None = UNSET
    output: dict[str, Any] | UnsetType | None = UNSET
    error: str | UnsetType | None = UNSET
    blocked_reason: str | UnsetType | None = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET


async def create(door: Door, principal: Principal, wanted: NewTask) -> Script[Task]:
    """A script that makes a task: ready, or pending until what it depends on is completed.

    Raises ValidationError, ValueTooLargeError; when run ResourceNotFoundError, MemoryAccessError,
    MemoryCapacityError.
    """
    _check(wanted)
    now = door.now()

    async def script(transaction: Transaction) -> Task:
        tenant = principal.tenant
        intent, target = await enter_intent(
            transaction, principal, Verb.CREATE, wanted.intent_id, now
        )
        if await transaction.tasks.count(tenant, intent.id) >= MOST_TASKS:
            raise MemoryCapacityError(_FULL, current_count=MOST_TASKS, max_capacity=MOST_TASKS)
        if wanted.parent_task_id is not None:
            await _check_parent(transaction, principal, wanted, target)
        await _check_dependencies(transaction, tenant, wanted)
        waits = await waits_for_any(transaction, tenant, wanted.depends_on)
        task = Task(
            tenant=tenant,
            id=door.ids.next("task"),
            intent_id=intent.id,
            name=wanted.name,
            description=wanted.description,
            status=TaskStatus.PENDING if waits else TaskStatus.READY,
            priority=wanted.priority,
            input=wanted.input,
            assigned_agent=wanted.assigned_agent,
            assignments=_first_assignment(principal, wanted, now),
            capabilities_required=wanted.capabilities_required,
            depends_on=wanted.depends_on,
            parent_task_id=wanted.parent_task_id,
            memory_policy=wanted.memory_policy,
            max_attempts=wanted.max_attempts,
            metadata=wanted.metadata,
            others=wanted.others,
            created_by=principal.id,
            created_at=now,
            updated_at=now,
        )
        await transaction.tasks.insert(task)
        await record_work(
            transaction,
            WorkEvent.TASK_CREATED,
            tenant=tenant,
            by=principal,
            at=now,
            intent_id=intent.id,
            task_id=task.id,
            agent=task.assigned_agent,
            data={"task_id": task.id, "name": task.name, "status": task.status},
        )
        return task

    return script


async def get(door: Door, principal: Principal, task_id: str) -> Task:
    """A task of an intent the caller may read. Raises ResourceNotFoundError, MemoryAccessError."""
    now = door.now()

    async def script(transaction: Transaction) -> Task:
        task, _ = await enter_task(transaction, principal, task_id, now)
        return task

    return await door.store.read(principal.tenant, script)


async def list_of_intent(
    door: Door,
    principal: Principal,
    intent_id: str,
    status: TaskStatus | None,
    limit: int,
    offset: int,
) -> list[Task]:
    """The tasks of an intent the caller may read, oldest first."""
    now = door.now()

    async def script(transaction: Transaction) -> list[Task]:
        await enter_intent(transaction, principal, Verb.READ, intent_id, now)
        return await transaction.tasks.list(principal.tenant, intent_id, status, limit, offset)

    return await door.store.read(principal.tenant, script)


async def list_of_agent(
    door: Door,
    principal: Principal,
    agent: str,
    status: TaskStatus | None,
    limit: int,
    offset: int,
    *,
    intent_id: str | None = None,
) -> list[Task]:
    """The tasks assigned to an agent, in one intent or in all of those the caller may read."""
    now = door.now()

    async def script(transaction: Transaction) -> list[Task]:
        tenant = principal.tenant
        if intent_id is not None:
            await enter_intent(transaction, principal, Verb.READ, intent_id, now)
            tasks = await transaction.tasks.list(tenant, intent_id, status, MOST_TASKS, 0)
            return [task for task in tasks if task.assigned_agent == agent][offset:][:limit]
        readable = set()
        for one in await transaction.tasks.intents_of(tenant, agent):
            intent = await transaction.intents.get(tenant, one)
            if intent is not None and await is_allowed(
                transaction, principal, Verb.READ, intent, now
            ):
                readable.add(one)
        found: list[Task] = []
        looked_at = 0
        # What the caller may not read takes no place on a page.
        while readable and len(found) < offset + limit:
            some = await transaction.tasks.assigned(tenant, agent, status, _CHUNK, looked_at)
            found.extend(task for task in some if task.intent_id in readable)
            looked_at += len(some)
            if len(some) < _CHUNK:
                break
        return found[offset:][:limit]

    return await door.store.read(principal.tenant, script)


async def update(
    door: Door, principal: Principal, task_id: str, version: int, change: TaskChange
) -> Script[Task]:
    """A script that changes a task at `version`.

    The agent it is assigned to moves it through its states, under the task's fencing token where
    there is one; who administers or coordinates the intent does so too, and assigns it.

    Raises, here or when run: ValidationError, ValueTooLargeError, ResourceNotFoundError,
    MemoryAccessError, ResourceConflictError, TransitionError, FencedError.
    """
    for content in (change.output, change.metadata):
        if isinstance(content, dict):
            encode_value(content)
    if isinstance(change.assigned_agent, str):
        check_agent("assigned_agent", change.assigned_agent)
    now = door.now()

    async def script(transaction: Transaction) -> Task:
        task, target = await enter_task(transaction, principal, task_id, now)
        if task.version != version:
            raise ResourceConflictError(
                "the task has another version now; read it and send the current one",
                current_version=task.version,
            )
        manages = decide(principal, Verb.ADMINISTER, target).allowed
        await _check_part(transaction, principal, task, target, change, manages, now)
        status = None if change.status is UNSET else change.status
        ready = status is TaskStatus.READY
        if ready and await waits_for_any(transaction, task.tenant, task.depends_on):
            raise TransitionError("what the task depends on is not completed yet")
        move = Move(
            status=status,
            reassign=change.assigned_agent is not UNSET,
            assigned_agent=None if change.assigned_agent is UNSET else change.assigned_agent,
            fields={
                name: getattr(change, name)
                for name in ("output", "error", "blocked_reason", "metadata")
                if getattr(change, name) is not UNSET
            },
        )
        return await carry_out(door, transaction, principal, task, move, now)

    return script


async def enter_task(
    transaction: Transaction, principal: Principal, task_id: str, now: str
) -> tuple[Task, Target]:
    """A task the principal may read, and the target that stands for it."""
    task = await transaction.tasks.get(principal.tenant, task_id)
    if task is None:
        raise ResourceNotFoundError("there is no such task")
    _, target = await enter_intent(transaction, principal, Verb.READ, task.intent_id, now)
    return task, target


async def _check_part(
    transaction: Transaction,
    principal: Principal,
    task: Task,
    target: Target,
    change: TaskChange,
    manages: bool,
    now: str,
) -> None:
    """Raises MemoryAccessError or FencedError unless `principal` may make this change."""
    lease = await held_lease(transaction, principal, now)
    own = task.assigned_agent == principal.id
    reassigns = change.assigned_agent is not UNSET and change.assigned_agent != task.assigned_agent
    if own and not (manages and reassigns):
        token = None if lease is None else lease.token
        await guard_task(transaction, task.tenant, task.intent_id, task.id, token)
    if manages:
        return
    authorize(principal, Verb.UPDATE, target)
    if change.status in (TaskStatus.CANCELLED, TaskStatus.SKIPPED) or task.is_over:
        raise MemoryAccessError("only who coordinates or administers the intent can do this")
    if task.assigned_agent is None and change.assigned_agent == principal.id:
        return
    if not own:
        raise MemoryAccessError("the task is another agent's; who coordinates it may change that")
    if reassigns and change.assigned_agent is not None:
        raise MemoryAccessError("only who coordinates or administers the intent can reassign it")


async def _check_parent(
    transaction: Transaction, principal: Principal, wanted: NewTask, target: Target
) -> None:
    """A sub-task belongs to its parent's intent. Only who may read the parent's working memory,
    or let itself do so, can hand it down."""
    above: Task | None = await transaction.tasks.get(principal.tenant, wanted.parent_task_id or "")
    if above is None or above.intent_id != wanted.intent_id:
        raise ResourceNotFoundError("`parent_task_id` is not a task of this intent")
    manages = decide(principal, Verb.ADMINISTER, target).allowed
    if (
        wanted.memory_policy.inherit_from_parent
        and not manages
        and above.assigned_agent != principal.id
    ):
        raise MemoryAccessError(
            "only the parent task's agent or coordinator can hand its memory on"
        )
    depth = 1
    while above is not None and above.parent_task_id is not None:
        depth += 1
        above = await transaction.tasks.get(principal.tenant, above.parent_task_id)
    if depth >= DEEPEST_TASK:
        raise MemoryCapacityError(
            "tasks are nested too deep", current_count=depth, max_capacity=DEEPEST_TASK
        )


async def _check_dependencies(transaction: Transaction, tenant: str, wanted: NewTask) -> None:
    for other in wanted.depends_on:
        task = await transaction.tasks.get(tenant, other)
        if task is None or task.intent_id != wanted.intent_id:
            raise ResourceNotFoundError("`depends_on` names what is not a task of this intent")


def _first_assignment(principal: Principal, wanted: NewTask, now: str) -> tuple[Assignment, ...]:
    if wanted.assigned_agent is None:
        return ()
    return (Assignment(agent_id=wanted.assigned_agent, assigned_by=principal.id, assigned_at=now),)


def _check(wanted: NewTask) -> None:
    check_name("name", wanted.name, longest=512)
    if wanted.assigned_agent is not None:
        check_agent("assigned_agent", wanted.assigned_agent)
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
