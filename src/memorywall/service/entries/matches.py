"""The entries that match a filter: found, counted and deleted (RFC-0015 section 4).

A filter only narrows the visible entries; other entries are omitted without notice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from msgspec.structs import replace

from memorywall.records.decision import Verb, VisibilityFilter
from memorywall.records.entry import Entry
from memorywall.records.errors import RequestError
from memorywall.records.event import EventType
from memorywall.records.filter import LARGEST_PAGE, EntryFilter
from memorywall.service.access.targets import load_target
from memorywall.service.access.visibility import load_visibility
from memorywall.service.entries.conditions import ScanBudget, prepare_where
from memorywall.service.entries.history import search_as_of
from memorywall.service.entries.kind_rules import is_removed_by_others, refuse_removal_of
from memorywall.service.entries.removal import remove_entry
from memorywall.service.requests.fencing import guard
from memorywall.service.requests.namespace_names import stored_filter
from memorywall.service.requests.operation_context import OperationContext
from memorywall.tiers import NAMESPACE_TIERS

_SHARED = frozenset(NAMESPACE_TIERS)


@dataclass(frozen=True, kw_only=True, slots=True)
class QueryPage:
    """One page of a query and the number of matches on all pages."""

    entries: list[Entry]
    total: int
    limit: int
    offset: int


async def query_matches(
    context: OperationContext, wanted: EntryFilter, as_of: str | None = None
) -> QueryPage:
    """Returns the matching entries that the caller may read, newest first.

    as_of: the instant of the entries' state, None for the present

    Raises RequestError if the query names a tier that is isolated by agent and neither `agent_id`
    nor `scope.task_id` (RFC-0015 sections 4.1 and 8.1).
    """
    require_owner(wanted)
    return await find_matches(context, wanted, as_of)


async def find_matches(
    context: OperationContext,
    wanted: EntryFilter,
    as_of: str | None = None,
    budget: ScanBudget | None = None,
) -> QueryPage:
    """`query_matches` for surfaces that imply the owner of the memory.

    budget: what `where` may still read as of an instant; by default that of a request
    """
    if as_of is None:
        wanted, within = await prepare_filter(context, wanted)
        entries, total = await context.transaction.entries.search(wanted, within, context.now)
    else:
        wanted = await stored_filter(context, wanted, for_reading=True)
        within = await load_visibility(context, Verb.READ, wanted)
        if budget is None and wanted.where is not None:
            budget = ScanBudget(wanted.where)
        entries, total = await search_as_of(context, wanted, within, as_of, budget)
    page = QueryPage(
        entries=await open_entries(context, entries),
        total=total,
        limit=LARGEST_PAGE if wanted.limit is None else wanted.limit,
        offset=wanted.offset,
    )
    context.service.record_access(page.entries, context.now)
    return page


async def open_entries(context: OperationContext, entries: Iterable[Entry]) -> list[Entry]:
    """Returns the entries with their values in clear text. Raises KeyUnavailableError."""
    opened, cipher = [], context.service.cipher
    for entry in entries:
        opened.append(await cipher.open(context.transaction, entry))
        if entry.sealing_key is not None:
            await context.transaction.give_way()
    return opened


async def count_matches(context: OperationContext, wanted: EntryFilter) -> int:
    """Returns the number of entries that `query_matches` would find, which raises the same."""
    require_owner(wanted)
    wanted, within = await prepare_filter(context, wanted)
    return (await context.transaction.entries.count(wanted, within, context.now, None)).entries


async def list_namespaces_of(
    context: OperationContext, wanted: EntryFilter, after: str, limit: int
) -> list[tuple[str, int]]:
    """Returns up to `limit` namespaces of the entries that `query_matches` would find on all pages,
    in order, with their numbers of entries. Raises the same.

    after: only namespaces after this one; "" for all
    """
    require_owner(wanted)
    wanted, within = await prepare_filter(context, wanted)
    return await context.transaction.entries.namespaces(wanted, within, context.now, after, limit)


async def prepare_filter(
    context: OperationContext, wanted: EntryFilter
) -> tuple[EntryFilter, VisibilityFilter]:
    """Returns the filter of present entries as the store takes it, and what the caller may read."""
    wanted = await stored_filter(context, wanted, for_reading=True)
    within = await load_visibility(context, Verb.READ, wanted)
    if wanted.where is not None:
        wanted = await prepare_where(context, wanted, within)
    return wanted, within


async def delete_matches(context: OperationContext, wanted: EntryFilter) -> int:
    """Deletes every matching entry that the caller may both read and delete; with a limit, only
    that page. Entries that only other operations delete stay.

    Returns the number of deleted entries. Raises RequestError like `query_matches`, and
    ValidationError for a kind that only other operations delete.
    """
    require_owner(wanted)
    refuse_removal_of(wanted.kind)
    wanted = await stored_filter(context, wanted)
    readable = await load_visibility(context, Verb.READ, wanted)
    deletable = await load_visibility(context, Verb.DELETE, wanted)
    within = VisibilityFilter(
        owners=tuple(set(readable.owners) & set(deletable.owners)),
        namespaces=tuple(sorted(set(readable.namespaces) & set(deletable.namespaces))),
        subjects=readable.subjects,
        limited_to=readable.limited_to,
        session=readable.session,
    )
    wanted = await prepare_where(context, wanted, within)
    whole = wanted.limit is None
    chunk = replace(wanted, limit=500, counted=False) if whole else wanted
    deleted = 0
    while True:
        entries, _ = await context.transaction.entries.search(chunk, within, context.now)
        for entry in entries:
            deleted += await _delete_allowed(context, entry)
        if not (whole and entries):
            return deleted
        # Entries that may not be deleted remain, so the next page starts after them.
        chunk = replace(chunk, before=entries[-1].id)


async def _delete_allowed(context: OperationContext, entry: Entry) -> bool:
    """Deletes an entry unless it is bound to work that its owner no longer has, or other operations
    delete it."""
    if not context.allows(Verb.DELETE, await load_target(context, Verb.DELETE, entry)):
        return False
    if await is_removed_by_others(context, entry):
        return False
    await guard(context, entry)
    await remove_entry(context, EventType.DELETED, entry)
    return True


def require_owner(wanted: EntryFilter) -> None:
    """Raises RequestError like `query_matches`."""
    walled_by_agent = wanted.tiers and not _SHARED.issuperset(wanted.tiers)
    if walled_by_agent and wanted.agent_id is None and wanted.task_id is None:
        raise RequestError("give `agent_id` or `scope.task_id` to query this memory_type")
