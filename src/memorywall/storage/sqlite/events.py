"""The event log in SQLite."""

from __future__ import annotations

import apsw
import msgspec

from memorywall.records.event import Event
from memorywall.storage.sqlite.rows import event_from_row, event_to_row
from memorywall.storage.sqlite.statements import load

_SQL = load("events")


class SqliteEvents:
    """`port.Events` on one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute = connection.execute

    async def append(self, event: Event) -> Event:
        row = self._execute(_SQL["append"], event_to_row(event)).fetchone()
        assert row is not None  # noqa: S101 - the statement always inserts one row
        return msgspec.structs.replace(event, seq=row[0])

    async def list(self, tenant: str, stream: str, after: int, limit: int) -> list[Event]:
        rows = self._execute(_SQL["list"], (tenant, stream, after, limit))
        return [event_from_row(row) for row in rows]

    async def latest(self, tenant: str) -> Event | None:
        row = self._execute(_SQL["latest"], (tenant,)).fetchone()
        return None if row is None else event_from_row(row)
