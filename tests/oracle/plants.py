"""Leaks and wrong denials to plant in the system, to see whether the comparison finds them."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from memorywall.policy import decide as policy
from memorywall.records.decision import Decision, Reach, Target, Verb
from memorywall.records.entry import Entry
from memorywall.records.errors import MemoryNotFoundError
from memorywall.records.event import Event, EventType
from memorywall.records.filter import Filter
from memorywall.records.namespace import Access, Namespace
from memorywall.records.principal import Principal
from memorywall.records.usage import Usage
from memorywall.storage.port import Transaction
from memorywall.wall import entries, keyring, log, namespaces, queries, streams, summaries
from memorywall.wall.door import Door
from tests.oracle.callers import AGENTS
from tests.oracle.session import NAMESPACES
from tests.support.backend import class_of_store

Patch = pytest.MonkeyPatch

EVERYTHING = Reach(owners=AGENTS, namespaces=NAMESPACES)
_LONG_AGO = "1970-01-01T00:00:00.000Z"


def get_forgets_the_rules(patch: Patch) -> None:
    """Every id of the tenant can be read."""
    honest = policy.decide

    def lenient(principal: Principal, verb: Verb, target: Any) -> Decision:
        if verb is Verb.READ and principal.tenant == target.tenant:
            return Decision(True, "planted")
        return honest(principal, verb, target)

    patch.setattr("memorywall.wall.door.decide", lenient)


def get_forgets_the_time(patch: Patch) -> None:
    """An expired entry can be read until it is swept."""
    honest: Callable[..., Awaitable[Entry | None]] = class_of_store("Entries").get

    async def timeless(self: Any, tenant: str, entry_id: str, now: str) -> Entry | None:
        return await honest(self, tenant, entry_id, _LONG_AGO)

    patch.setattr(class_of_store("Entries"), "get", timeless)


def tenants_are_mixed_up(patch: Patch) -> None:
    """Ids of the other tenant can be read."""
    honest = entries.get

    async def borderless(at: Door, principal: Principal, entry_id: str) -> Entry:
        for tenant in ("north", "south"):
            with suppress(MemoryNotFoundError):
                return await honest(at, replace(principal, tenant=tenant), entry_id)
        raise MemoryNotFoundError

    patch.setattr(entries, "get", borderless)


def search_forgets_the_namespaces(patch: Patch) -> None:
    """A query shows every namespace's memory."""
    honest = queries.reach_of

    async def wide(
        transaction: Transaction, principal: Principal, verb: Verb, wanted: Filter, now: str
    ) -> Reach:
        within = await honest(transaction, principal, verb, wanted, now)
        return replace(within, namespaces=NAMESPACES) if verb is Verb.READ else within

    patch.setattr(queries, "reach_of", wide)


def deletion_forgets_the_rules(patch: Patch) -> None:
    """A deletion by filter takes what the caller may only read."""
    honest = queries.reach_of

    async def wide(
        transaction: Transaction, principal: Principal, verb: Verb, wanted: Filter, now: str
    ) -> Reach:
        asked = Verb.READ if verb is Verb.DELETE else verb
        return await honest(transaction, principal, asked, wanted, now)

    patch.setattr(queries, "reach_of", wide)
    patch.setattr(queries, "decide", lambda *_: Decision(True, "planted"))


def total_counts_the_hidden(patch: Patch) -> None:
    """A page is right, and its total tells how much there is beyond it."""
    honest = class_of_store("Entries").search

    async def telling(self: Any, wanted: Filter, reach: Reach, now: str) -> tuple[list[Entry], int]:
        found, _ = await honest(self, wanted, reach, now)
        _, total = await honest(self, wanted, EVERYTHING, now)
        return found, total

    patch.setattr(class_of_store("Entries"), "search", telling)


def export_forgets_the_rules(patch: Patch) -> None:
    """An export holds the whole tenant."""

    async def wide(
        at: Door, principal: Principal, wanted: Filter
    ) -> AsyncGenerator[list[Entry], None]:
        async def script(transaction: Transaction) -> list[Entry]:
            found, _ = await transaction.entries.search(wanted, EVERYTHING, at.now())
            return [await at.vault.open(transaction, entry) for entry in found]

        yield await at.store.read(principal.tenant, script)

    patch.setattr(queries, "export", wide)


def summary_counts_the_expired(patch: Patch) -> None:
    """The numbers hold what nobody can see any more."""
    honest: Callable[..., Awaitable[Usage]] = class_of_store("Entries").usage

    async def timeless(self: Any, tenant: str, tier: Any, owner: str, now: str) -> Usage:
        return await honest(self, tenant, tier, owner, _LONG_AGO)

    patch.setattr(class_of_store("Entries"), "usage", timeless)


def summary_names_every_namespace(patch: Patch) -> None:
    """The summary tells the names of namespaces one may not read."""

    def wide(principal: Principal, verb: Verb, known: list[Target]) -> Reach:
        names = tuple(one.namespace.name for one in known if one.namespace is not None)
        return Reach(owners=(principal.id,), namespaces=names)

    patch.setattr(summaries, "reach", wide)


def namespaces_are_all_listed(patch: Patch) -> None:
    """The list of namespaces leaves none out."""
    patch.setattr(namespaces, "_is_visible", lambda principal, target: True)


def grants_count_for_nothing(patch: Patch) -> None:
    """A namespace's default holds for everybody: a leak for some, a wrong denial for others."""

    def plain(principal: Principal, namespace: Namespace) -> Access:
        return namespace.default

    patch.setattr(policy, "access_to", plain)


def conflicts_show_the_entry(patch: Patch) -> None:
    """A 409 carries the current entry for whoever meets it."""
    patch.setattr("memorywall.wall.entries.decide", lambda *_: Decision(True, "planted"))


def streams_are_public(patch: Patch) -> None:
    """Everybody reads everybody's events."""
    patch.setattr(streams, "authorize", lambda *_: None)


def live_streams_are_public(patch: Patch) -> None:
    """A page of another's events is refused, and the same as Server-Sent Events is not."""
    honest = streams.follow_events

    def follow(
        at: Door, principal: Principal, agent: str, after: int
    ) -> AsyncIterator[list[Event]]:
        return honest(at, replace(principal, id=agent), agent, after)

    patch.setattr(streams, "follow_events", follow)


def pages_hold_the_tenants_events(patch: Patch) -> None:
    """A stream shows the whole tenant's log."""
    honest = class_of_store("Events").list

    async def wide(self: Any, tenant: str, stream: str, after: int, limit: int) -> list[Event]:
        of_all = [await honest(self, tenant, agent, after, limit) for agent in AGENTS]
        return sorted((event for events in of_all for event in events), key=lambda one: one.seq)

    patch.setattr(class_of_store("Events"), "list", wide)


def creators_are_told_of_everything(patch: Patch) -> None:
    """What others do to shared memory stands in the stream of whoever made it."""
    honest = log.record

    async def talkative(
        transaction: Transaction,
        kind: EventType,
        entry: Entry,
        *,
        by: Principal | None,
        **rest: Any,
    ) -> None:
        teller = by
        if by is not None and entry.owner == "":
            teller = replace(by, id=entry.created_by)
        await honest(transaction, kind, entry, by=teller, **rest)

    for name, module in list(sys.modules.items()):
        if name.startswith("memorywall.") and getattr(module, "record", None) is honest:
            patch.setattr(module, "record", talkative)


def revoked_keys_live_on(patch: Patch) -> None:
    """A key that has been seen once is never looked up again."""

    async def still(self: Any) -> int:
        return 1

    patch.setattr(class_of_store("Store"), "generation", still)


def anybody_acts_for_anybody(patch: Patch) -> None:
    """X-Agent-ID is believed."""

    def believing(principal: Principal, agent: str | None) -> Principal:
        return principal if not agent else replace(principal, id=agent)

    patch.setattr(keyring, "speaking_for", believing)


PLANTS: tuple[Callable[[Patch], None], ...] = (
    get_forgets_the_rules,
    get_forgets_the_time,
    tenants_are_mixed_up,
    search_forgets_the_namespaces,
    deletion_forgets_the_rules,
    total_counts_the_hidden,
    export_forgets_the_rules,
    summary_counts_the_expired,
    summary_names_every_namespace,
    namespaces_are_all_listed,
    grants_count_for_nothing,
    conflicts_show_the_entry,
    streams_are_public,
    live_streams_are_public,
    pages_hold_the_tenants_events,
    creators_are_told_of_everything,
    revoked_keys_live_on,
    anybody_acts_for_anybody,
)
