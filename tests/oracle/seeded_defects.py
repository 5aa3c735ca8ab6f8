"""Leaks and wrong denials to plant in the system, to see whether the comparison finds them."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from memorywall.operations import agents, entries, queries
from memorywall.operations.binding import FUNCTIONS
from memorywall.policy import decide as policy
from memorywall.recall import search
from memorywall.recall.relevance import JudgedReply
from memorywall.records.decision import Decision, Target, Verb, VisibilityFilter
from memorywall.records.entry import Entry
from memorywall.records.errors import MemoryNotFoundError
from memorywall.records.event import Event, EventType
from memorywall.records.filter import EntryFilter
from memorywall.records.namespace import Access, Namespace
from memorywall.records.principal import Principal
from memorywall.records.recall import Hit
from memorywall.records.usage import Usage
from memorywall.service.access import api_keys
from memorywall.service.administration import namespace_permissions
from memorywall.service.entries import matches, names
from memorywall.service.entries.removal import remove_entry
from memorywall.service.feeds.event_feed import PAGE, FeedPage
from memorywall.service.requests import event_log, operation_context
from memorywall.service.requests.fencing import guard
from memorywall.service.requests.operation_context import BoundFunction, OperationContext
from memorywall.service.runner.operation_runner import OperationTransactions, run_read
from memorywall.storage.rendered_page import RenderedPage
from memorywall.wire.entries import EntryResponse, view
from tests.oracle.callers import AGENTS, TENANTS
from tests.oracle.session import NAMESPACES
from tests.support.backend import class_of_store

Patch = pytest.MonkeyPatch

EVERYTHING = VisibilityFilter(owners=AGENTS, namespaces=NAMESPACES)
_LONG_AGO = "1970-01-01T00:00:00.000Z"


def get_forgets_the_rules(patch: Patch) -> None:
    """Every id of the tenant can be read."""
    honest = OperationContext.authorize

    def lenient(self: OperationContext, verb: Verb, target: Target) -> None:
        if verb is Verb.READ and self.tenant == target.tenant:
            self.decide_by_row()
        else:
            honest(self, verb, target)

    patch.setattr(OperationContext, "authorize", lenient)


def get_forgets_the_time(patch: Patch) -> None:
    """An expired entry can be read until it is swept."""
    honest: Callable[..., Awaitable[Entry | None]] = class_of_store("Entries").get

    async def timeless(self: Any, entry_id: str, now: str) -> Entry | None:
        return await honest(self, entry_id, _LONG_AGO)

    patch.setattr(class_of_store("Entries"), "get", timeless)


def get_forgets_the_subject(patch: Patch) -> None:
    """A request that is bound to one person can read what is about others by its id."""
    honest = policy.decide

    def unbound(principal: Principal, verb: Verb, target: Target) -> Decision:
        return honest(principal, verb, structs.replace(target, subjects=()))

    patch.setattr(operation_context, "decide", unbound)


def search_forgets_the_subject(patch: Patch) -> None:
    """A query that is bound to one person shows what is about others."""
    honest = matches.load_visibility

    async def unbound(
        context: OperationContext, verb: Verb, wanted: EntryFilter
    ) -> VisibilityFilter:
        return structs.replace(await honest(context, verb, wanted), subjects=None)

    patch.setattr(matches, "load_visibility", unbound)


def tenants_are_mixed_up(patch: Patch) -> None:
    """Ids of the other tenant can be read."""

    async def borderless(transactions: OperationTransactions) -> EntryResponse:
        entry_id = transactions.call.path["entry_id"]
        for tenant in TENANTS:
            stranger = replace(transactions.principal, tenant=tenant)
            with suppress(MemoryNotFoundError):
                found = await run_read(
                    transactions.service, stranger, lambda context: entries.get(context, entry_id)
                )
                return view(found)
        raise MemoryNotFoundError

    patch.setitem(FUNCTIONS, "get_entry", BoundFunction(run=borderless, in_session=True))


def search_forgets_the_namespaces(patch: Patch) -> None:
    """A query shows every namespace's memory."""
    honest = matches.load_visibility

    async def wide(context: OperationContext, verb: Verb, wanted: EntryFilter) -> VisibilityFilter:
        within = await honest(context, verb, wanted)
        return structs.replace(within, namespaces=NAMESPACES) if verb is Verb.READ else within

    patch.setattr(matches, "load_visibility", wide)


def deletion_forgets_the_rules(patch: Patch) -> None:
    """A deletion by filter takes what the caller may only read."""
    honest = matches.load_visibility

    async def wide(context: OperationContext, verb: Verb, wanted: EntryFilter) -> VisibilityFilter:
        asked = Verb.READ if verb is Verb.DELETE else verb
        return await honest(context, asked, wanted)

    async def unchecked(context: OperationContext, entry: Entry) -> bool:
        await guard(context, entry)
        await remove_entry(context, EventType.DELETED, entry)
        return True

    patch.setattr(matches, "load_visibility", wide)
    patch.setattr(matches, "_delete_allowed", unchecked)


def total_counts_the_hidden(patch: Patch) -> None:
    """A page is right, and its total tells how much there is beyond it."""
    honest = class_of_store("Entries").search_rendered

    async def telling(
        self: Any, wanted: EntryFilter, reach: VisibilityFilter, now: str
    ) -> RenderedPage:
        found = await honest(self, wanted, reach, now)
        everything = await honest(self, wanted, EVERYTHING, now)
        return replace(found, total=everything.total)

    patch.setattr(class_of_store("Entries"), "search_rendered", telling)


def export_forgets_the_rules(patch: Patch) -> None:
    """An export holds the whole tenant."""

    async def everything(context: OperationContext, wanted: EntryFilter) -> list[Entry]:
        context.decide_by_row()
        found, _ = await context.transaction.entries.search(wanted, EVERYTHING, context.now)
        return [await context.service.cipher.open(context.transaction, entry) for entry in found]

    async def wide(
        transactions: OperationTransactions, wanted: EntryFilter, as_of: str | None = None
    ) -> AsyncGenerator[list[Entry], None]:
        yield await transactions.read(everything, wanted)

    patch.setattr(queries, "export", wide)


def summary_counts_the_expired(patch: Patch) -> None:
    """The numbers hold what nobody can see any more."""
    honest: Callable[..., Awaitable[Usage]] = class_of_store("Entries").usage

    async def timeless(self: Any, tier: Any, owner: str, now: str) -> Usage:
        return await honest(self, tier, owner, _LONG_AGO)

    patch.setattr(class_of_store("Entries"), "usage", timeless)


def summary_names_every_namespace(patch: Patch) -> None:
    """The summary tells the names of namespaces one may not read."""

    def wide(principal: Principal, verb: Verb, known: list[Target]) -> VisibilityFilter:
        names = tuple(one.namespace.name for one in known if one.namespace is not None)
        return VisibilityFilter(owners=(principal.id,), namespaces=names)

    patch.setattr(agents, "visibility_filter", wide)


def namespaces_are_all_listed(patch: Patch) -> None:
    """The list of namespaces leaves none out."""
    honest = namespace_permissions._is_visible

    def always(context: OperationContext, target: Target) -> bool:
        return honest(context, target) or True

    patch.setattr(namespace_permissions, "_is_visible", always)


def grants_count_for_nothing(patch: Patch) -> None:
    """A namespace's default holds for everybody: a leak for some, a wrong denial for others."""

    def plain(principal: Principal, namespace: Namespace) -> Access:
        return namespace.default

    patch.setattr(policy, "access_to", plain)


def conflicts_show_the_entry(patch: Patch) -> None:
    """A 409 carries the current entry for whoever meets it."""

    async def always(context: OperationContext, entry: Entry) -> bool:
        return True

    patch.setattr(names, "may_read", always)


def streams_are_public(patch: Patch) -> None:
    """Everybody reads everybody's events."""

    async def unchecked(
        context: OperationContext, agent: str, after: int, limit: int, entry_id: str | None = None
    ) -> tuple[list[Event], int]:
        context.decide_by_row()
        events = await context.transaction.events.list(agent, after, limit)
        return events, events[-1].seq if events else after

    patch.setattr(agents, "events_of_agent", unchecked)


def live_streams_are_public(patch: Patch) -> None:
    """A page of another's events is refused, and the same as Server-Sent Events is not."""
    honest = agents.follow

    def follow(
        transactions: OperationTransactions, look: Callable[[int], Awaitable[FeedPage]], after: int
    ) -> AsyncGenerator[Any, None]:
        agent = transactions.call.path["agent_id"]
        impostor = replace(transactions.principal, id=agent)

        async def wide(seen: int) -> FeedPage:
            events, _ = await run_read(
                transactions.service,
                impostor,
                lambda context: agents.events_of_agent(context, agent, seen, PAGE),
            )
            return FeedPage.of(events, seen)

        return honest(transactions, wide, after)

    patch.setattr(agents, "follow", follow)


def pages_hold_the_tenants_events(patch: Patch) -> None:
    """A stream shows the whole tenant's log."""
    honest = class_of_store("Events").list

    async def wide(self: Any, stream: str, after: int, limit: int) -> list[Event]:
        of_all = [await honest(self, agent, after, limit) for agent in AGENTS]
        return sorted((event for events in of_all for event in events), key=lambda one: one.seq)

    patch.setattr(class_of_store("Events"), "list", wide)


def creators_are_told_of_everything(patch: Patch) -> None:
    """What others do to shared memory stands in the stream of whoever made it."""
    honest = event_log.append_entry_event

    async def talkative(
        context: OperationContext,
        kind: EventType,
        entry: Entry,
        *,
        by_system: bool = False,
        **rest: Any,
    ) -> None:
        teller = context
        if not (by_system or context.is_system) and entry.owner == "":
            teller = OperationContext(
                context.service,
                context.transaction,
                replace(context.principal, id=entry.created_by),
                context.moment,
            )
        await honest(teller, kind, entry, by_system=by_system, **rest)

    for name, module in list(sys.modules.items()):
        if name.startswith("memorywall.") and getattr(module, "append_entry_event", None) is honest:
            patch.setattr(module, "append_entry_event", talkative)


def revoked_keys_live_on(patch: Patch) -> None:
    """A key that has been seen once is never looked up again."""

    async def still(self: Any) -> int:
        return 1

    patch.setattr(class_of_store("Store"), "generation", still)


def anybody_acts_for_anybody(patch: Patch) -> None:
    """X-Agent-ID is believed."""

    def believing(principal: Principal, agent: str | None) -> Principal:
        return principal if not agent else replace(principal, id=agent)

    patch.setattr(api_keys, "impersonate", believing)


def highlights_are_remembered_by_length(patch: Patch) -> None:
    """A search shows a passage of another entry that is as long."""
    honest, remembered = search.highlight_in, dict[int, Any]()

    def careless(entry: Entry, *arguments: Any) -> Any:
        size = len(entry.value)
        return remembered.setdefault(size, honest(entry, *arguments))

    patch.setattr(search, "highlight_in", careless)


def explanations_name_what_is_hidden(patch: Patch) -> None:
    """The explanation of a result names the entry that was searched before it, whoever's it is."""
    honest, before = search._judge_hits, ["mem_00000000000000000000000000"]

    def talkative(*arguments: Any) -> tuple[JudgedReply, list[Hit]]:
        judged, found = honest(*arguments)
        hits = []
        for hit in found:
            link, before[0] = before[0], hit.entry.id
            hits.append(replace(hit, signals=hit.signals and replace(hit.signals, link=link)))
        return judged, hits

    patch.setattr(search, "_judge_hits", talkative)


PLANTS: tuple[Callable[[Patch], None], ...] = (
    highlights_are_remembered_by_length,
    explanations_name_what_is_hidden,
    get_forgets_the_rules,
    get_forgets_the_time,
    get_forgets_the_subject,
    search_forgets_the_subject,
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
