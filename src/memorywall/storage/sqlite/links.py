"""Edges, due instants and earlier versions in SQLite."""

from __future__ import annotations

from collections.abc import Collection

from memorywall.records.entry import Entry
from memorywall.storage.derived_rows import entry_from_history
from memorywall.storage.rows import encode_names, entry_from_row
from memorywall.storage.sqlite.repository import SqliteRepository
from memorywall.storage.statements import load

_SQL = load("sqlite", "links")
_ENTRIES = load("sqlite", "entries")


class SqliteEdges(SqliteRepository):
    """`port.Edges` on one connection."""

    async def targets(self, entry_id: str) -> list[tuple[str, str]]:
        rows = self._execute(_SQL["targets"], (self._tenant, entry_id))
        return [(str(row[0]), str(row[1])) for row in rows]

    async def sources(
        self, relation: str, targets: Collection[str], limit: int, after: str = ""
    ) -> list[str]:
        wanted = encode_names(list(targets))
        rows = self._execute(_SQL["sources"], (self._tenant, relation, wanted, after, limit))
        return [str(row[0]) for row in rows]

    async def due(self, now: str, limit: int, kind: str | None = None) -> list[Entry]:
        rows = self._execute(_ENTRIES["due"], (self._tenant, now, limit, kind))
        return [entry_from_row(row) for row in rows]


class SqliteHistory(SqliteRepository):
    """`port.History` on one connection."""

    async def get(self, entry_id: str, version: int) -> Entry | None:
        row = self._execute(_SQL["version"], (self._tenant, entry_id, version)).fetchone()
        return None if row is None else entry_from_history(row)

    async def as_of(self, entry_ids: Collection[str], instant: str) -> dict[str, Entry]:
        wanted = encode_names(list(entry_ids))
        rows = self._execute(_SQL["as_of"], (self._tenant, wanted, instant))
        found = (entry_from_history(row) for row in rows)
        return {entry.id: entry for entry in found if entry.updated_at <= instant}

    async def versions(self, entry_id: str) -> list[Entry]:
        rows = self._execute(_SQL["versions"], (self._tenant, entry_id))
        return [entry_from_history(row) for row in rows]

    async def earlier(self, entry_id: str, before: int, limit: int) -> list[Entry]:
        rows = self._execute(_SQL["earlier"], (self._tenant, entry_id, before, limit))
        return [entry_from_history(row) for row in rows]

    async def about(self, subjects: Collection[str], limit: int) -> list[Entry]:
        wanted = encode_names(list(subjects))
        rows = self._execute(_SQL["about"], (self._tenant, wanted, limit))
        return [entry_from_history(row) for row in rows]

    async def remove(self, entry_id: str, versions: Collection[int]) -> None:
        place = (self._tenant, entry_id)
        self._executemany(_SQL["remove_version"], [(*place, version) for version in versions])
        self._execute(_ENTRIES["blank_replies"], place)
        self._execute(_ENTRIES["remove_reply_links"], place)
        self.count_removal()
