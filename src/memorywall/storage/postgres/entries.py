"""Entries in PostgreSQL, with everything that must change with them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping

from memorywall.records.decision import Reach
from memorywall.records.entry import Entry, is_over
from memorywall.records.filter import Filter
from memorywall.records.tier import Tier
from memorywall.records.usage import Usage
from memorywall.storage.postgres.counts import Counts, Place
from memorywall.storage.postgres.pending import Pending
from memorywall.storage.postgres.search import search
from memorywall.storage.postgres.session import Row, Session
from memorywall.storage.rows import entry_from_row
from memorywall.storage.statements import load

_SQL = load("postgres", "entries")
_COUNTS = load("postgres", "counts")
_ID = 1


class PostgresEntries:
    """`port.Entries` within one transaction.

    cautious: look before anything is noted, instead of learning from the flush that it does not fit
    side_by_side: several scripts run at once, so what they get is fetched together
    """

    def __init__(
        self, session: Session, pending: Pending, *, cautious: bool, side_by_side: bool
    ) -> None:
        self._session = session
        self._pending = pending
        self._cautious = cautious
        self._side_by_side = side_by_side
        self._counts = Counts()
        self._wanted: dict[str, asyncio.Future[Row | None]] = {}

    def forget(self) -> None:
        """Forgets what was counted, because something was undone."""
        self._counts.forget()

    async def get(self, tenant: str, entry_id: str, now: str) -> Entry | None:
        if self._pending.has(entry_id):
            await self._pending.flush()
        row = await self._row_of(tenant, entry_id)
        entry = None if row is None else entry_from_row(row)
        return None if entry is None or is_over(entry, now) else entry

    async def find(
        self, tenant: str, tier: Tier, owner: str, namespace: str, key: str
    ) -> Entry | None:
        await self._settle()
        row = await self._session.row(_SQL["find"], tenant, tier.value, owner, namespace, key)
        return None if row is None else entry_from_row(row)

    async def search(self, wanted: Filter, reach: Reach, now: str) -> tuple[list[Entry], int]:
        if reach.is_empty:
            return [], 0
        await self._settle()
        return await search(self._session, wanted, reach, now)

    async def insert(self, entry: Entry, now: str) -> bool:
        name = (entry.tier.value, entry.owner, entry.namespace, entry.key)
        if self._pending.takes(name):
            return False
        if self._cautious:
            taken = await self._session.row(_SQL["find"], entry.tenant, *name)
            if taken is not None:
                return False
        self._pending.insert(entry, now)
        self._counts.add(entry)
        return True

    async def replace(self, old: Entry, new: Entry) -> None:
        if self._pending.has(old.id):
            await self._pending.flush()
        if self._cautious:
            there = await self._row_of(old.tenant, old.id)
            if there is None or entry_from_row(there).version != old.version:
                raise LookupError("the entry to replace was not read in this transaction")
        self._pending.replace(old, new)
        self._counts.change(old, new)

    async def remove(self, entry: Entry) -> None:
        await self._settle()
        if not await self._session.change(_SQL["remove"], entry.tenant, entry.id):
            raise LookupError("the entry to remove was not read in this transaction")
        self._counts.take(entry)

    async def expired(self, tenant: str, now: str, limit: int) -> list[Entry]:
        return await self._list("expired", tenant, now, limit)

    async def least_recently_used(self, tenant: str, tier: Tier, owner: str) -> Entry | None:
        if tier is not Tier.EPISODIC:
            raise LookupError("only the episodic tier keeps an order of eviction")
        found = await self._list("least_recently_used", tenant, owner)
        return found[0] if found else None

    async def touch(self, tenant: str, accesses: Mapping[str, str]) -> None:
        await self._settle()
        if accesses:
            instants = list(accesses.values())
            await self._session.change(_SQL["touch"], tenant, list(accesses), instants)

    async def usage(self, tenant: str, tier: Tier, owner: str, now: str) -> Usage:
        place: Place = ("owner", tier, owner)
        return await self._count(place, now, "owner", tenant, owner, tier.value, now)

    async def task_usage(self, tenant: str, tier: Tier, task_id: str, now: str) -> Usage:
        place: Place = ("task", tier, task_id)
        return await self._count(place, now, "task", tenant, tier.value, task_id, now)

    async def of_task(self, tenant: str, tier: Tier, task_id: str) -> list[Entry]:
        return await self._list("of_task", tenant, tier.value, task_id)

    async def of_owner(
        self, tenant: str, tier: Tier, owner: str, limit: int, after: str = ""
    ) -> list[Entry]:
        return await self._list("of_owner", tenant, owner, tier.value, limit, after)

    async def get_many(self, tenant: str, entry_ids: Collection[str], now: str) -> list[Entry]:
        await self._settle()
        rows = await self._session.rows(_SQL["get_many"], tenant, list(entry_ids))
        return [entry for entry in map(entry_from_row, rows) if not is_over(entry, now)]

    async def namespace_usage(self, tenant: str, tier: Tier, namespace: str, now: str) -> Usage:
        place: Place = ("namespace", tier, namespace)
        return await self._count(place, now, "namespace", tenant, tier.value, namespace, now)

    async def tasks(self, tenant: str, tier: Tier, owner: str, now: str) -> list[str]:
        await self._settle()
        rows = await self._session.rows(_SQL["tasks"], tenant, owner, tier.value, now)
        return [str(row[0]) for row in rows]

    async def span(
        self, tenant: str, tier: Tier, owner: str, now: str
    ) -> tuple[str | None, str | None]:
        await self._settle()
        bindings = (tenant, owner, tier.value, now)
        oldest = await self._session.row(_SQL["oldest"], *bindings)
        newest = await self._session.row(_SQL["newest"], *bindings)
        return (oldest[0] if oldest else None, newest[0] if newest else None)

    async def _settle(self) -> None:
        """Writes what has been noted of entries, for the next statement looks at many of them."""
        if self._pending.touches_entries:
            await self._pending.flush()

    async def _list(self, statement: str, *bindings: str | int) -> list[Entry]:
        await self._settle()
        rows = await self._session.rows(_SQL[statement], *bindings)
        return [entry_from_row(row) for row in rows]

    async def _count(self, place: Place, now: str, statement: str, *bindings: str) -> Usage:
        async def count() -> tuple[Usage, str | None]:
            if self._pending.changes(place):
                await self._pending.flush()
            row = await self._session.row(_COUNTS[statement], *bindings)
            assert row is not None  # noqa: S101 - an aggregate always has one row
            return Usage(entries=row[0], bytes=row[1], pinned=row[2]), row[3]

        return await self._counts.get(place, now, count)

    async def _row_of(self, tenant: str, entry_id: str) -> Row | None:
        """The row of an entry. What several scripts want in the same turn of the event loop is
        fetched with one statement."""
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
