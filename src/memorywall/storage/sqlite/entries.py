"""Entries in SQLite, with everything that must change with them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import apsw

from memorywall.records.decision import Reach
from memorywall.records.entry import Entry, has_other_content
from memorywall.records.filter import Filter
from memorywall.records.tier import Tier
from memorywall.records.usage import Usage
from memorywall.storage.rows import encode_names, entry_from_row, entry_to_row, replacement_row
from memorywall.storage.sqlite.search import plan
from memorywall.storage.statements import load

_SQL = load("sqlite", "entries")
_RECALL = load("sqlite", "recall")


class SqliteEntries:
    """`port.Entries` on one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute = connection.execute
        self._executemany = connection.executemany
        self.removals = 0
        """How many entries were removed or replaced through this connection: their bytes have yet
        to leave the write-ahead log."""

    async def get(self, tenant: str, entry_id: str, now: str) -> Entry | None:
        row = self._execute(_SQL["get"], (tenant, entry_id, now)).fetchone()
        return None if row is None else entry_from_row(row)

    async def find(
        self, tenant: str, tier: Tier, owner: str, namespace: str, key: str
    ) -> Entry | None:
        row = self._execute(_SQL["find"], (tenant, tier.value, owner, namespace, key)).fetchone()
        return None if row is None else entry_from_row(row)

    async def search(self, wanted: Filter, reach: Reach, now: str) -> tuple[list[Entry], int]:
        query = None if reach.is_empty else plan(self._execute, wanted, reach, now)
        if query is None:
            return [], 0
        entries = [entry_from_row(row) for row in self._execute(*query.page())]
        if not wanted.counted:
            return entries, len(entries)
        seen_all = wanted.limit is None or len(entries) < wanted.limit
        if seen_all and (entries or wanted.offset == 0):
            return entries, wanted.offset + len(entries)
        row = self._execute(*query.count()).fetchone()
        return entries, row[0] if row else 0

    async def insert(self, entry: Entry, now: str) -> bool:
        row = self._execute(_SQL["insert"], entry_to_row(entry, now)).fetchone()
        if row is None:
            return False
        self._add_tags(entry, entry.tags, row[0])
        self._add_usage(entry, 1, entry.size, int(entry.pinned))
        return True

    async def replace(self, old: Entry, new: Entry) -> None:
        row = self._execute(_SQL["replace"], replacement_row(old, new)).fetchone()
        if row is None:
            raise LookupError("the entry to replace was not read in this transaction")
        if new.tags != old.tags:
            before, after = set(old.tags), set(new.tags)
            self._remove_tags(old, before - after, row[0])
            self._add_tags(new, after - before, row[0])
        if new.size != old.size or new.pinned != old.pinned:
            self._add_usage(old, 0, new.size - old.size, new.pinned - old.pinned)
        if has_other_content(old, new):
            self._execute(_RECALL["remove_vectors"], (old.tenant, old.id))
        self.removals += 1

    async def remove(self, entry: Entry) -> None:
        row = self._execute(_SQL["remove"], (entry.tenant, entry.id)).fetchone()
        if row is None:
            raise LookupError("the entry to remove was not read in this transaction")
        self._remove_tags(entry, entry.tags, row[0])
        self._add_usage(entry, -1, -entry.size, -int(entry.pinned))
        self._execute(_RECALL["remove_vectors"], (entry.tenant, entry.id))
        self._execute(_RECALL["remove_uses"], (entry.tenant, entry.id))
        self._execute(_SQL["blank_replies"], (entry.tenant, entry.id))
        self._execute(_SQL["remove_reply_links"], (entry.tenant, entry.id))
        self.removals += 1

    async def expired(self, tenant: str, now: str, limit: int) -> list[Entry]:
        return [entry_from_row(row) for row in self._execute(_SQL["expired"], (tenant, now, limit))]

    async def least_recently_used(self, tenant: str, tier: Tier, owner: str) -> Entry | None:
        if tier is not Tier.EPISODIC:
            raise LookupError("only the episodic tier keeps an order of eviction")
        row = self._execute(_SQL["least_recently_used"], (tenant, owner)).fetchone()
        return None if row is None else entry_from_row(row)

    async def touch(self, tenant: str, accesses: Mapping[str, str]) -> None:
        self._executemany(
            _SQL["touch"], [(tenant, entry_id, at) for entry_id, at in accesses.items()]
        )

    async def usage(self, tenant: str, tier: Tier, owner: str, now: str) -> Usage:
        row = self._execute(_SQL["usage"], (tenant, owner, tier.value)).fetchone()
        if row is None or row[0] == 0:
            return Usage()
        gone = self._execute(_SQL["expired_usage"], (tenant, owner, tier.value, now)).fetchone()
        assert gone is not None  # noqa: S101 - an aggregate always has one row
        return Usage(entries=row[0] - gone[0], bytes=row[1] - gone[1], pinned=row[2] - gone[2])

    async def task_usage(self, tenant: str, tier: Tier, task_id: str, now: str) -> Usage:
        return self._sum("task_usage", (tenant, tier.value, task_id, now))

    async def of_task(self, tenant: str, tier: Tier, task_id: str) -> list[Entry]:
        rows = self._execute(_SQL["of_task"], (tenant, tier.value, task_id))
        return [entry_from_row(row) for row in rows]

    async def of_owner(
        self, tenant: str, tier: Tier, owner: str, limit: int, after: str = ""
    ) -> list[Entry]:
        rows = self._execute(_SQL["of_owner"], (tenant, owner, tier.value, limit, after))
        return [entry_from_row(row) for row in rows]

    async def get_many(self, tenant: str, entry_ids: Collection[str], now: str) -> list[Entry]:
        rows = self._execute(_SQL["get_many"], (tenant, encode_names(list(entry_ids)), now))
        return [entry_from_row(row) for row in rows]

    async def namespace_usage(self, tenant: str, tier: Tier, namespace: str, now: str) -> Usage:
        if tier is Tier.SHARED:
            return self._sum("scope_usage", (tenant, namespace, now))
        return self._sum("namespace_usage", (tenant, tier.value, namespace, now))

    async def tasks(self, tenant: str, tier: Tier, owner: str, now: str) -> list[str]:
        rows = self._execute(_SQL["tasks"], (tenant, owner, tier.value, now))
        return [str(row[0]) for row in rows]

    async def span(
        self, tenant: str, tier: Tier, owner: str, now: str
    ) -> tuple[str | None, str | None]:
        bindings = (tenant, owner, tier.value, now)
        oldest = self._execute(_SQL["oldest"], bindings).fetchone()
        newest = self._execute(_SQL["newest"], bindings).fetchone()
        return (oldest[0] if oldest else None, newest[0] if newest else None)

    def note_removal(self, tenant: str) -> None:
        """Lets the server know that something was removed beside it."""
        self._execute(_SQL["note_removal"], (tenant,))

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

    def _add_usage(self, entry: Entry, entries: int, size: int, pinned: int) -> None:
        self._execute(
            _SQL["add_usage"],
            (entry.tenant, entry.owner, entry.tier.value, entries, size, pinned),
        )
