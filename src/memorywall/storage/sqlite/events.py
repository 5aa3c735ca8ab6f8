"""The event log in SQLite."""

from __future__ import annotations

import apsw
import msgspec

from memorywall.records.event import EntryChange, Event
from memorywall.storage.rows import change_from_row, event_from_row, event_to_row
from memorywall.storage.statements import load

_SQL = load("sqlite", "events")


class SqliteEvents:
    """`port.Events` on one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute = connection.execute
        self._last: dict[str, int] = {}

    def forget(self) -> None:
        """To be called when a transaction begins or is undone: what is remembered of the ends of
        the logs holds only within one."""
        self._last.clear()

    async def append(self, event: Event) -> Event:
        last = self._last.get(event.tenant)
        if last is None:
            row = self._execute(_SQL["last_seq"], (event.tenant,)).fetchone()
            last = row[0] or 0 if row else 0
        appended = msgspec.structs.replace(event, seq=last + 1)
        self._execute(_SQL["append"], event_to_row(appended))
        self._last[event.tenant] = appended.seq
        return appended

    async def list_of_intent(
        self,
        tenant: str,
        intent_id: str,
        after: int,
        limit: int,
        *,
        kind: str | None = None,
        since: str | None = None,
    ) -> list[Event]:
        wanted = (tenant, intent_id, after, limit, kind and str(kind), since)
        return [event_from_row(row) for row in self._execute(_SQL["list_of_intent"], wanted)]

    async def latest(self, tenant: str) -> Event | None:
        row = self._execute(_SQL["latest"], (tenant,)).fetchone()
        return None if row is None else event_from_row(row)

    async def list_of_entries(self, tenant: str, after: int, limit: int) -> list[EntryChange]:
        rows = self._execute(_SQL["list_of_entries"], (tenant, after, limit))
        return [change_from_row(row) for row in rows]

    async def list(self, tenant: str, stream: str, after: int, limit: int) -> list[Event]:
        rows = self._execute(_SQL["list"], (tenant, stream, after, limit))
        return [event_from_row(row) for row in rows]
