"""Loads the facts about tasks and intents that access decisions about memory need."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from memorywall.policy.intents import access_to_intent, applies_to
from memorywall.policy.visibility_filter import NO_WORK_ACCESS, WorkAccess
from memorywall.records.coordinator import Guardrails
from memorywall.records.decision import Target, Verb, WorkRelations
from memorywall.records.entry import Scope
from memorywall.records.errors import ValidationError
from memorywall.records.filter import EntryFilter
from memorywall.records.identifiers import is_same_name
from memorywall.records.intent import Intent, IntentGrant
from memorywall.records.lease import LeaseKind
from memorywall.records.namespace import Access
from memorywall.records.task import Task, TaskStatus
from memorywall.records.tier import Isolation, ReadAccess, Tier
from memorywall.service.access.groups import list_intent_grants, load_groups
from memorywall.service.requests.namespace_names import all_forms
from memorywall.service.requests.operation_context import OperationContext
from memorywall.tiers import TIERS

DEEPEST_TASK = 32
"""The most levels of parent tasks."""
_MOST_TASKS = 10_000
_ACCEPTED = (TaskStatus.CLAIMED, TaskStatus.RUNNING, TaskStatus.BLOCKED, TaskStatus.READY)


async def resolve_scope(context: OperationContext, scope: Scope) -> tuple[Scope, Task | None]:
    """The scope with the intent of its task, and the task.

    A task or intent that the server does not know is only a name. A scope with a task and without
    an intent has an unknown task. Raises ValidationError if a known task does not belong to the
    intent.
    """
    if scope.task_id is None:
        return scope, None
    task = await context.transaction.tasks.get(scope.task_id)
    if task is not None:
        if scope.intent_id not in (None, task.intent_id):
            raise ValidationError("`scope.task_id` is a task of another intent")
        return msgspec.structs.replace(scope, intent_id=task.intent_id), task
    if (
        scope.intent_id is not None
        and await context.transaction.intents.get(scope.intent_id) is not None
    ):
        raise ValidationError("`scope.task_id` is not a task of that intent")
    return scope, None


async def load_relations(
    context: OperationContext, scope: Scope, *, own: bool
) -> WorkRelations | None:
    """The relations of the principal to the task or intent of stored memory; see
    `load_task_relations`."""
    task = None
    # The scope of memory of a known task also names its intent: see `resolve_scope`.
    if scope.task_id is not None and (scope.intent_id is not None or not own):
        task = await context.transaction.tasks.get(scope.task_id)
    return await load_task_relations(context, scope, task, own=own)


async def load_task_relations(
    context: OperationContext, scope: Scope, task: Task | None, *, own: bool
) -> WorkRelations | None:
    """The relations of the principal to a task, or to the intent of a scope without a task; None
    for an unknown task or intent.

    own: whether the memory is the principal's own, for which fewer facts are needed
    """
    if own and task is not None and task.assigned_agent is not None:
        return WorkRelations(
            of_task=True, is_terminal=task.is_terminal, assigned=task.assigned_agent
        )
    intent_id = task.intent_id if task is not None else scope.intent_id
    intent = None if intent_id is None else await context.transaction.intents.get(intent_id)
    if intent is None:
        return None
    coordinates = await coordinates_intent(context, intent.id)
    grants = await _load_grants(context, intent)
    working = await works_for(context, intent.id)
    level = access_to_intent(
        context.principal, intent, grants, coordinates=coordinates, works=working, now=context.now
    )
    return WorkRelations(
        of_task=task is not None,
        is_terminal=task is not None and task.is_terminal,
        assigned=None if task is None else task.assigned_agent,
        coordinates=task is not None and coordinates,
        inherits=task is not None and not own and task.id in await inherited_tasks(context),
        granted=any(
            applies_to(one, context.principal) and one.is_active(context.now) for one in grants
        ),
        takes_part=level.covers(Access.WRITE),
    )


async def intent_target(context: OperationContext, intent: Intent) -> Target:
    """The target for an intent, its tasks and its log."""
    works = await works_for(context, intent.id)
    grants = await _load_grants(context, intent)
    level = access_to_intent(
        context.principal,
        intent,
        grants,
        coordinates=await coordinates_intent(context, intent.id),
        works=works,
        worked=works or await _worked_for(context, intent.id),
        now=context.now,
    )
    return Target(tenant=intent.tenant, isolation=Isolation.INTENT, level=level)


async def _load_grants(context: OperationContext, intent: Intent) -> list[IntentGrant]:
    """The access list of an intent. Loads the groups of the principal if it names one."""
    grants = await context.transaction.intents.grants(intent.id)
    await load_groups(context, (grant.principal_id for grant in grants))
    return grants


async def coordinates_intent(context: OperationContext, intent_id: str) -> bool:
    """Whether the principal coordinates the intent now."""
    lease = await context.transaction.leases.current(LeaseKind.COORDINATOR, intent_id, "")
    return lease is not None and lease.holder == context.principal.id and lease.is_live(context.now)


async def works_for(context: OperationContext, intent_id: str) -> bool:
    """Whether an open task of the intent is assigned to the principal."""
    tasks = await context.transaction.tasks.open_of(context.principal.id)
    return any(task.intent_id == intent_id for task in tasks)


async def _worked_for(context: OperationContext, intent_id: str) -> bool:
    """Whether any task of the intent is assigned to the principal."""
    return await context.transaction.tasks.works_in(context.principal.id, intent_id)


async def inherited_tasks(context: OperationContext) -> set[str]:
    """The ancestors whose memory the tasks of the principal inherit."""
    inherited: set[str] = set()
    for task in await context.transaction.tasks.open_of(context.principal.id):
        below: Task | None = task
        while below is not None and below.memory_policy.inherit_from_parent:
            above = below.parent_task_id
            if above is None or above in inherited:
                break
            inherited.add(above)
            below = await context.transaction.tasks.get(above)
    return inherited


async def coordinates_agent(context: OperationContext, agent: str) -> bool:
    """Whether the principal coordinates a task that the agent has accepted itself."""
    leases = await context.transaction.leases.held_by(
        LeaseKind.COORDINATOR, context.principal.id, context.now
    )
    intents = {lease.parent for lease in leases}
    if not intents:
        return False
    tasks = await context.transaction.tasks.open_of(agent)
    return any(task.is_accepted and task.intent_id in intents for task in tasks)


async def load_guardrails(context: OperationContext, agent: str) -> list[Guardrails]:
    """The guardrails that bind an agent: those of intents with an open task that the agent has
    accepted, and of intents that the agent coordinates and has acted for. An assignment or an
    appointment by others has no effect until the agent accepts it."""
    intents = {
        task.intent_id
        for task in await context.transaction.tasks.open_of(agent)
        if task.is_accepted
    }
    held = await context.transaction.leases.held_by(LeaseKind.COORDINATOR, agent, context.now)
    for lease in held:
        coordinator = await context.transaction.coordinators.get(lease.id)
        if coordinator is not None and coordinator.is_accepted:
            intents.add(lease.parent)
    found = []
    for intent_id in sorted(intents):
        intent = await context.transaction.intents.get(intent_id)
        if intent is not None and intent.guardrails is not None:
            found.append(await _with_forms(context, intent.guardrails))
    return found


async def _with_forms(context: OperationContext, guardrails: Guardrails) -> Guardrails:
    """The guardrails with the stored forms of the namespaces that they name."""
    denied, allowed = guardrails.denied_semantic_namespaces, guardrails.allowed_semantic_namespaces
    return msgspec.structs.replace(
        guardrails,
        denied_semantic_namespaces=None if denied is None else await all_forms(context, denied),
        allowed_semantic_namespaces=None if allowed is None else await all_forms(context, allowed),
    )


def is_denied(guardrails: Iterable[Guardrails], namespace: str) -> bool:
    """Whether any of the guardrails denies a semantic namespace."""
    return not all(one.admits(namespace) for one in guardrails)


async def load_work_access(
    context: OperationContext, verb: Verb, wanted: EntryFilter, tiers: tuple[Tier, ...]
) -> WorkAccess:
    """The relations of the principal to other agents' memory that `wanted` could match."""
    if verb is not Verb.READ or wanted.agent_id == context.principal.id:
        return NO_WORK_ACCESS
    opening = {TIERS[tier].access for tier in tiers}
    working, episodic = ReadAccess.WORK in opening, ReadAccess.COORDINATOR in opening
    if not (working or episodic):
        return NO_WORK_ACCESS
    leases = await context.transaction.leases.held_by(
        LeaseKind.COORDINATOR, context.principal.id, context.now
    )
    agents: tuple[str, ...] = ()
    if episodic and leases:
        agents = await _agents_of(context, [one.parent for one in leases], wanted)
    if not working:
        return WorkAccess(episodic=agents)
    if wanted.task_id is not None:
        scope = Scope(task_id=wanted.task_id)
        work = await load_relations(context, scope, own=False)
        return WorkAccess(tasks={} if work is None else {wanted.task_id: work}, episodic=agents)
    tasks = {
        task.id: WorkRelations(of_task=True, assigned=context.principal.id)
        for task in await context.transaction.tasks.open_of(context.principal.id)
    }
    for task_id in await inherited_tasks(context):
        task = await context.transaction.tasks.get(task_id)
        if task is not None and not task.is_terminal:
            tasks.setdefault(task_id, WorkRelations(of_task=True, inherits=True))
    grants = await list_intent_grants(context)
    return WorkAccess(
        tasks=tasks,
        intents={grant.intent_id: WorkRelations(granted=True) for grant in grants},
        coordinated={
            lease.parent: WorkRelations(of_task=True, coordinates=True) for lease in leases
        },
        episodic=agents,
    )


async def _agents_of(
    context: OperationContext, intents: list[str], wanted: EntryFilter
) -> tuple[str, ...]:
    """The agents that have accepted an open task of these intents."""
    agents = set()
    for intent_id in intents:
        for status in _ACCEPTED:
            for task in await context.transaction.tasks.list(intent_id, status, _MOST_TASKS, 0):
                if task.is_accepted and task.assigned_agent is not None:
                    agents.add(task.assigned_agent)
    if wanted.agent_id is not None:
        agents = {one for one in agents if is_same_name(wanted.agent_id, one)}
    return tuple(sorted(agents))
