"""Query, export and deletion of the entries that match a filter (RFC-0015 section 4).

A filter only narrows the visible entries; other entries are omitted without notice.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from memorywall.expressions.entry_fields import ENTRY_FIELDS
from memorywall.expressions.parser import parse_paths
from memorywall.kinds.registry import KINDS
from memorywall.operations.binding import multi_transaction_operation, operation
from memorywall.operations.filters import filter_of, only_about_user, past_instant
from memorywall.operations.pages import named_values, next_cursor, place_page, refuse_page
from memorywall.records.entry import Entry
from memorywall.records.errors import RequestError
from memorywall.records.filter import DEFAULT_PAGE, LARGEST_PAGE, EntryFilter
from memorywall.service.entries.conditions import ScanBudget
from memorywall.service.entries.matches import (
    count_matches,
    delete_matches,
    find_matches,
    list_namespaces_of,
    open_entries,
    prepare_filter,
    query_matches,
    require_owner,
)
from memorywall.service.entries.value_schemas import select_fitting
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.service.runner.operation_runner import OperationTransactions
from memorywall.wire.entries import (
    DeletedResponse,
    EntryListQuery,
    EntryPageResponse,
    EntryQuery,
    EntryResponse,
    RenderedPageResponse,
    upgrade_entry,
    view,
)
from memorywall.wire.namespaces import EntryNamespace, EntryNamespaceListResponse
from memorywall.wire.results import ResultStream, encode

_EXPORT_PAGE = 50
"""The number of entries of an export in memory at once; with the largest values they take 3 MB."""


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
    if asked.count_only:
        wanted = only_about_user(call, wanted)
    as_of = past_instant("as_of", asked.as_of, context.now)
    if not asked.is_plain:
        return await shape_page(context, asked, wanted, as_of)
    major = asked.schema_version
    if as_of is None and major is None:
        return await render_page(context, wanted)
    page = await query_matches(context, wanted, as_of)
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
    `query_matches`."""
    if asked.count_only:
        refuse_page(asked)
        if as_of is not None:
            total = (await query_matches(context, replace(wanted, limit=1), as_of)).total
        else:
            total = await count_matches(context, wanted)
        return EntryPageResponse(entries=[], total=total, limit=0, offset=0)
    paths = None if asked.fields is None else parse_paths(asked.fields, ENTRY_FIELDS)
    paged = asked.cursor is not None or asked.order_by is not None or asked.direction is not None
    first_total = None
    if paged:
        wanted, first_total = place_page(asked, wanted)
    page = await query_matches(context, wanted, as_of)
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
    rows = await context.build(lambda entry: named_values(paths, upgrade_entry(entry)), entries)
    return RenderedPageResponse(
        entries=msgspec.Raw(encode(rows)),
        total=total,
        limit=page.limit,
        offset=page.offset,
        next_cursor=following,
    )


@operation("list_entry_namespaces", is_long=lambda call: True)
async def list_entry_namespaces(
    context: OperationContext, call: OperationCall
) -> EntryNamespaceListResponse:
    asked = call.query
    found = await list_namespaces_of(
        context, filter_of(call, asked, limit=None), asked.after_namespace, asked.limit
    )
    return EntryNamespaceListResponse(
        namespaces=[EntryNamespace(namespace=one, entries=count) for one, count in found],
        next=found[-1][0] if len(found) == asked.limit else None,
    )


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
    page = await query_matches(context, wanted)
    return await context.build(view, page.entries)


@multi_transaction_operation("export_entries")
async def export_entries(transactions: OperationTransactions) -> ResultStream:
    asked = transactions.call.query
    wanted = only_about_user(transactions.call, filter_of(transactions.call, asked, limit=None))
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
    is_empty = wanted == EntryFilter(tenant=wanted.tenant, limit=wanted.limit, offset=wanted.offset)
    if is_empty and call.query.user is None:
        raise RequestError("an empty filter would delete everything; pass `namespace=*` to do that")
    wanted = only_about_user(call, wanted)
    return DeletedResponse(deleted=await delete_matches(context, wanted))


async def render_page(
    context: OperationContext, wanted: EntryFilter
) -> EntryPageResponse | RenderedPageResponse:
    """`query_matches` for a reply: what the store has rendered is not decoded to be encoded again.

    Raises RequestError like `query_matches`.
    """
    require_owner(wanted)
    wanted, within = await prepare_filter(context, wanted)
    stored = context.transaction.entries
    page = await stored.search_rendered(wanted, within, context.now)
    entries = page.entries
    if newer := [row[0] for row in page.rows if row[3] is not None and _may_be_older(row[3])]:
        entries = entries | {one.id: one for one in await stored.get_many(newer, context.now)}
    context.service.record_access_of(context.tenant, page.rows, context.now)
    views = {}
    if entries:
        opened = await open_entries(context, entries.values())
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


def _may_be_older(kind: str) -> bool:
    """Whether a value of this kind may have been stored at an earlier version of it."""
    return kind in KINDS and KINDS[kind].version > 1


async def export(
    transactions: OperationTransactions, wanted: EntryFilter, as_of: str | None = None
) -> AsyncGenerator[list[Entry], None]:
    """Yields everything that `query_matches` would find, in pages, each on a fresh snapshot, newest
    first.

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
            find_matches,
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
    prepared, _ = await prepare_filter(context, wanted)
    return replace(wanted, met=prepared.met, value_index=prepared.value_index)
