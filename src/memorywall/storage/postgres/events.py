"""The event log in PostgreSQL."""

from __future__ import annotations

from memorywall.records.event import EntryChange
from memorywall.records.event_chain import NO_HASH, LogHead, StoredEvent, hash_of
from memorywall.storage.postgres.session import StatementSession
from memorywall.storage.postgres.write_buffer import FlushingRowAccess, WriteBuffer
from memorywall.storage.rows import change_from_row, stored_event_from_row
from memorywall.storage.sql.events import SqlEventRepository

Last = tuple[int, bytes | None]


class PostgresEventRepository(SqlEventRepository):
    """`port.EventRepository` within one transaction.

    last: the end of the tenant's log, which only this transaction can change; its hash is None if
        the row in `heads` does not contain it
    """

    def __init__(self, session: StatementSession, buffer: WriteBuffer, last: Last) -> None:
        super().__init__(FlushingRowAccess(session, buffer, of_log=True))
        self._session = session
        self._buffer = buffer
        self.last = last

    async def head(self) -> LogHead:
        seq, hash_ = self.last
        if hash_ is None:
            row = await self._rows.row(self._sql["last_envelope"], self._session.bound_tenant)
            seq, hash_ = 0, NO_HASH
            if row is not None:
                last = stored_event_from_row(row).envelope
                seq, hash_ = last.seq, hash_of(last)
            self.last = seq, hash_
        return LogHead(seq, hash_)

    async def append(self, stored: StoredEvent) -> None:
        envelope = stored.envelope
        if envelope.tenant != self._session.tenant:
            raise ValueError("an event belongs to the tenant of its transaction")
        self._buffer.log(stored)
        self.last = envelope.seq, hash_of(envelope)

    async def list_of_entries(self, after: int, limit: int) -> tuple[list[EntryChange], int]:
        bindings = (self._session.bound_tenant, after, limit)
        rows = await self._rows.rows(self._sql["list_of_entries"], *bindings)
        # The first column is the end of the log, which is in a row without a change too.
        return [change_from_row(row[1:]) for row in rows if row[1] is not None], rows[0][0]
