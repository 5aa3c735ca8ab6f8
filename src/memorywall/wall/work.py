"""The facts about tasks and intents that decisions about memory need. Loads; decides nothing."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from memorywall.policy.intents import access_to_intent
from memorywall.policy.reach import NOTHING_OPENED, Opened
from memorywall.records.coordinator import Guardrails
from memorywall.records.decision import Target, Verb, Work
from memorywall.records.entry import Scope
from memorywall.records.errors import ValidationError
from memorywall.records.filter import Filter
from memorywall.records.intent import Intent
from memorywall.records.lease import LeaseKind
from memorywall.records.namespace import Access
from memorywall.records.principal import Principal
from memorywall.records.task import Task, TaskStatus
from memorywall.records.tier import Isolation, Tier
from memorywall.storage.port import Transaction

DEEPEST_TASK = 32
"""How many tasks may stand above one another."""
_MOST_TASKS = 10_000
_TAKEN_UP = (TaskStatus.CLAIMED, TaskStatus.RUNNING, TaskStatus.BLOCKED, TaskStatus.READY)


async def bind(transaction: Transaction, tenant: str, scope: Scope) -> tuple[Scope, Task | None]:
    """The scope with the intent its task belongs to, and that task. A task or intent nobody made
    here is a name like any other, and a scope with a task alone names such a one. Raises
    ValidationError where the two known ones do not belong together."""
    if scope.task_id is None:
        return scope, None
    task = await transaction.tasks.get(tenant, scope.task_id)
    if task is not None:
        if scope.intent_id not in (None, task.intent_id):
            raise ValidationError("`scope.task_id` is a task of another intent")
        return msgspec.structs.replace(scope, intent_id=task.intent_id), task
    if (
        scope.intent_id is not None
        and await transaction.intents.get(tenant, scope.intent_id) is not None
    ):
        raise ValidationError("`scope.task_id` is not a task of that intent")
    return scope, None


async def work_of(
    transaction: Transaction, principal: Principal, scope: Scope, now: str, *, own: bool
) -> Work | None:
    """What `principal` has to do with what stored memory is bound to; see `work_in`."""
    task = None
    # What is bound to a task made here names the task's intent as well: see `bind`.
    if scope.task_id is not None and (scope.intent_id is not None or not own):
        task = await transaction.tasks.get(principal.tenant, scope.task_id)
    return await work_in(transaction, principal, scope, task, now, own=own)


async def work_in(
    transaction: Transaction,
    principal: Principal,
    scope: Scope,
    task: Task | None,
    now: str,
    *,
    own: bool,
) -> Work | None:
    """What `principal` has to do with a task, or with the intent of a scope without one; None where
    that is nothing made here.

    own: whether it is the principal's own memory, for which fewer facts matter
    """
    tenant = principal.tenant
    if own and task is not None and task.assigned_agent is not None:
        return Work(of_task=True, is_over=task.is_over, assigned=task.assigned_agent)
    intent_id = task.intent_id if task is not None else scope.intent_id
    intent = None if intent_id is None else await transaction.intents.get(tenant, intent_id)
    if intent is None:
        return None
    coordinates = await coordinates_intent(transaction, principal, intent.id, now)
    grants = await transaction.intents.grants(tenant, intent.id)
    working = await works_for(transaction, principal, intent.id)
    level = access_to_intent(
        principal, intent, grants, coordinates=coordinates, works=working, now=now
    )
    return Work(
        of_task=task is not None,
        is_over=task is not None and task.is_over,
        assigned=None if task is None else task.assigned_agent,
        coordinates=task is not None and coordinates,
        inherits=task is not None
        and not own
        and task.id in await inherited_tasks(transaction, principal),
        granted=any(one.principal_id == principal.id and one.counts(now) for one in grants),
        takes_part=level.covers(Access.WRITE),
    )


async def intent_target(
    transaction: Transaction, principal: Principal, intent: Intent, now: str
) -> Target:
    """The target that stands for an intent, its tasks and its log."""
    works = await works_for(transaction, principal, intent.id)
    level = access_to_intent(
        principal,
        intent,
        await transaction.intents.grants(intent.tenant, intent.id),
        coordinates=await coordinates_intent(transaction, principal, intent.id, now),
        works=works,
        worked=works or await _worked_for(transaction, principal, intent.id),
        now=now,
    )
    return Target(tenant=intent.tenant, isolation=Isolation.INTENT, level=level)


async def coordinates_intent(
    transaction: Transaction, principal: Principal, intent_id: str, now: str
) -> bool:
    """Whether the principal coordinates the intent now."""
    lease = await transaction.leases.current(principal.tenant, LeaseKind.COORDINATOR, intent_id, "")
    return lease is not None and lease.holder == principal.id and lease.is_live(now)


async def works_for(transaction: Transaction, principal: Principal, intent_id: str) -> bool:
    """Whether an open task of the intent is assigned to the principal."""
    tasks = await transaction.tasks.open_of(principal.tenant, principal.id)
    return any(task.intent_id == intent_id for task in tasks)


async def _worked_for(transaction: Transaction, principal: Principal, intent_id: str) -> bool:
    """Whether any task of the intent is assigned to the principal."""
    return await transaction.tasks.works_in(principal.tenant, principal.id, intent_id)


async def inherited_tasks(transaction: Transaction, principal: Principal) -> set[str]:
    """The tasks above those the principal works on, as far up as each one inherits."""
    inherited: set[str] = set()
    for task in await transaction.tasks.open_of(principal.tenant, principal.id):
        below: Task | None = task
        while below is not None and below.memory_policy.inherit_from_parent:
            above = below.parent_task_id
            if above is None or above in inherited:
                break
            inherited.add(above)
            below = await transaction.tasks.get(principal.tenant, above)
    return inherited


async def coordinates_agent(
    transaction: Transaction, principal: Principal, agent: str, now: str
) -> bool:
    """Whether the principal coordinates a task that the agent has itself taken up."""
    leases = await transaction.leases.held_by(
        principal.tenant, LeaseKind.COORDINATOR, principal.id, now
    )
    intents = {lease.place for lease in leases}
    if not intents:
        return False
    tasks = await transaction.tasks.open_of(principal.tenant, agent)
    return any(task.is_accepted and task.intent_id in intents for task in tasks)


async def guardrails_over(
    transaction: Transaction, tenant: str, agent: str, now: str
) -> list[Guardrails]:
    """The guardrails an agent works under: those of the intents it has taken up an open task of,
    and of those it coordinates and has acted for. What others assign or appoint it to counts for
    nothing until it takes it up."""
    intents = {
        task.intent_id
        for task in await transaction.tasks.open_of(tenant, agent)
        if task.is_accepted
    }
    held = await transaction.leases.held_by(tenant, LeaseKind.COORDINATOR, agent, now)
    for lease in held:
        coordinator = await transaction.coordinators.get(tenant, lease.id)
        if coordinator is not None and coordinator.is_accepted:
            intents.add(lease.place)
    found = []
    for intent_id in sorted(intents):
        intent = await transaction.intents.get(tenant, intent_id)
        if intent is not None and intent.guardrails is not None:
            found.append(intent.guardrails)
    return found


def is_barred(guardrails: Iterable[Guardrails], namespace: str) -> bool:
    """Whether any of the guardrails keeps an agent from a namespace of shared knowledge."""
    return not all(one.admits(namespace) for one in guardrails)


async def opened_by_work(
    transaction: Transaction,
    principal: Principal,
    verb: Verb,
    wanted: Filter,
    tiers: tuple[Tier, ...],
    now: str,
) -> Opened:
    """What of other agents' memory `wanted` could match and work may open to the principal."""
    if verb is not Verb.READ or wanted.agent_id == principal.id:
        return NOTHING_OPENED
    tenant = principal.tenant
    working, episodic = Tier.WORKING in tiers, Tier.EPISODIC in tiers
    if not (working or episodic):
        return NOTHING_OPENED
    leases = await transaction.leases.held_by(tenant, LeaseKind.COORDINATOR, principal.id, now)
    agents: tuple[str, ...] = ()
    if episodic and leases:
        agents = await _agents_of(transaction, tenant, [one.place for one in leases], wanted)
    if not working:
        return Opened(episodic=agents)
    if wanted.task_id is not None:
        scope = Scope(task_id=wanted.task_id)
        work = await work_of(transaction, principal, scope, now, own=False)
        return Opened(tasks={} if work is None else {wanted.task_id: work}, episodic=agents)
    tasks = {
        task.id: Work(of_task=True, assigned=principal.id)
        for task in await transaction.tasks.open_of(tenant, principal.id)
    }
    for task_id in await inherited_tasks(transaction, principal):
        task = await transaction.tasks.get(tenant, task_id)
        if task is not None and not task.is_over:
            tasks.setdefault(task_id, Work(of_task=True, inherits=True))
    grants = await transaction.intents.grants_to(tenant, principal.id, now)
    return Opened(
        tasks=tasks,
        intents={grant.intent_id: Work(granted=True) for grant in grants},
        coordinated={lease.place: Work(of_task=True, coordinates=True) for lease in leases},
        episodic=agents,
    )


async def _agents_of(
    transaction: Transaction, tenant: str, intents: list[str], wanted: Filter
) -> tuple[str, ...]:
    """The agents who have taken up an open task of these intents."""
    agents = set()
    for intent_id in intents:
        for status in _TAKEN_UP:
            for task in await transaction.tasks.list(tenant, intent_id, status, _MOST_TASKS, 0):
                if task.is_accepted and task.assigned_agent is not None:
                    agents.add(task.assigned_agent)
    if wanted.agent_id is not None:
        agents &= {wanted.agent_id}
    return tuple(sorted(agents))
