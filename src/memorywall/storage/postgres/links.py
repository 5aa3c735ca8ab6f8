"""Edges, due instants and earlier versions in PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from memorywall.records.entry import Entry
from memorywall.storage.derived_rows import entry_from_history
from memorywall.storage.postgres.session import Row, StatementSession
from memorywall.storage.postgres.write_buffer import WriteBuffer
from memorywall.storage.rows import entry_from_row
from memorywall.storage.statements import load

_SQL = load("postgres", "links")
_ENTRIES = load("postgres", "entries")


class _Derived:
    """Reads rows that are derived from entries, after a flush of buffered writes of entries."""

    def __init__(self, session: StatementSession, buffer: WriteBuffer) -> None:
        self._session = session
        self._buffer = buffer

    async def _rows(self, statement: str, *bindings: Any) -> list[Row]:
        if self._buffer.touches_entries:
            await self._buffer.flush()
        return await self._session.rows(statement, self._session.bound_tenant, *bindings)


class PostgresEdges(_Derived):
    """`port.Edges` within one transaction."""

    async def targets(self, entry_id: str) -> list[tuple[str, str]]:
        return [(row[0], row[1]) for row in await self._rows(_SQL["targets"], entry_id)]

    async def sources(
        self, relation: str, targets: Collection[str], limit: int, after: str = ""
    ) -> list[str]:
        rows = await self._rows(_SQL["sources"], relation, list(targets), after, limit)
        return [row[0] for row in rows]

    async def due(self, now: str, limit: int, kind: str | None = None) -> list[Entry]:
        rows = await self._rows(_ENTRIES["due"], now, limit, kind)
        return [entry_from_row(row) for row in rows]


class PostgresHistory(_Derived):
    """`port.History` within one transaction."""

    async def get(self, entry_id: str, version: int) -> Entry | None:
        rows = await self._rows(_SQL["version"], entry_id, version)
        return entry_from_history(rows[0]) if rows else None

    async def as_of(self, entry_ids: Collection[str], instant: str) -> dict[str, Entry]:
        rows = await self._rows(_SQL["as_of"], list(entry_ids), instant)
        found = (entry_from_history(row) for row in rows)
        return {entry.id: entry for entry in found if entry.updated_at <= instant}

    async def versions(self, entry_id: str) -> list[Entry]:
        return [entry_from_history(row) for row in await self._rows(_SQL["versions"], entry_id)]

    async def earlier(self, entry_id: str, before: int, limit: int) -> list[Entry]:
        rows = await self._rows(_SQL["earlier"], entry_id, before, limit)
        return [entry_from_history(row) for row in rows]

    async def about(self, subjects: Collection[str], limit: int) -> list[Entry]:
        rows = await self._rows(_SQL["about"], list(subjects), limit)
        return [entry_from_history(row) for row in rows]

    async def remove(self, entry_id: str, versions: Collection[int]) -> None:
        if self._buffer.touches_entries:
            await self._buffer.flush()
        tenant = self._session.bound_tenant
        await self._session.change(_SQL["remove_versions"], tenant, entry_id, list(versions))
