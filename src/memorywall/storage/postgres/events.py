"""The event log in PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection

from memorywall.records.event import EntryChange, Event
from memorywall.records.event_chain import (
    NO_HASH,
    LogHead,
    StoredEvent,
    hash_of,
    with_client_names,
)
from memorywall.storage.postgres.session import Row, StatementSession
from memorywall.storage.postgres.write_buffer import WriteBuffer
from memorywall.storage.rows import (
    change_from_row,
    event_from_row,
    legacy_event_from_row,
    stored_event_from_row,
)
from memorywall.storage.statements import load

_SQL = load("postgres", "events")
Events = list[Event]
Rows = list[Row]
Last = tuple[int, bytes | None]
Binding = str | int | None | list[int] | list[str] | list[bytes]


class PostgresEventRepository:
    """`port.EventRepository` within one transaction.

    last: the end of the tenant's log, which only this transaction can change; its hash is None if
        the row in `heads` does not contain it
    """

    def __init__(self, session: StatementSession, buffer: WriteBuffer, last: Last) -> None:
        self._session = session
        self._buffer = buffer
        self.last = last

    async def head(self) -> LogHead:
        seq, hash_ = self.last
        if hash_ is None:
            rows = await self._rows("last_envelope", self._session.bound_tenant)
            seq, hash_ = 0, NO_HASH
            if rows:
                last = stored_event_from_row(rows[0]).envelope
                seq, hash_ = last.seq, hash_of(last)
            self.last = seq, hash_
        return LogHead(seq, hash_)

    async def append(self, stored: StoredEvent) -> None:
        envelope = stored.envelope
        if envelope.tenant != self._session.tenant:
            raise ValueError("an event belongs to the tenant of its transaction")
        self._buffer.log(stored)
        self.last = envelope.seq, hash_of(envelope)

    async def seqs_of_entries(self, entry_ids: Collection[str]) -> list[int]:
        tenant = self._session.bound_tenant
        return [row[0] for row in await self._rows("of_entries", tenant, [*entry_ids])]

    async def containing(
        self, texts: Collection[bytes], after: int, limit: int, kind: str | None = None
    ) -> Events:
        tenant = self._session.bound_tenant
        return await self._events("containing", tenant, [*texts], after, limit, kind)

    async def erase_content(self, seqs: Collection[int]) -> int:
        tenant, chosen = self._session.bound_tenant, list(seqs)
        found = await self._rows("contents", tenant, chosen)
        named = with_client_names((row[0], row[1]) for row in found)
        await self._session.change(_SQL["erase_content"], tenant, chosen)
        await self._session.change(_SQL["clear_columns"], tenant, chosen, *named)
        return len(found)

    async def legacy(self, limit: int) -> Events:
        rows = await self._session.rows(_SQL["legacy"], self._session.bound_tenant, limit)
        return [legacy_event_from_row(row) for row in rows]

    async def drop_legacy(self, through: int) -> None:
        await self._session.change(_SQL["drop_legacy"], self._session.bound_tenant, through)

    async def list_of_intent(
        self,
        intent_id: str,
        after: int,
        limit: int,
        *,
        kind: str | None = None,
        since: str | None = None,
    ) -> list[Event]:
        wanted = (self._session.bound_tenant, intent_id, after, limit, kind and str(kind), since)
        return await self._events("list_of_intent", *wanted)

    async def latest(self) -> Event | None:
        found = await self._events("latest", self._session.bound_tenant)
        return found[0] if found else None

    async def list_from(self, seq: int, limit: int) -> Events:
        return await self._events("list_from", self._session.bound_tenant, seq, limit)

    async def list_of_entries(self, after: int, limit: int) -> tuple[list[EntryChange], int]:
        rows = await self._rows("list_of_entries", self._session.bound_tenant, after, limit)
        # The first column is the end of the log, which is in a row without a change too.
        return [change_from_row(row[1:]) for row in rows if row[1] is not None], rows[0][0]

    async def list(self, stream: str, after: int, limit: int) -> list[Event]:
        return await self._events("list", self._session.bound_tenant, stream, after, limit)

    async def _events(self, statement: str, *bindings: Binding) -> Events:
        return [event_from_row(row) for row in await self._rows(statement, *bindings)]

    async def _rows(self, statement: str, *bindings: Binding) -> Rows:
        if self._buffer.touches_events:
            await self._buffer.flush()
        return await self._session.rows(_SQL[statement], *bindings)
