"""`client.memory`: pages, iterators, counts and versions of entries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, Unpack

from memorywall.records.filter import EntryOrder
from memorywall.sdk.client_state import own_agent
from memorywall.sdk.effects import Emit, RequestGenerator, StreamGenerator
from memorywall.sdk.filters import FilterArguments, needs_agent, parameters
from memorywall.sdk.lookup import LookupCore
from memorywall.sdk.models import (
    DecodedHistory,
    DecodedRows,
    EntryHistory,
    EntryPage,
    MemoryEntry,
    read_event,
)
from memorywall.sdk.retry import call
from memorywall.sdk.streams import export_entries
from memorywall.wire.namespaces import EntryNamespaceListResponse

Direction: TypeAlias = Literal["asc", "desc"]
_FIRST = "*"


class QueryCore(LookupCore):
    """Reads of several entries, as request generators."""

    def query(
        self,
        *,
        limit: int | None = None,
        offset: int = 0,
        order_by: EntryOrder | None = None,
        direction: Direction | None = None,
        cursor: str | None = None,
        **wanted: Unpack[FilterArguments],
    ) -> RequestGenerator[EntryPage]:
        """Returns a page of the readable entries that match every condition, newest first.

        The conditions are those of `memorywall.sdk.filters.FilterArguments`; `where` is a condition
        on any field, such as `value.customer.tier = "gold"`. A page has at most `limit` entries
        (default 100, maximum 1,000); `total` of the page counts all matches. With `schema_version`,
        entries of the page that do not fit their namespaces' schemas are left out.

        order_by: created, updated, key or priority; default created
        direction: default asc for key, desc for other orders
        cursor: `*` for the first page, then `next_cursor` of the page before, which is None on the
            last page. Entries that are added or removed meanwhile shift no page; `total` is that of
            the first page. `iterate` does this by itself.

        Raises ExpressionError for an invalid `where`, ScanLimitError if `where` reads too much,
        RequestError.
        """
        params = yield from self._parameters(self._read_filter(wanted), limit, offset)
        order = {"order_by": order_by, "direction": direction, "cursor": cursor}
        page = yield from self._fetch({**params, **_given(order)})
        if wanted.get("as_of") is None:
            # Earlier versions are not the ones to replace.
            self._saw_own(page)
        return page

    def iterate(
        self,
        *,
        page_size: int | None = None,
        order_by: EntryOrder | None = None,
        direction: Direction | None = None,
        **wanted: Unpack[FilterArguments],
    ) -> StreamGenerator[MemoryEntry]:
        """Iterates over every entry that `query` would find, in its order, page by page.

        page_size: entries in one request, at most 1,000; default 100
        """
        params = yield from self._parameters(self._read_filter(wanted), page_size, 0)
        params.update(_given({"order_by": order_by, "direction": direction}))
        cursor: str | None = _FIRST
        while cursor is not None:
            page = yield from self._fetch({**params, "cursor": cursor})
            self._saw_own(page)
            for entry in page:
                yield Emit(entry)
            cursor = page.next_cursor

    def select(
        self,
        fields: Sequence[str] | str,
        *,
        page_size: int | None = None,
        order_by: EntryOrder | None = None,
        direction: Direction | None = None,
        **wanted: Unpack[FilterArguments],
    ) -> StreamGenerator[dict[str, Any]]:
        """Iterates like `iterate`, over some fields of each entry by name.

        fields: names of fields, or paths such as `value.customer.tier`
        """
        params = yield from self._parameters(self._read_filter(wanted), page_size, 0)
        params.update(_given({"order_by": order_by, "direction": direction}))
        params["fields"] = fields if isinstance(fields, str) else ",".join(fields)
        cursor: str | None = _FIRST
        while cursor is not None:
            query = {**params, "cursor": cursor}
            page = yield from call("query_entries", DecodedRows, query=query)
            for row in page.entries:
                yield Emit(row)
            cursor = page.next_cursor

    def count(self, **wanted: Unpack[FilterArguments]) -> RequestGenerator[int]:
        """Returns the number of entries that `query` would find."""
        params = yield from self._parameters(self._read_filter(wanted), None, 0)
        page = yield from self._fetch({**params, "count_only": "true"})
        return page.total

    def entry_namespaces(
        self,
        *,
        after_namespace: str | None = None,
        limit: int | None = None,
        **wanted: Unpack[FilterArguments],
    ) -> RequestGenerator[EntryNamespaceListResponse]:
        """Returns the namespaces of the entries that `query` would find, in their order, each with
        the number of these entries.

        after_namespace: `next` of the page before; default: the first page
        limit: the most namespaces, at most 1,000; default 100
        """
        params = yield from self._parameters(self._read_filter(wanted), limit, 0)
        query = {**params, "after_namespace": after_namespace}
        return (yield from call("list_entry_namespaces", EntryNamespaceListResponse, query=query))

    def history(
        self, entry_id: str, *, limit: int | None = None, before_version: int | None = None
    ) -> RequestGenerator[EntryHistory]:
        """Returns the versions of an entry, newest first, the present one included. A tier that
        keeps no earlier versions has the present one only; `events` of the result then has who
        changed the entry when, without values. Raises MemoryNotFoundError,
        MemoryAccessError.

        limit: versions, at most 100; default 100
        before_version: only versions with a smaller number, for the next page
        """
        asked = {"limit": limit, "before_version": before_version}
        found = yield from call("get_entry_history", DecodedHistory, entry_id=entry_id, query=asked)
        return EntryHistory(found.versions, events=map(read_event, found.events))

    def export(self, **wanted: Unpack[FilterArguments]) -> StreamGenerator[MemoryEntry]:
        """Iterates over every entry that `query` would find, newest first."""
        params = yield from self._parameters(wanted, None, 0)
        yield from export_entries(params)

    def _read_filter(self, wanted: FilterArguments) -> FilterArguments:
        """Returns the conditions of a query, an iterator or a count."""
        return wanted

    def _saw_own(self, entries: Iterable[MemoryEntry]) -> None:
        agent = self._state.agent
        self._state.versions.saw_all(
            [one for one in entries if one.agent_id == agent or self._is_own(one)]
        )

    def _parameters(
        self, wanted: Mapping[str, Any], limit: int | None, offset: int
    ) -> RequestGenerator[dict[str, str]]:
        params = parameters(wanted)
        if needs_agent(wanted):
            agent = yield from own_agent(self._state)
            if agent is not None:
                params["agent_id"] = agent
        if limit is not None:
            params["limit"] = str(limit)
        if offset:
            params["offset"] = str(offset)
        return params


def _given(fields: Mapping[str, str | None]) -> dict[str, str]:
    return {name: text for name, text in fields.items() if text is not None}
