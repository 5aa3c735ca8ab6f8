"""Leaks and wrong denials about work to plant in the system, like those in `plants`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from memorywall.coordination import archive, intents, tasks
from memorywall.operations import agents, bridge
from memorywall.operations.binding import FUNCTIONS
from memorywall.policy import decide as policy
from memorywall.records.decision import Decision, Target, Verb, WorkRelations
from memorywall.records.entry import Entry
from memorywall.records.event import Event
from memorywall.records.filter import EntryFilter
from memorywall.records.intent import IntentGrant
from memorywall.records.lease import Lease, LeaseKind
from memorywall.records.principal import Principal
from memorywall.records.task import Task, TaskStatus
from memorywall.records.tier import Tier
from memorywall.service.access import authorization_facts, targets
from memorywall.service.entries.matches import QueryPage
from memorywall.service.requests.operation_context import BoundFunction, OperationContext
from memorywall.service.runner.operation_runner import OperationTransactions, run_read
from memorywall.storage.sql.leases import SqlLeaseRepository
from memorywall.wire.events import event_view
from memorywall.wire.tasks import TaskResponse, task_view
from tests.oracle.callers import AGENTS, TENANTS
from tests.oracle.seeded_defects import EVERYTHING
from tests.support.backend import class_of_store

Patch = pytest.MonkeyPatch

_LONG_AGO = "1970-01-01T00:00:00.000Z"
_YES = Decision(True, "planted")


def being_given_a_task_opens_episodes(patch: Patch) -> None:
    """A coordinator reads the episodes of whoever it gives a task to."""

    async def lenient(context: OperationContext, agent: str) -> bool:
        leases = await context.transaction.leases.held_by(
            LeaseKind.COORDINATOR, context.principal.id, context.now
        )
        given = await context.transaction.tasks.open_of(agent)
        return any(task.intent_id == lease.parent for task in given for lease in leases)

    patch.setattr(targets, "coordinates_agent", lenient)


def being_given_a_task_lists_episodes(patch: Patch) -> None:
    """The same, where a query is concerned."""

    async def lenient(
        context: OperationContext, places: list[str], wanted: EntryFilter
    ) -> tuple[str, ...]:
        found = set()
        for place in places:
            for task in await context.transaction.tasks.list(place, None, 1_000, 0):
                if task.assigned_agent in (wanted.agent_id or task.assigned_agent, None):
                    found.add(task.assigned_agent or "")
        return tuple(sorted(found - {""}))

    patch.setattr(authorization_facts, "_agents_of", lenient)


def coordinators_outlive_their_lease(patch: Patch) -> None:
    """Whoever coordinates an intent does so until the sweep has come by."""

    async def lasting(context: OperationContext, intent_id: str) -> bool:
        lease = await context.transaction.leases.current(LeaseKind.COORDINATOR, intent_id, "")
        return lease is not None and lease.holder == context.principal.id

    patch.setattr(authorization_facts, "coordinates_intent", lasting)


def lists_outlive_the_lease(patch: Patch) -> None:
    """A lapsed lease still opens what a query finds."""
    honest: Callable[..., Awaitable[list[Lease]]] = SqlLeaseRepository.held_by

    async def lasting(self: Any, kind: LeaseKind, holder: str, now: str) -> list[Lease]:
        return await honest(self, kind, holder, _LONG_AGO)

    patch.setattr(SqlLeaseRepository, "held_by", lasting)


def heartbeats_revive_the_lapsed(patch: Patch) -> None:
    """What has lapsed can be renewed until it is swept."""
    honest: Callable[..., Awaitable[Lease | None]] = SqlLeaseRepository.extend

    async def lasting(self: Any, token: int, holder: str, until: str, now: str) -> Lease | None:
        return await honest(self, token, holder, until, _LONG_AGO)

    patch.setattr(SqlLeaseRepository, "extend", lasting)


def the_replaced_write_on(patch: Patch) -> None:
    """An agent keeps writing to memory of a task that another has now."""
    honest = policy._decide_as_owner

    def lenient(principal: Principal, verb: Verb, bound: WorkRelations) -> Decision:
        return honest(principal, verb, replace(bound, assigned=None, takes_part=True))

    patch.setattr(policy, "_decide_as_owner", lenient)


def tasks_that_are_over_take_memory(patch: Patch) -> None:
    """Memory can be written to a task that is over, where nobody will ever archive it."""
    honest = policy._decide_as_owner

    def lenient(principal: Principal, verb: Verb, bound: WorkRelations) -> Decision:
        return honest(principal, verb, replace(bound, is_terminal=False))

    patch.setattr(policy, "_decide_as_owner", lenient)


def _plant_inheritance(patch: Patch, follows: Callable[[Task, int], bool]) -> None:
    async def planted(context: OperationContext) -> set[str]:
        found: set[str] = set()
        for task in await context.transaction.tasks.open_of(context.principal.id):
            below: Task | None = task
            depth = 0
            while below is not None and below.parent_task_id and follows(below, depth):
                found.add(below.parent_task_id)
                below = await context.transaction.tasks.get(below.parent_task_id)
                depth += 1
        return found

    patch.setattr(authorization_facts, "inherited_tasks", planted)


def inheritance_ends_with_the_parent(patch: Patch) -> None:
    """What the parent inherits is not handed on."""
    _plant_inheritance(
        patch, lambda task, depth: depth == 0 and task.memory_policy.inherit_from_parent
    )


def inheritance_skips_a_link(patch: Patch) -> None:
    """Once a task inherits, it inherits from all above, whether they do or not."""
    _plant_inheritance(
        patch, lambda task, depth: depth > 0 or task.memory_policy.inherit_from_parent
    )


def every_subtask_inherits(patch: Patch) -> None:
    """The policy of a task is not asked."""
    _plant_inheritance(patch, lambda task, depth: depth == 0)


def anybody_hands_memory_down(patch: Patch) -> None:
    """Who may make a task may let it inherit what is closed to himself."""

    async def unchecked(*_: Any) -> None:
        return None

    patch.setattr(tasks, "_check_parent", unchecked)


def expired_lines_count(patch: Patch) -> None:
    """A line of an access list lets in for ever."""
    patch.setattr(IntentGrant, "is_active", lambda self, now: True)


def open_intents_open_memory(patch: Patch) -> None:
    """Whoever takes part in an intent reads the working memory of its tasks."""
    honest = policy._decide_as_other

    def lenient(principal: Principal, verb: Verb, target: Target) -> Decision:
        bound = target.work
        if verb is Verb.READ and bound is not None and bound.takes_part and not bound.is_terminal:
            return _YES
        return honest(principal, verb, target)

    patch.setattr(policy, "_decide_as_other", lenient)


def archives_hold_every_value(patch: Patch) -> None:
    """The sensitivity of what is archived is not asked."""
    honest = archive._snapshot

    async def opened(context: OperationContext, entry: Entry) -> dict[str, Any]:
        return await honest(context, await context.service.cipher.open(context.transaction, entry))

    patch.setattr(archive, "SEALED_SENSITIVITIES", frozenset())
    patch.setattr(archive, "_snapshot", opened)


def the_end_clears_nothing(patch: Patch) -> None:
    """Working memory stays when its task is over."""

    async def nothing(self: Any, tier: Tier, task_id: str) -> list[Entry]:
        return []

    patch.setattr(class_of_store("Entries"), "of_task", nothing)


def streams_tell_archived_values(patch: Patch) -> None:
    """The agent's own stream shows archives as the intent's log does."""
    honest = event_view
    patch.setattr(agents, "event_view", lambda event: honest(event, with_values=True))


def naming_a_task_opens_it(patch: Patch) -> None:
    """A query by task is answered as if the caller worked on it."""
    honest = authorization_facts.load_relations

    async def lenient(*arguments: Any, own: bool) -> WorkRelations | None:
        found = await honest(*arguments, own=own)
        asked_by_task = not own and arguments[1].intent_id is None
        return replace(found, granted=True) if found is not None and asked_by_task else found

    patch.setattr(authorization_facts, "load_relations", lenient)


def who_has_worked_reads_on(patch: Patch) -> None:
    """A replaced agent keeps reading the intent and its log."""

    async def lenient(context: OperationContext, intent_id: str) -> bool:
        known = await context.transaction.tasks.list(intent_id, None, 1_000, 0)
        agent = context.principal.id
        return any(one.agent_id == agent for task in known for one in task.assignments)

    patch.setattr(authorization_facts, "_worked_for", lenient)


def logs_are_public(patch: Patch) -> None:
    """Every intent's log can be read in its tenant."""

    async def unchecked(
        context: OperationContext,
        intent_id: str,
        after: int,
        limit: int,
        *,
        kind: str | None = None,
        since: str | None = None,
    ) -> list[Event]:
        context.decide_by_row()
        return await context.transaction.events.list_of_intent(
            intent_id, after, limit, kind=kind, since=since
        )

    patch.setattr(intents, "list_events", unchecked)


def tasks_are_listed_for_all(patch: Patch) -> None:
    """An agent's tasks are shown whoever may read their intents."""

    async def unfiltered(
        context: OperationContext,
        agent: str,
        status: TaskStatus | None,
        limit: int,
        offset: int,
        *,
        intent_id: str | None = None,
    ) -> list[Task]:
        context.decide_by_row()
        found = await context.transaction.tasks.assigned(agent, status, limit, offset)
        return [task for task in found if intent_id in (None, task.intent_id)]

    patch.setattr(tasks, "list_of_agent", unfiltered)


def intents_are_listed_for_all(patch: Patch) -> None:
    """The list of intents leaves none out."""

    async def every(context: OperationContext) -> set[str]:
        found: set[str] = set()
        for agent in AGENTS:
            made, _ = await context.transaction.intents.list(agent, (), None, 1_000, 0)
            found.update(intent.id for intent in made)
        return found

    patch.setattr(intents, "list_participating", every)


def tasks_of_tenants_are_mixed_up(patch: Patch) -> None:
    """A task of the other tenant is found by its id."""

    async def look(context: OperationContext, task_id: str) -> Task | None:
        context.decide_by_row()
        return await context.transaction.tasks.get(task_id)

    async def borderless(transactions: OperationTransactions) -> TaskResponse:
        task_id = transactions.call.path["task_id"]
        for tenant in TENANTS:
            stranger = replace(transactions.principal, tenant=tenant)
            foreign = await run_read(
                transactions.service, stranger, lambda context: look(context, task_id)
            )
            if foreign is not None and foreign.tenant != transactions.principal.tenant:
                return task_view(foreign)
        return task_view(await transactions.read(tasks.get, task_id))

    patch.setitem(FUNCTIONS, "get_task", BoundFunction(run=borderless, in_session=True))


def the_bridge_forgets_the_rules(patch: Patch) -> None:
    """Working memory is given out to whoever knows its name."""

    async def wide(context: OperationContext, wanted: EntryFilter) -> QueryPage:
        context.decide_by_row()
        everybody = structs.replace(EVERYTHING, owners=(wanted.agent_id or "",))
        found, _ = await context.transaction.entries.search(wanted, everybody, context.now)
        opened = [await context.service.cipher.open(context.transaction, entry) for entry in found]
        return QueryPage(entries=opened, total=len(opened), limit=1, offset=0)

    patch.setattr(bridge, "query_matches", wide)


WORK_PLANTS: tuple[Callable[[Patch], None], ...] = (
    being_given_a_task_opens_episodes,
    being_given_a_task_lists_episodes,
    coordinators_outlive_their_lease,
    lists_outlive_the_lease,
    heartbeats_revive_the_lapsed,
    the_replaced_write_on,
    tasks_that_are_over_take_memory,
    inheritance_ends_with_the_parent,
    inheritance_skips_a_link,
    every_subtask_inherits,
    anybody_hands_memory_down,
    expired_lines_count,
    open_intents_open_memory,
    archives_hold_every_value,
    the_end_clears_nothing,
    streams_tell_archived_values,
    naming_a_task_opens_it,
    who_has_worked_reads_on,
    logs_are_public,
    tasks_are_listed_for_all,
    intents_are_listed_for_all,
    tasks_of_tenants_are_mixed_up,
    the_bridge_forgets_the_rules,
)
