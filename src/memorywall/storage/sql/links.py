"""Edges, due instants and earlier versions of entries."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from memorywall.records.entry import Entry
from memorywall.storage.derived_rows import entry_from_history
from memorywall.storage.rows import decode_rows, entry_from_row
from memorywall.storage.sql.access import RowAccess
from memorywall.storage.statements import load


async def blank_replies(rows: RowAccess, tenant: str, entry_id: str) -> None:
    """Erases the stored responses that contain an entry."""
    sql = load(rows.dialect, "links")
    replies = await rows.change(sql["unlink_replies"], tenant, entry_id)
    await rows.change_each(sql["blank_reply"], (tenant,), replies)


class SqlEdges:
    """`port.Edges` over rows that are read after all writes of entries."""

    def __init__(self, rows: RowAccess) -> None:
        self._rows = rows
        self._sql = load(rows.dialect, "links")
        self._due = load(rows.dialect, "entries")["due"]

    async def targets(self, entry_id: str) -> list[tuple[str, str]]:
        rows = await self._rows.rows(self._sql["targets"], self._rows.tenant, entry_id)
        return [(row[0], row[1]) for row in rows]

    async def sources(
        self, relation: str, targets: Collection[str], limit: int, after: str = ""
    ) -> list[str]:
        sql, wanted = self._sql["sources"], self._rows.names(targets)
        if len(targets) == 1:
            # The index has the entries of one target in order.
            sql, (wanted,) = self._sql["sources_of_one"], targets
        bindings = (self._rows.tenant, relation, wanted, after, limit)
        return [row[0] for row in await self._rows.rows(sql, *bindings)]

    async def between(
        self, relation: str, ranges: Collection[tuple[str, str]], limit: int
    ) -> list[tuple[str, str]]:
        if not ranges:
            return []
        place, each = (self._rows.tenant, relation), self._sql.get("between_each")
        if each is not None:
            bounds = [self._rows.names(column) for column in zip(*ranges, strict=True)]
            return [(row[0], row[1]) for row in await self._rows.rows(each, *place, *bounds, limit)]
        found: list[tuple[str, str]] = []
        for first, last in ranges:
            rows = await self._rows.rows(self._sql["between"], *place, first, last, limit)
            found += [(row[0], row[1]) for row in rows]
        return found

    async def due(self, now: str, limit: int, kind: str | None = None) -> list[Entry]:
        rows = await self._rows.rows(self._due, self._rows.tenant, now, limit, kind)
        return await decode_rows(self._rows, rows, entry_from_row)


class SqlHistory:
    """`port.History` over rows that are read after all writes of entries."""

    def __init__(self, rows: RowAccess) -> None:
        self._rows = rows
        self._sql = load(rows.dialect, "links")

    async def get(self, entry_id: str, version: int) -> Entry | None:
        found = await self._list("version", entry_id, version)
        return found[0] if found else None

    async def as_of(self, entry_ids: Collection[str], instant: str) -> dict[str, Entry]:
        found = await self._list("as_of", self._rows.names(entry_ids), instant)
        return {entry.id: entry for entry in found if entry.updated_at <= instant}

    async def versions(self, entry_id: str) -> list[Entry]:
        return await self._list("versions", entry_id)

    async def earlier(self, entry_id: str, before: int, limit: int) -> list[Entry]:
        return await self._list("earlier", entry_id, before, limit)

    async def about(self, subjects: Collection[str], limit: int) -> list[Entry]:
        return await self._list("about", self._rows.names(subjects), limit)

    async def remove(self, entry_id: str, versions: Collection[int]) -> None:
        place = (self._rows.tenant, entry_id)
        chosen = self._rows.names(versions)
        await self._rows.change(self._sql["remove_versions"], *place, chosen)
        await blank_replies(self._rows, *place)
        self._rows.count_removal()

    async def _list(self, statement: str, *bindings: Any) -> list[Entry]:
        rows = await self._rows.rows(self._sql[statement], self._rows.tenant, *bindings)
        return await decode_rows(self._rows, rows, entry_from_history)
