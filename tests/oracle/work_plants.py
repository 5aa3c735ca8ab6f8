"""Leaks and wrong denials about work to plant in the system, like those in `plants`."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from memorywall.coordination import archive, intents, tasks
from memorywall.policy import decide as policy
from memorywall.records.decision import Decision, Target, Verb, Work
from memorywall.records.entry import Entry
from memorywall.records.event import Event
from memorywall.records.filter import Filter
from memorywall.records.intent import IntentGrant
from memorywall.records.lease import Lease, LeaseKind
from memorywall.records.principal import Principal
from memorywall.records.task import Task, TaskStatus
from memorywall.records.tier import Tier
from memorywall.server.handlers import agents, bridge
from memorywall.storage.port import Transaction
from memorywall.wall import door, work
from memorywall.wall.queries import Page
from memorywall.wire.agents import event_view
from tests.oracle.callers import AGENTS, TENANTS
from tests.oracle.plants import EVERYTHING
from tests.support.backend import class_of_store

Patch = pytest.MonkeyPatch

_LONG_AGO = "1970-01-01T00:00:00.000Z"
_YES = Decision(True, "planted")


def _yes(*_: Any) -> Decision:
    return _YES


def being_given_a_task_opens_episodes(patch: Patch) -> None:
    """A coordinator reads the episodes of whoever it gives a task to."""

    async def lenient(transaction: Transaction, principal: Principal, agent: str, now: str) -> bool:
        leases = await transaction.leases.held_by(
            principal.tenant, LeaseKind.COORDINATOR, principal.id, now
        )
        given = await transaction.tasks.open_of(principal.tenant, agent)
        return any(task.intent_id == lease.place for task in given for lease in leases)

    patch.setattr(door, "coordinates_agent", lenient)


def being_given_a_task_lists_episodes(patch: Patch) -> None:
    """The same, where a query is concerned."""

    async def lenient(
        transaction: Transaction, tenant: str, places: list[str], wanted: Filter
    ) -> tuple[str, ...]:
        found = set()
        for place in places:
            for task in await transaction.tasks.list(tenant, place, None, 1_000, 0):
                if task.assigned_agent in (wanted.agent_id or task.assigned_agent, None):
                    found.add(task.assigned_agent or "")
        return tuple(sorted(found - {""}))

    patch.setattr(work, "_agents_of", lenient)


def coordinators_outlive_their_lease(patch: Patch) -> None:
    """Whoever coordinates an intent does so until the sweep has come by."""

    async def lasting(
        transaction: Transaction, principal: Principal, intent_id: str, now: str
    ) -> bool:
        lease = await transaction.leases.current(
            principal.tenant, LeaseKind.COORDINATOR, intent_id, ""
        )
        return lease is not None and lease.holder == principal.id

    patch.setattr(work, "coordinates_intent", lasting)


def lists_outlive_the_lease(patch: Patch) -> None:
    """A lapsed lease still opens what a query finds."""
    honest: Callable[..., Awaitable[list[Lease]]] = class_of_store("Leases").held_by

    async def lasting(
        self: Any, tenant: str, kind: LeaseKind, holder: str, now: str
    ) -> list[Lease]:
        return await honest(self, tenant, kind, holder, _LONG_AGO)

    patch.setattr(class_of_store("Leases"), "held_by", lasting)


def heartbeats_revive_the_lapsed(patch: Patch) -> None:
    """What has lapsed can be renewed until it is swept."""
    honest: Callable[..., Awaitable[Lease | None]] = class_of_store("Leases").extend

    async def lasting(
        self: Any, tenant: str, token: int, holder: str, until: str, now: str
    ) -> Lease | None:
        return await honest(self, tenant, token, holder, until, _LONG_AGO)

    patch.setattr(class_of_store("Leases"), "extend", lasting)


def the_replaced_write_on(patch: Patch) -> None:
    """An agent keeps writing to memory of a task that another has now."""
    honest = policy._decide_as_owner

    def lenient(principal: Principal, verb: Verb, bound: Work) -> Decision:
        return honest(principal, verb, replace(bound, assigned=None, takes_part=True))

    patch.setattr(policy, "_decide_as_owner", lenient)


def tasks_that_are_over_take_memory(patch: Patch) -> None:
    """Memory can be written to a task that is over, where nobody will ever archive it."""
    honest = policy._decide_as_owner

    def lenient(principal: Principal, verb: Verb, bound: Work) -> Decision:
        return honest(principal, verb, replace(bound, is_over=False))

    patch.setattr(policy, "_decide_as_owner", lenient)


def _plant_inheritance(patch: Patch, follows: Callable[[Task, int], bool]) -> None:
    async def planted(transaction: Transaction, principal: Principal) -> set[str]:
        found: set[str] = set()
        for task in await transaction.tasks.open_of(principal.tenant, principal.id):
            below: Task | None = task
            depth = 0
            while below is not None and below.parent_task_id and follows(below, depth):
                found.add(below.parent_task_id)
                below = await transaction.tasks.get(principal.tenant, below.parent_task_id)
                depth += 1
        return found

    patch.setattr(work, "inherited_tasks", planted)


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
    patch.setattr(IntentGrant, "counts", lambda self, now: True)


def open_intents_open_memory(patch: Patch) -> None:
    """Whoever takes part in an intent reads the working memory of its tasks."""
    honest = policy._decide_as_other

    def lenient(principal: Principal, verb: Verb, target: Target) -> Decision:
        bound = target.work
        if verb is Verb.READ and bound is not None and bound.takes_part and not bound.is_over:
            return _YES
        return honest(principal, verb, target)

    patch.setattr(policy, "_decide_as_other", lenient)


def archives_hold_every_value(patch: Patch) -> None:
    """The sensitivity of what is archived is not asked."""
    honest = archive._snapshot

    async def opened(at: Any, transaction: Transaction, entry: Entry) -> dict[str, Any]:
        return await honest(at, transaction, await at.vault.open(transaction, entry))

    patch.setattr(archive, "SEALED_SENSITIVITIES", frozenset())
    patch.setattr(archive, "_snapshot", opened)


def the_end_clears_nothing(patch: Patch) -> None:
    """Working memory stays when its task is over."""

    async def nothing(self: Any, tenant: str, tier: Tier, task_id: str) -> list[Entry]:
        return []

    patch.setattr(class_of_store("Entries"), "of_task", nothing)


def streams_tell_archived_values(patch: Patch) -> None:
    """The agent's own stream shows archives as the intent's log does."""
    honest = event_view
    patch.setattr(agents, "event_view", lambda event: honest(event, with_values=True))


def naming_a_task_opens_it(patch: Patch) -> None:
    """A query by task is answered as if the caller worked on it."""
    honest = work.work_of

    async def lenient(*arguments: Any, own: bool) -> Work | None:
        found = await honest(*arguments, own=own)
        asked_by_task = not own and arguments[2].intent_id is None
        return replace(found, granted=True) if found is not None and asked_by_task else found

    patch.setattr(work, "work_of", lenient)


def who_has_worked_reads_on(patch: Patch) -> None:
    """A replaced agent keeps reading the intent and its log."""

    async def lenient(transaction: Transaction, principal: Principal, intent_id: str) -> bool:
        known = await transaction.tasks.list(principal.tenant, intent_id, None, 1_000, 0)
        return any(one.agent_id == principal.id for task in known for one in task.assignments)

    patch.setattr(work, "_worked_for", lenient)


def logs_are_public(patch: Patch) -> None:
    """Every intent's log can be read in its tenant."""

    async def unchecked(
        at: Any,
        principal: Principal,
        intent_id: str,
        after: int,
        limit: int,
        *,
        kind: str | None = None,
        since: str | None = None,
    ) -> list[Event]:
        async def script(transaction: Transaction) -> list[Event]:
            return await transaction.events.list_of_intent(
                principal.tenant, intent_id, after, limit, kind=kind, since=since
            )

        found: list[Event] = await at.store.read(principal.tenant, script)
        return found

    patch.setattr(intents, "list_events", unchecked)


def tasks_are_listed_for_all(patch: Patch) -> None:
    """An agent's tasks are shown whoever may read their intents."""

    async def unfiltered(
        at: Any,
        principal: Principal,
        agent: str,
        status: TaskStatus | None,
        limit: int,
        offset: int,
        *,
        intent_id: str | None = None,
    ) -> list[Task]:
        async def script(transaction: Transaction) -> list[Task]:
            return await transaction.tasks.assigned(principal.tenant, agent, status, limit, offset)

        found: list[Task] = await at.store.read(principal.tenant, script)
        return [task for task in found if intent_id in (None, task.intent_id)]

    patch.setattr(tasks, "list_of_agent", unfiltered)


def intents_are_listed_for_all(patch: Patch) -> None:
    """The list of intents leaves none out."""

    async def every(transaction: Transaction, principal: Principal, now: str) -> set[str]:
        found: set[str] = set()
        for agent in AGENTS:
            made, _ = await transaction.intents.list(principal.tenant, agent, (), None, 1_000, 0)
            found.update(intent.id for intent in made)
        return found

    patch.setattr(intents, "part_in", every)


def tasks_of_tenants_are_mixed_up(patch: Patch) -> None:
    """A task of the other tenant is found by its id."""
    honest = tasks.get

    async def borderless(at: Any, principal: Principal, task_id: str) -> Task:
        async def look(tenant: str, transaction: Transaction) -> Task | None:
            return await transaction.tasks.get(tenant, task_id)

        for tenant in TENANTS:
            foreign: Task | None = await at.store.read(tenant, functools.partial(look, tenant))
            if foreign is not None and foreign.tenant != principal.tenant:
                return foreign
        return await honest(at, principal, task_id)

    patch.setattr(tasks, "get", borderless)


def the_bridge_forgets_the_rules(patch: Patch) -> None:
    """Working memory is given out to whoever knows its name."""

    async def wide(at: Any, principal: Principal, wanted: Filter) -> Page:
        async def script(transaction: Transaction) -> list[Entry]:
            everybody = replace(EVERYTHING, owners=(wanted.agent_id or "",))
            found, _ = await transaction.entries.search(wanted, everybody, at.now())
            return [await at.vault.open(transaction, entry) for entry in found]

        found: Sequence[Entry] = await at.store.read(principal.tenant, script)
        return Page(entries=list(found), total=len(found), limit=1, offset=0)

    patch.setattr(bridge, "queries", SimpleNamespace(query=wide))


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
