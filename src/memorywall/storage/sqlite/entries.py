"""Entries in SQLite, with the rows that change with them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import cast

import apsw

from memorywall.records.decision import VisibilityFilter
from memorywall.records.entry import Entry, has_other_content
from memorywall.records.filter import EntryFilter
from memorywall.records.tier import Tier
from memorywall.records.usage import Usage
from memorywall.storage.derived_rows import (
    UsageChange,
    edge_rows,
    history_to_row,
    usage_change,
)
from memorywall.storage.rendered_page import RenderedPage, RenderedRow
from memorywall.storage.rows import decode_rows, entry_from_row, entry_to_row, replacement_row
from memorywall.storage.sql.entries import SqlEntryRepository
from memorywall.storage.sql.links import blank_replies
from memorywall.storage.sqlite.repository import SqliteRowAccess
from memorywall.storage.sqlite.search import plan
from memorywall.storage.sqlite.search_statement import SqliteQuery
from memorywall.storage.statements import load

_SQL = load("sqlite", "entries")
_RECALL = load("sqlite", "recall")
_LINKS = load("sqlite", "links")


class SqliteEntryRepository(SqlEntryRepository):
    """`port.EntryRepository` on one connection."""

    def __init__(self, connection: apsw.Connection, rows: SqliteRowAccess) -> None:
        super().__init__(rows)
        self._execute = connection.execute
        self._executemany = connection.executemany

    async def get(self, entry_id: str, now: str) -> Entry | None:
        tenant = self._rows.bound or self._rows.tenant
        row = self._execute(_SQL["get"], (tenant, entry_id, now)).fetchone()
        return None if row is None else entry_from_row(row)

    async def find(
        self, tier: Tier, owner: str, namespace: str, key: str, session_id: str | None = None
    ) -> Entry | None:
        row = self._execute(
            _SQL["find"],
            (self._rows.tenant, tier.value, owner, namespace, key, session_id or ""),
        ).fetchone()
        return None if row is None else entry_from_row(row)

    async def find_in(
        self, tiers: Sequence[Tier], owner: str, namespace: str, key: str
    ) -> list[Entry]:
        named = self._rows.names([tier.value for tier in tiers])
        return await self._list("find_in", named, owner, namespace, key)

    async def search(
        self, wanted: EntryFilter, visibility: VisibilityFilter, now: str
    ) -> tuple[list[Entry], int]:
        query = plan(self._execute, wanted, visibility, now)
        if query is None:
            return [], 0
        rows = self._execute(*query.page())
        entries = await decode_rows(self._rows, rows, entry_from_row)
        return entries, self._total(query, wanted, len(entries))

    async def search_each(
        self, searches: Sequence[tuple[EntryFilter, VisibilityFilter]], now: str
    ) -> list[list[Entry]]:
        pages = []
        for wanted, visibility in searches:
            query = plan(self._execute, wanted, visibility, now)
            rows = () if query is None else self._execute(*query.page())
            pages.append(await decode_rows(self._rows, rows, entry_from_row))
        return pages

    async def search_rendered(
        self, wanted: EntryFilter, visibility: VisibilityFilter, now: str
    ) -> RenderedPage:
        if wanted.order != "created":
            # The rows of a rendered page lack the columns of other orders.
            return RenderedPage.of(*await self.search(wanted, visibility, now))
        query = plan(self._execute, wanted, visibility, now)
        if query is None:
            return RenderedPage([], {}, 0)
        rows = cast(list[RenderedRow], self._execute(*query.page(rendered=True)).fetchall())
        sealed = [row[0] for row in rows if row[-1] is None]
        entries = await self.get_many(sealed, now) if sealed else ()
        total = self._total(query, wanted, len(rows))
        return RenderedPage(rows, {entry.id: entry for entry in entries}, total)

    async def count(
        self, wanted: EntryFilter, within: VisibilityFilter, now: str, at_most: int | None
    ) -> Usage:
        query = plan(self._execute, wanted, within, now)
        row = None if query is None else self._execute(*query.measure(at_most)).fetchone()
        return Usage() if row is None else Usage(entries=row[0], bytes=row[1])

    async def namespaces(
        self, wanted: EntryFilter, within: VisibilityFilter, now: str, after: str, limit: int
    ) -> list[tuple[str, int]]:
        query = plan(self._execute, wanted, within, now)
        if query is None:
            return []
        return [(row[0], row[1]) for row in self._execute(*query.namespaces(after, limit))]

    def _total(self, query: SqliteQuery, wanted: EntryFilter, found: int) -> int:
        """Returns the number of entries that match on all pages; one page has `found`."""
        if not wanted.counted:
            return found
        seen_all = wanted.limit is None or found < wanted.limit
        if seen_all and (found or wanted.offset == 0):
            return wanted.offset + found
        row = self._execute(*query.count()).fetchone()
        return row[0] if row else 0

    async def insert(self, entry: Entry, now: str) -> bool:
        row = self._execute(_SQL["insert"], entry_to_row(entry, now)).fetchone()
        if row is None:
            return False
        self._add_tags(entry, entry.tags, row[0])
        self._add_edges(entry, entry.edges)
        self._add_usage(*usage_change(None, entry))
        return True

    async def replace(self, old: Entry, new: Entry, *, keep_old: bool = False) -> None:
        row = self._execute(_SQL["replace"], replacement_row(old, new)).fetchone()
        if row is None:
            raise LookupError("the entry to replace was not read in this transaction")
        if new.tags != old.tags:
            before, after = set(old.tags), set(new.tags)
            self._remove_tags(old, before - after, row[0])
            self._add_tags(new, after - before, row[0])
        if new.edges != old.edges:
            gone = set(old.edges) - set(new.edges)
            self._executemany(_LINKS["remove_edge"], edge_rows(old, gone))
            self._add_edges(new, set(new.edges) - set(old.edges))
        if keep_old:
            self._execute(_LINKS["keep"], history_to_row(old, new.updated_at))
        self._add_usage(*usage_change(old, new))
        if row[1]:
            self._remove_segment(old)
        if has_other_content(old, new):
            self._execute(_RECALL["remove_vectors"], (old.tenant, old.id))
        self._rows.count_removal()

    async def remove(self, entry: Entry) -> None:
        row = self._execute(_SQL["remove"], (entry.tenant, entry.id)).fetchone()
        if row is None:
            raise LookupError("the entry to remove was not read in this transaction")
        self._remove_tags(entry, entry.tags, row[0])
        self._add_usage(*usage_change(entry, None))
        if row[1]:
            self._remove_segment(entry)
        self._execute(_LINKS["remove_edges"], (entry.tenant, entry.id))
        self._execute(_LINKS["forget"], (entry.tenant, entry.id))
        self._execute(_RECALL["remove_vectors"], (entry.tenant, entry.id))
        self._execute(_RECALL["remove_uses"], (entry.tenant, entry.id))
        if entry.kind == "session":
            self._execute(_SQL["remove_session_counters"], (entry.tenant, entry.id))
        self._execute(_SQL["remove_attachment_pieces"], (entry.tenant, entry.id))
        self._execute(_SQL["remove_attachments"], (entry.tenant, entry.id))
        await blank_replies(self._rows, entry.tenant, entry.id)
        self._rows.count_removal()

    def _remove_segment(self, entry: Entry) -> None:
        """Removes the index segment that contains an entry."""
        place = (entry.tenant, entry.owner, entry.tier.value, entry.id, entry.id)
        self._execute(_RECALL["remove_segments"], place)

    async def usage(self, tier: Tier, owner: str, now: str) -> Usage:
        row = self._execute(_SQL["usage"], (self._rows.tenant, owner, tier.value)).fetchone()
        if row is None or row[0] == 0:
            return Usage()
        gone = self._execute(
            _SQL["expired_usage"], (self._rows.tenant, owner, tier.value, now)
        ).fetchone()
        assert gone is not None  # noqa: S101 - an aggregate always has one row
        return Usage(entries=row[0] - gone[0], bytes=row[1] - gone[1], pinned=row[2] - gone[2])

    async def tenant_usage(self, now: str) -> Usage:
        stored = self._sum("tenant_usage", (self._rows.tenant,))
        gone = self._sum("expired_tenant_usage", (self._rows.tenant, now))
        return Usage(entries=stored.entries - gone.entries, bytes=stored.bytes - gone.bytes)

    async def task_usage(self, tier: Tier, task_id: str, now: str) -> Usage:
        return self._sum("task_usage", (self._rows.tenant, tier.value, task_id, now))

    async def newest_of_session(
        self, session_id: str, owner: str, wanted: Mapping[str, int]
    ) -> dict[str, list[Entry]]:
        return {
            kind: await self.of_session(session_id, kind, owner, most, newest_first=True)
            for kind, most in wanted.items()
        }

    async def get_many(self, entry_ids: Collection[str], now: str) -> list[Entry]:
        return await self._list("get_many", self._rows.names(entry_ids), now)

    async def namespace_usage(self, tier: Tier, namespace: str, now: str) -> Usage:
        # A statement that is named after the tier is served by an index of the tier alone.
        own = f"namespace_usage_{tier}"
        statement = own if own in _SQL else "namespace_usage"
        return self._sum(statement, (self._rows.tenant, tier.value, namespace, now))

    def note_removal(self) -> None:
        """Records for the server that this process has removed data."""
        self._execute(_SQL["note_removal"], (self._rows.tenant,))

    def _sum(self, statement: str, bindings: tuple[str, ...]) -> Usage:
        row = self._execute(_SQL[statement], bindings).fetchone()
        assert row is not None  # noqa: S101 - an aggregate always has one row
        return Usage(entries=row[0], bytes=row[1])

    def _add_tags(self, entry: Entry, tags: Iterable[str], number: int) -> None:
        for tag in tags:
            row = self._execute(_SQL["count_tag"], (entry.tenant, entry.owner, tag)).fetchone()
            assert row is not None  # noqa: S101 - the statement always answers with one row
            self._execute(_SQL["add_tag"], (entry.tenant, row[0], number))

    def _remove_tags(self, entry: Entry, tags: Iterable[str], number: int) -> None:
        for tag in tags:
            row = self._execute(_SQL["uncount_tag"], (entry.tenant, entry.owner, tag)).fetchone()
            assert row is not None  # noqa: S101 - the entry has the tag, so it is counted
            self._execute(_SQL["remove_tag"], (entry.tenant, row[0], number))
            if row[1] == 0:
                self._execute(_SQL["forget_tag"], (entry.tenant, row[0]))

    def _add_edges(self, entry: Entry, edges: Collection[tuple[str, str]]) -> None:
        if edges:
            self._executemany(_LINKS["add_edge"], edge_rows(entry, edges))

    def _add_usage(self, *changes: UsageChange) -> None:
        for change in changes:
            self._execute(_SQL["add_usage"], change)
