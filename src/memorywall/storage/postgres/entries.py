"""Entries in PostgreSQL, with the rows that change with them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence

from memorywall.records.decision import VisibilityFilter
from memorywall.records.entry import Entry, is_expired
from memorywall.records.filter import EntryFilter
from memorywall.records.tier import Tier
from memorywall.records.usage import Usage
from memorywall.storage.postgres.counts import TENANT_SCOPE, Counts, CountScope
from memorywall.storage.postgres.search import count, namespaces, search, search_each
from memorywall.storage.postgres.session import Row, StatementSession
from memorywall.storage.postgres.write_buffer import WriteBuffer
from memorywall.storage.rendered_page import RenderedPage
from memorywall.storage.rows import entry_from_row
from memorywall.storage.sql.access import RowAccess
from memorywall.storage.sql.entries import SqlEntryRepository
from memorywall.storage.statements import load

_SQL = load("postgres", "entries")
_RECALL = load("postgres", "recall")
_COUNTS = load("postgres", "counts")
_ID = 1


class PostgresEntryRepository(SqlEntryRepository):
    """`port.EntryRepository` within one transaction.

    rows: flushes the buffered writes of entries before each statement
    cautious: check each write before it is buffered, instead of detecting conflicts at the flush
    side_by_side: several functions run concurrently, so their reads are combined
    """

    def __init__(
        self,
        session: StatementSession,
        buffer: WriteBuffer,
        rows: RowAccess,
        *,
        cautious: bool,
        side_by_side: bool,
    ) -> None:
        super().__init__(rows)
        self._session = session
        self._buffer = buffer
        self._cautious = cautious
        self._side_by_side = side_by_side
        self._counts = Counts()
        self._wanted: dict[str, asyncio.Future[Row | None]] = {}

    def forget(self) -> None:
        """Clears the counts after a rollback."""
        self._counts.forget()

    async def get(self, entry_id: str, now: str) -> Entry | None:
        if self._buffer.has(entry_id):
            await self._buffer.flush()
        row = await self._row_of(self._session.bound_tenant, entry_id)
        entry = None if row is None else entry_from_row(row)
        return None if entry is None or is_expired(entry, now) else entry

    async def find(
        self, tier: Tier, owner: str, namespace: str, key: str, session_id: str | None = None
    ) -> Entry | None:
        name = (tier.value, owner, namespace, key, session_id or "")
        row = await self._rows.row(_SQL["find"], self._rows.tenant, *name)
        return None if row is None else entry_from_row(row)

    async def find_in(
        self, tiers: Sequence[Tier], owner: str, namespace: str, key: str
    ) -> list[Entry]:
        return await self._list("find_in", [tier.value for tier in tiers], owner, namespace, key)

    async def search(
        self, wanted: EntryFilter, visibility: VisibilityFilter, now: str
    ) -> tuple[list[Entry], int]:
        return await search(self._rows, wanted, visibility, now)

    async def search_each(
        self, searches: Sequence[tuple[EntryFilter, VisibilityFilter]], now: str
    ) -> list[list[Entry]]:
        return await search_each(self._rows, searches, now)

    async def count(
        self, wanted: EntryFilter, within: VisibilityFilter, now: str, at_most: int | None
    ) -> Usage:
        return await count(self._rows, wanted, within, now, at_most)

    async def namespaces(
        self, wanted: EntryFilter, within: VisibilityFilter, now: str, after: str, limit: int
    ) -> list[tuple[str, int]]:
        return await namespaces(self._rows, wanted, within, now, after, limit)

    async def search_rendered(
        self, wanted: EntryFilter, visibility: VisibilityFilter, now: str
    ) -> RenderedPage:
        return RenderedPage.of(*await self.search(wanted, visibility, now))

    async def insert(self, entry: Entry, now: str) -> bool:
        name = (
            entry.tier.value,
            entry.owner,
            entry.namespace,
            entry.key,
            entry.scope.session_id or "",
        )
        if self._buffer.takes(name):
            return False
        if self._cautious:
            taken = await self._session.row(_SQL["find"], entry.tenant, *name)
            if taken is not None:
                return False
            if await self._name_exists(entry):
                return False
        self._buffer.insert(entry, now)
        self._counts.add(entry)
        return True

    async def _name_exists(self, entry: Entry) -> bool:
        """Returns whether another session has the name, as long as the index of names without
        sessions exists."""
        if not await self._session.rows(_SQL["old_index"]):
            return False
        name = (entry.tier.value, entry.owner, entry.namespace, entry.key)
        return bool(await self._session.rows(_SQL["in_any_session"], entry.tenant, *name))

    async def replace(self, old: Entry, new: Entry, *, keep_old: bool = False) -> None:
        if self._buffer.has(old.id):
            await self._buffer.flush()
        if self._cautious:
            there = await self._row_of(old.tenant, old.id)
            if there is None or entry_from_row(there).version != old.version:
                raise LookupError("the entry to replace was not read in this transaction")
        self._buffer.replace(old, new, keep_old=keep_old)
        self._counts.change(old, new)

    async def remove(self, entry: Entry) -> None:
        removed = await self._rows.change(_SQL["remove"], entry.tenant, entry.id)
        if not removed:
            raise LookupError("the entry to remove was not read in this transaction")
        if removed[0][0]:
            place = (entry.tenant, entry.owner, entry.tier.value, entry.id, entry.id)
            await self._rows.change(_RECALL["remove_segments"], *place)
        self._counts.take(entry)

    async def usage(self, tier: Tier, owner: str, now: str) -> Usage:
        scope: CountScope = ("owner", tier, owner)
        return await self._count(
            scope, now, "owner", self._session.bound_tenant, owner, tier.value, now
        )

    async def tenant_usage(self, now: str) -> Usage:
        return await self._count(TENANT_SCOPE, now, "tenant", self._session.bound_tenant, now)

    async def task_usage(self, tier: Tier, task_id: str, now: str) -> Usage:
        scope: CountScope = ("task", tier, task_id)
        return await self._count(
            scope, now, "task", self._session.bound_tenant, tier.value, task_id, now
        )

    async def newest_of_session(
        self, session_id: str, owner: str, wanted: Mapping[str, int]
    ) -> dict[str, list[Entry]]:
        bindings = (session_id, owner, [*wanted], [*wanted.values()])
        found: dict[str, list[Entry]] = {kind: [] for kind in wanted}
        for entry in await self._list("newest_of_session", *bindings):
            found[entry.kind or ""].append(entry)
        return found

    async def get_many(self, entry_ids: Collection[str], now: str) -> list[Entry]:
        found = await self._list("get_many", list(entry_ids))
        return [entry for entry in found if not is_expired(entry, now)]

    async def namespace_usage(self, tier: Tier, namespace: str, now: str) -> Usage:
        scope: CountScope = ("namespace", tier, namespace)
        return await self._count(
            scope, now, "namespace", self._session.bound_tenant, tier.value, namespace, now
        )

    async def _count(self, scope: CountScope, now: str, statement: str, *bindings: str) -> Usage:
        async def count() -> tuple[Usage, str | None]:
            if self._buffer.changes(scope):
                await self._buffer.flush()
            row = await self._session.row(_COUNTS[statement], *bindings)
            assert row is not None  # noqa: S101 - an aggregate always has one row
            return Usage(entries=row[0], bytes=row[1], pinned=row[2]), row[3]

        return await self._counts.get(scope, now, count)

    async def _row_of(self, tenant: str, entry_id: str) -> Row | None:
        """Returns the row of an entry. Reads of several functions in the same event-loop iteration
        share one statement."""
        if not self._side_by_side:
            return await self._session.row(_SQL["get_many"], tenant, [entry_id])
        wanted = self._wanted.get(entry_id)
        if wanted is None:
            loop = asyncio.get_running_loop()
            if not self._wanted:
                loop.call_soon(self._fetch, tenant, loop)
            wanted = self._wanted[entry_id] = loop.create_future()
        return await wanted

    def _fetch(self, tenant: str, loop: asyncio.AbstractEventLoop) -> None:
        wanted, self._wanted = self._wanted, {}
        self._fetching = loop.create_task(self._fetch_all(tenant, wanted))

    async def _fetch_all(self, tenant: str, wanted: dict[str, asyncio.Future[Row | None]]) -> None:
        try:
            rows = await self._session.rows(_SQL["get_many"], tenant, list(wanted))
        except BaseException as error:
            for future in wanted.values():
                if not future.done():
                    future.set_exception(error)
            return
        found = {row[_ID]: row for row in rows}
        for entry_id, future in wanted.items():
            if not future.done():
                future.set_result(found.get(entry_id))
