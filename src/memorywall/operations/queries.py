"""Query, export and deletion of the entries that match a filter (RFC-0015 section 4).

A filter only narrows the visible entries; other entries are omitted without notice.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from memorywall.expressions.entry_fields import ENTRY_FIELDS
from memorywall.expressions.parser import parse_paths
from memorywall.kinds.registry import KINDS
from memorywall.operations.binding import multi_transaction_operation, operation
from memorywall.operations.filters import filter_of, past_instant
from memorywall.operations.pages import named_values, next_cursor, place_page, refuse_page
from memorywall.records.decision import Verb, VisibilityFilter
from memorywall.records.entry import Entry
from memorywall.records.errors import RequestError
from memorywall.records.event import EventType
from memorywall.records.filter import DEFAULT_PAGE, LARGEST_PAGE, EntryFilter
from memorywall.service.access.targets import load_target
from memorywall.service.access.visibility import load_visibility
from memorywall.service.entries.conditions import ScanBudget, prepare_where
from memorywall.service.entries.history import search_as_of
from memorywall.service.entries.kind_rules import is_removed_by_others, refuse_removal_of
from memorywall.service.entries.removal import remove_entry
from memorywall.service.entries.value_schemas import select_fitting
from memorywall.service.requests.fencing import guard
from memorywall.service.requests.namespace_names import stored_filter
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.service.runner.operation_runner import OperationTransactions
from memorywall.tiers import NAMESPACE_TIERS
from memorywall.wire.entries import (
    DeletedResponse,
    EntryListQuery,
    EntryPageResponse,
    EntryQuery,
    EntryResponse,
    RenderedPageResponse,
    upgraded,
    view,
)
from memorywall.wire.results import ResultStream, encode

_EXPORT_PAGE = 50
"""The number of entries of an export in memory at once; with the largest values they take 3 MB."""
_SHARED = frozenset(NAMESPACE_TIERS)


@dataclass(frozen=True, kw_only=True, slots=True)
class QueryPage:
    """One page of a query and the number of matches on all pages."""

    entries: list[Entry]
    total: int
    limit: int
    offset: int


def _is_long(call: OperationCall) -> bool:
    """Whether a query may read more than a usual page."""
    asked = call.query
    return (
        asked.where is not None
        or asked.as_of is not None
        or asked.schema_version is not None
        or (asked.limit or DEFAULT_PAGE) > DEFAULT_PAGE
    )


@operation("query_entries", is_long=_is_long)
async def query_entries(
    context: OperationContext, call: OperationCall
) -> EntryPageResponse | RenderedPageResponse:
    asked = call.query
    wanted = filter_of(call, asked, limit=asked.limit or DEFAULT_PAGE)
    as_of = past_instant("as_of", asked.as_of, context.now)
    if not asked.is_plain:
        return await shape_page(context, asked, wanted, as_of)
    major = asked.schema_version
    if as_of is None and major is None:
        return await render_page(context, wanted)
    page = await query(context, wanted, as_of)
    entries = page.entries if major is None else await select_fitting(context, page.entries, major)
    return EntryPageResponse(
        entries=await context.build(view, entries),
        total=page.total,
        limit=page.limit,
        offset=page.offset,
    )


async def shape_page(
    context: OperationContext, asked: EntryListQuery, wanted: EntryFilter, as_of: str | None
) -> EntryPageResponse | RenderedPageResponse:
    """Returns a page in the order and form that a query asks for. Raises RequestError like
    `query`."""
    if asked.count_only:
        refuse_page(asked)
        if as_of is not None:
            total = (await query(context, replace(wanted, limit=1), as_of)).total
        else:
            total = await count(context, wanted)
        return EntryPageResponse(entries=[], total=total, limit=0, offset=0)
    paths = None if asked.fields is None else parse_paths(asked.fields, ENTRY_FIELDS)
    paged = asked.cursor is not None or asked.order_by is not None or asked.direction is not None
    first_total = None
    if paged:
        wanted, first_total = place_page(asked, wanted)
    page = await query(context, wanted, as_of)
    entries, major = page.entries, asked.schema_version
    if major is not None:
        entries = await select_fitting(context, entries, major)
    total = page.total if first_total is None else first_total
    following = next_cursor(asked, wanted, page.entries, total) if paged else UNSET
    if paths is None:
        return EntryPageResponse(
            entries=await context.build(view, entries),
            total=total,
            limit=page.limit,
            offset=page.offset,
            next_cursor=following,
        )
    rows = await context.build(lambda entry: named_values(paths, upgraded(entry)), entries)
    return RenderedPageResponse(
        entries=msgspec.Raw(encode(rows)),
        total=total,
        limit=page.limit,
        offset=page.offset,
        next_cursor=following,
    )


async def count(context: OperationContext, wanted: EntryFilter) -> int:
    """Returns the number of entries that `query` would find. Raises RequestError like `query`."""
    _require_owner(wanted)
    wanted, within = await _prepare(context, wanted)
    return (await context.transaction.entries.count(wanted, within, context.now, None)).entries


async def _prepare(
    context: OperationContext, wanted: EntryFilter
) -> tuple[EntryFilter, VisibilityFilter]:
    """Returns the filter of present entries as the store takes it, and what the caller may read."""
    wanted = await stored_filter(context, wanted)
    within = await load_visibility(context, Verb.READ, wanted)
    if wanted.where is not None:
        wanted = await prepare_where(context, wanted, within)
    return wanted, within


@operation("list_agent_memory")
async def list_agent_memory(context: OperationContext, call: OperationCall) -> list[EntryResponse]:
    asked = call.query
    wanted = filter_of(
        call,
        EntryQuery(
            agent_id=call.path["agent_id"],
            namespace=asked.namespace,
            memory_type=asked.memory_type,
            tags=asked.tags,
            offset=asked.offset,
        ),
        limit=asked.limit,
    )
    page = await query(context, wanted)
    return await context.build(view, page.entries)


@multi_transaction_operation("export_entries")
async def export_entries(transactions: OperationTransactions) -> ResultStream:
    asked = transactions.call.query
    wanted = filter_of(transactions.call, asked, limit=None)
    as_of = past_instant("as_of", asked.as_of, transactions.service.now())
    if wanted.where is not None and as_of is None:
        # A refusal must come before the first part.
        wanted = await transactions.read_long(_prepare_export, wanted)

    async def parts() -> AsyncGenerator[list[EntryResponse], None]:
        async with aclosing(export(transactions, wanted, as_of)) as pages:
            async for page in pages:
                yield [view(entry) for entry in page]

    return ResultStream(parts(), "lines")


@operation("delete_matching", is_long=lambda call: True)
async def delete_matching(context: OperationContext, call: OperationCall) -> DeletedResponse:
    for condition in msgspec.structs.fields(call.query):
        # The value of a variable that is not set; every key begins with an empty prefix.
        if getattr(call.query, condition.name) == "":
            name = condition.encode_name
            raise RequestError(f"`{name}` of a deletion must not be empty; give it a value")
    wanted = filter_of(call, call.query, limit=call.query.limit)
    if wanted == EntryFilter(tenant=wanted.tenant, limit=wanted.limit, offset=wanted.offset):
        raise RequestError("an empty filter would delete everything; pass `namespace=*` to do that")
    return DeletedResponse(deleted=await delete_all(context, wanted))


async def query(
    context: OperationContext, wanted: EntryFilter, as_of: str | None = None
) -> QueryPage:
    """Returns the matching entries that the caller may read, newest first.

    as_of: the instant of the entries' state, None for the present

    Raises RequestError if the query names a tier that is isolated by agent and neither `agent_id`
    nor `scope.task_id` (RFC-0015 sections 4.1 and 8.1).
    """
    _require_owner(wanted)
    return await find(context, wanted, as_of)


async def find(
    context: OperationContext,
    wanted: EntryFilter,
    as_of: str | None = None,
    budget: ScanBudget | None = None,
) -> QueryPage:
    """`query` for surfaces that imply the owner of the memory.

    budget: what `where` may still read as of an instant; by default that of a request
    """
    wanted = await stored_filter(context, wanted)
    within = await load_visibility(context, Verb.READ, wanted)
    if as_of is None:
        if wanted.where is not None:
            wanted = await prepare_where(context, wanted, within)
        entries, total = await context.transaction.entries.search(wanted, within, context.now)
    else:
        if budget is None and wanted.where is not None:
            budget = ScanBudget(wanted.where)
        entries, total = await search_as_of(context, wanted, within, as_of, budget)
    page = QueryPage(
        entries=await _open_entries(context, entries),
        total=total,
        limit=LARGEST_PAGE if wanted.limit is None else wanted.limit,
        offset=wanted.offset,
    )
    context.service.record_access(page.entries, context.now)
    return page


async def render_page(
    context: OperationContext, wanted: EntryFilter
) -> EntryPageResponse | RenderedPageResponse:
    """`query` for a reply: what the store has rendered is not decoded to be encoded again.

    Raises RequestError like `query`.
    """
    _require_owner(wanted)
    wanted, within = await _prepare(context, wanted)
    stored = context.transaction.entries
    page = await stored.search_rendered(wanted, within, context.now)
    entries = page.entries
    if newer := [row[0] for row in page.rows if row[3] is not None and _may_be_older(row[3])]:
        entries = entries | {one.id: one for one in await stored.get_many(newer, context.now)}
    context.service.record_access_of(context.tenant, page.rows, context.now)
    views = {}
    if entries:
        opened = await _open_entries(context, entries.values())
        views = {one.id: one for one in await context.build(view, opened)}
    limit = wanted.limit or LARGEST_PAGE
    if len(views) == len(page.rows):
        return EntryPageResponse(
            entries=[views[row[0]] for row in page.rows],
            total=page.total,
            limit=limit,
            offset=wanted.offset,
        )
    texts = [row[-1] or b"" for row in page.rows]
    if views:
        texts = [
            encode(views[row[0]]) if row[0] in views else text
            for row, text in zip(page.rows, texts, strict=True)
        ]
    return RenderedPageResponse(
        entries=msgspec.Raw(b"[" + b",".join(texts) + b"]"),
        total=page.total,
        limit=limit,
        offset=wanted.offset,
    )


async def _open_entries(context: OperationContext, entries: Iterable[Entry]) -> list[Entry]:
    """Returns the entries with their values in clear text. Raises KeyUnavailableError."""
    opened, cipher = [], context.service.cipher
    for entry in entries:
        opened.append(await cipher.open(context.transaction, entry))
        if entry.sealing_key is not None:
            await context.transaction.give_way()
    return opened


def _may_be_older(kind: str) -> bool:
    """Whether a value of this kind may have been stored at an earlier version of it."""
    return kind in KINDS and KINDS[kind].version > 1


async def export(
    transactions: OperationTransactions, wanted: EntryFilter, as_of: str | None = None
) -> AsyncGenerator[list[Entry], None]:
    """Yields everything that `query` would find, in pages, each on a fresh snapshot, newest first.

    A page starts after the last id of the previous one. Concurrent writes therefore cause no
    duplicates and no omissions, and no snapshot is held for long. All pages have one budget for
    `where`.
    """
    before = wanted.before
    read, budget = transactions.read, None
    if wanted.where is not None:
        read, budget = transactions.read_long, ScanBudget(wanted.where)
    while True:
        page = await read(
            find,
            replace(wanted, before=before, limit=_EXPORT_PAGE, offset=0, counted=False),
            as_of,
            budget,
        )
        if page.entries:
            yield page.entries
            before = page.entries[-1].id
        if len(page.entries) < _EXPORT_PAGE:
            return


async def _prepare_export(context: OperationContext, wanted: EntryFilter) -> EntryFilter:
    """Returns the filter of an export with what `prepare_where` finds out; its names stay as the
    request gives them."""
    prepared, _ = await _prepare(context, wanted)
    return replace(wanted, met=prepared.met, value_index=prepared.value_index)


async def delete_all(context: OperationContext, wanted: EntryFilter) -> int:
    """Deletes every matching entry that the caller may both read and delete; with a limit, only
    that page. Entries that only other operations delete stay.

    Returns the number of deleted entries. Raises RequestError like `query`, and ValidationError for
    a kind that only other operations delete.
    """
    _require_owner(wanted)
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


def _require_owner(wanted: EntryFilter) -> None:
    walled_by_agent = wanted.tiers and not _SHARED.issuperset(wanted.tiers)
    if walled_by_agent and wanted.agent_id is None and wanted.task_id is None:
        raise RequestError("give `agent_id` or `scope.task_id` to query this memory_type")
