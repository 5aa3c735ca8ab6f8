"""How an agent takes a task up, holds it and gives it back."""

from __future__ import annotations

from dataclasses import dataclass

from memorywall.coordination.access import anywhere, check_writer, is_allowed
from memorywall.coordination.intents import part_in
from memorywall.coordination.leases import end_of, record_lease, renew, take
from memorywall.coordination.progress import Move, carry_out, end_lease
from memorywall.coordination.tasks import enter_task
from memorywall.records.decision import Verb
from memorywall.records.errors import (
    FencedError,
    MemoryAccessError,
    ResourceNotFoundError,
    TransitionError,
)
from memorywall.records.event import WorkEvent
from memorywall.records.intent import IntentStatus
from memorywall.records.lease import Lease, LeaseKind
from memorywall.records.principal import Principal
from memorywall.records.task import Task, TaskStatus
from memorywall.storage.port import Script, Transaction
from memorywall.wall.door import Door, authorize

_CAN_BE_TAKEN = frozenset({TaskStatus.READY, TaskStatus.CLAIMED, TaskStatus.RUNNING})
_MOST_LOOKED_AT = 1_000


@dataclass(frozen=True, slots=True)
class Taken:
    """A task and the lease under which its agent works on it."""

    task: Task
    lease: Lease


async def claim(door: Door, principal: Principal, task_id: str, seconds: int) -> Script[Taken]:
    """A script that takes a task up: assigned to nobody, it is the caller's now.

    Raises when run: ResourceNotFoundError, MemoryAccessError, TransitionError, HeldError.
    """
    now = door.now()

    async def script(transaction: Transaction) -> Taken:
        task, target = await enter_task(transaction, principal, task_id, now)
        authorize(principal, Verb.UPDATE, target)
        if task.assigned_agent not in (None, principal.id):
            raise MemoryAccessError("the task is assigned to another agent")
        return await _take_up(door, transaction, principal, task, seconds, now)

    return script


async def claim_next(
    door: Door,
    principal: Principal,
    capabilities: frozenset[str],
    intent_id: str | None,
    seconds: int,
) -> Taken | None:
    """Takes up the oldest task the caller can: assigned to it, or to nobody where it takes part in
    the intent; that needs only these capabilities and that nobody holds. None when there is none.
    """
    now = door.now()

    async def look(transaction: Transaction) -> Task | None:
        # It is shown what it takes up, so it needs to be allowed to read as well.
        authorize(principal, Verb.READ, anywhere(principal))
        await check_writer(transaction, principal, now)
        return await _next(transaction, principal, capabilities, intent_id, now)

    async def script(transaction: Transaction) -> Taken | None:
        task = await look(transaction)
        if task is None:
            return None
        return await _take_up(door, transaction, principal, task, seconds, now)

    # Most of the time there is nothing to do, and finding that out needs no write.
    if await door.store.read(principal.tenant, look) is None:
        return None
    return await door.store.write(principal.tenant, script)


async def renew_lease(
    door: Door, principal: Principal, task_id: str, seconds: int
) -> Script[Lease]:
    """A script that renews the task lease whose token the request carries. Raises FencedError."""
    now = door.now()

    async def script(transaction: Transaction) -> Lease:
        lease = await _held(transaction, principal, task_id, now)
        return await renew(transaction, principal, lease.token, until=end_of(now, seconds), now=now)

    return script


async def give_back(door: Door, principal: Principal, task_id: str) -> Script[None]:
    """A script that gives a task back whose token the request carries: it is ready again, for
    anybody if the caller had taken it by itself. Raises FencedError."""
    now = door.now()

    async def script(transaction: Transaction) -> None:
        lease = await _held(transaction, principal, task_id, now)
        task = await transaction.tasks.get(principal.tenant, task_id)
        if task is None:
            raise ResourceNotFoundError("there is no such task")
        await put_back(door, transaction, principal, task, now)
        await record_lease(transaction, WorkEvent.LEASE_RELEASED, lease, by=principal, at=now)

    return script


async def put_back(
    door: Door, transaction: Transaction, principal: Principal | None, task: Task, now: str
) -> None:
    """Ends the task's lease and makes the task ready where it was under way. Who was assigned to
    it stays so; who had taken it by itself does not."""
    last = task.assignments[-1] if task.assignments else None
    by_itself = last is not None and last.assigned_by == last.agent_id
    if task.status in (TaskStatus.CLAIMED, TaskStatus.RUNNING):
        move = Move(status=TaskStatus.READY, reassign=by_itself)
        await carry_out(door, transaction, principal, task, move, now)
    else:
        await end_lease(transaction, task)


async def _take_up(
    door: Door,
    transaction: Transaction,
    principal: Principal,
    task: Task,
    seconds: int,
    now: str,
) -> Taken:
    if task.status not in _CAN_BE_TAKEN:
        raise TransitionError(
            f"a task that is {task.status} cannot be taken up", current_version=task.version
        )
    move = Move(
        status=TaskStatus.CLAIMED if task.status is TaskStatus.READY else None,
        reassign=task.assigned_agent is None,
        assigned_agent=principal.id,
        accepts=True,
    )
    if move.status is not None or move.reassign or not task.is_accepted:
        task = await carry_out(door, transaction, principal, task, move, now)
    lease = await take(
        door,
        transaction,
        task.tenant,
        principal.id,
        LeaseKind.TASK,
        task.intent_id,
        task.id,
        until=end_of(now, seconds),
        now=now,
    )
    await record_lease(transaction, WorkEvent.LEASE_ACQUIRED, lease, by=principal, at=now)
    return Taken(task, lease)


async def _held(transaction: Transaction, principal: Principal, task_id: str, now: str) -> Lease:
    lease = await check_writer(transaction, principal, now)
    if lease is None or lease.kind is not LeaseKind.TASK or lease.name != task_id:
        raise FencedError("send the fencing token of this task as `Fencing-Token`")
    return lease


async def _next(
    transaction: Transaction,
    principal: Principal,
    capabilities: frozenset[str],
    intent_id: str | None,
    now: str,
) -> Task | None:
    tenant = principal.tenant
    for task in await transaction.tasks.open_of(tenant, principal.id):
        if intent_id in (None, task.intent_id) and await _is_free(
            transaction, task, capabilities, now
        ):
            return task
    ids = await _open_to(transaction, principal, intent_id, now)
    if ids:
        for task in await transaction.tasks.unassigned(tenant, ids, _MOST_LOOKED_AT):
            if await _is_free(transaction, task, capabilities, now):
                return task
    return None


async def _is_free(
    transaction: Transaction, task: Task, capabilities: frozenset[str], now: str
) -> bool:
    if task.status not in _CAN_BE_TAKEN or not capabilities.issuperset(task.capabilities_required):
        return False
    lease = await transaction.leases.current(task.tenant, LeaseKind.TASK, task.intent_id, task.id)
    return lease is None or not lease.is_live(now)


async def _open_to(
    transaction: Transaction, principal: Principal, intent_id: str | None, now: str
) -> list[str]:
    """The intents in which the principal may take what nobody is assigned to."""
    tenant = principal.tenant
    if intent_id is not None:
        intent = await transaction.intents.get(tenant, intent_id)
        found = [] if intent is None else [intent]
    else:
        ids = await part_in(transaction, principal, now)
        found, _ = await transaction.intents.list(
            tenant, principal.id, ids, IntentStatus.ACTIVE, _MOST_LOOKED_AT, 0
        )
    return [
        intent.id
        for intent in found
        if await is_allowed(transaction, principal, Verb.UPDATE, intent, now)
    ]
