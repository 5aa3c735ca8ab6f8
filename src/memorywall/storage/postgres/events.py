"""The event log in PostgreSQL."""

from __future__ import annotations

import msgspec

from memorywall.records.event import EntryChange, Event
from memorywall.storage.postgres.pending import Pending
from memorywall.storage.postgres.session import Row, Session
from memorywall.storage.rows import change_from_row, event_from_row
from memorywall.storage.statements import load

_SQL = load("postgres", "events")
Events = list[Event]
Rows = list[Row]


class PostgresEvents:
    """`port.Events` within one transaction.

    last: the end of the tenant's log, which only this transaction can move
    """

    def __init__(self, session: Session, pending: Pending, last: int) -> None:
        self._session = session
        self._pending = pending
        self.last = last

    async def append(self, event: Event) -> Event:
        if event.tenant != self._session.tenant:
            raise ValueError("an event belongs to the tenant of its transaction")
        appended = msgspec.structs.replace(event, seq=self.last + 1)
        self._pending.log(appended)
        self.last = appended.seq
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
        return await self._events("list_of_intent", *wanted)

    async def latest(self, tenant: str) -> Event | None:
        found = await self._events("latest", tenant)
        return found[0] if found else None

    async def list_of_entries(self, tenant: str, after: int, limit: int) -> list[EntryChange]:
        rows = await self._rows("list_of_entries", tenant, after, limit)
        return [change_from_row(row) for row in rows]

    async def list(self, tenant: str, stream: str, after: int, limit: int) -> list[Event]:
        return await self._events("list", tenant, stream, after, limit)

    async def _events(self, statement: str, *bindings: str | int | None) -> Events:
        return [event_from_row(row) for row in await self._rows(statement, *bindings)]

    async def _rows(self, statement: str, *bindings: str | int | None) -> Rows:
        if self._pending.touches_events:
            await self._pending.flush()
        return await self._session.rows(_SQL[statement], *bindings)
