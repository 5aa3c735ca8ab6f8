"""Many large records about the things of a stage, written without requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from memorywall.coordination import intents, tasks
from memorywall.coordination.intents import NewIntent
from memorywall.coordination.tasks import NewTask
from memorywall.kinds.working_memory import SCRATCH, Scratch
from memorywall.records.entry import Entry, Scope
from memorywall.records.principal import Permission, Principal, PrincipalKind
from memorywall.records.task import MemoryPolicy
from memorywall.service.access.key_records import NewKey, add_key
from memorywall.service.entries.governed_entries import make_governed_entry
from memorywall.service.entries.namespace_entry import new_namespace
from memorywall.service.entries.writes import create_new_entry
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.services import SharedServices
from memorywall.service.runner.operation_runner import run_write
from memorywall.working_memory.loaded_memory import NAMESPACE

Add = Callable[[OperationContext, int], Awaitable[object]]
_AT_ONCE = 20


async def write_many(service: SharedServices, agent: str, count: int, add: Add) -> None:
    """Calls `add` with each number below `count`, for an agent that may do everything."""
    principal = Principal(
        tenant="default",
        id=agent,
        kind=PrincipalKind.AGENT,
        permissions=frozenset(Permission),
    )

    async def script(context: OperationContext, numbers: range) -> None:
        context.decide_by_row()
        for number in numbers:
            await add(context, number)

    # On a busy machine a long transaction would miss the deadline of the database.
    for first in range(0, count, _AT_ONCE):
        numbers = range(first, min(first + _AT_ONCE, count))
        await run_write(service, principal, script, numbers, long=True)


def add_work(intent_id: str, task_id: str, value: dict[str, Any]) -> Add:
    """Returns a function that adds a task and an event of an intent, with every third number a
    child of the intent, and with every eighth one an item of the working memory of a task, all of
    them with this value. Every other task has no agent; every other child depends on the intent.
    """

    async def add(context: OperationContext, number: int) -> None:
        await tasks.create(context, _task(intent_id, number, context.principal.id, value))
        await intents.log_event(context, intent_id, "comment", value, None)
        if number % 3 == 0:
            await intents.create(context, _child(intent_id, number, value))
        if number % 8 == 0:
            await create_new_entry(context, _item(context, intent_id, task_id, number, value))

    return add


def _task(intent_id: str, number: int, agent: str, value: dict[str, Any]) -> NewTask:
    return NewTask(
        intent_id=intent_id,
        name=f"task {number}",
        description=None,
        parent_task_id=None,
        memory_policy=MemoryPolicy(),
        assigned_agent=agent if number % 2 else None,
        capabilities_required=(),
        depends_on=(),
        input=value,
        priority="normal",
        max_attempts=3,
        metadata={},
        others={},
    )


def _child(intent_id: str, number: int, value: dict[str, Any]) -> NewIntent:
    return NewIntent(
        title=f"child {number}",
        state=value,
        constraints={},
        parent_intent_id=intent_id,
        depends_on=(intent_id,) if number % 2 else (),
    )


def _item(
    context: OperationContext, intent_id: str, task_id: str, number: int, value: dict[str, Any]
) -> Entry:
    item = Scratch(name=f"item {number}", order=number + 1, content=value, tokens=1)
    return make_governed_entry(
        context,
        SCRATCH,
        item,
        owner=context.principal.id,
        namespace=NAMESPACE,
        key=f"{task_id}/{item.order}",
        scope=Scope(task_id=task_id, intent_id=intent_id),
    )


async def add_namespace(context: OperationContext, number: int) -> None:
    """Adds a namespace."""
    await context.transaction.namespaces.save(new_namespace(context, f"namespace-{number}"))


async def add_large_key(context: OperationContext, number: int) -> None:
    """Adds a key that is limited to many people."""
    wanted = NewKey(
        principal=f"agent-{number}",
        kind=PrincipalKind.AGENT,
        permissions=frozenset({Permission.READ}),
        subjects=tuple([f"subject-{place}" for place in range(100)]),
    )
    await add_key(context, wanted)
