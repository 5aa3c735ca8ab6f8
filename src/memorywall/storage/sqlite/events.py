"""The event log in SQLite."""

from __future__ import annotations

import apsw

from memorywall.records.event import EntryChange
from memorywall.records.event_chain import NO_HASH, LogHead, StoredEvent, hash_of
from memorywall.storage.rows import (
    change_from_row,
    content_to_row,
    envelope_to_row,
    stored_event_from_row,
)
from memorywall.storage.sql.events import SqlEventRepository
from memorywall.storage.sqlite.repository import SqliteRowAccess

_MOST_HEADS = 4_096
"""The most tenants of which the end of the log is remembered."""


class SqliteEventRepository(SqlEventRepository):
    """`port.EventRepository` on one connection."""

    def __init__(self, connection: apsw.Connection, rows: SqliteRowAccess) -> None:
        super().__init__(rows)
        self._execute = connection.execute
        self._heads: dict[str, LogHead] = {}

    def forget(self) -> None:
        """To be called when something was undone, and when a transaction begins after which
        another connection may have committed: then the ends of the logs must be read again."""
        self._heads.clear()

    async def head(self) -> LogHead:
        tenant = self._rows.tenant
        head = self._heads.get(tenant)
        if head is None:
            row = self._execute(self._sql["last_envelope"], (tenant,)).fetchone()
            head = LogHead(0, NO_HASH)
            if len(self._heads) >= _MOST_HEADS:
                self._heads.clear()
            if row is not None:
                last = stored_event_from_row(row).envelope
                head = LogHead(last.seq, hash_of(last))
            self._heads[tenant] = head
        return head

    async def append(self, stored: StoredEvent) -> None:
        self._execute(self._sql["append"], envelope_to_row(stored))
        self._execute(self._sql["append_content"], content_to_row(stored))
        envelope = stored.envelope
        self._heads[envelope.tenant] = LogHead(envelope.seq, hash_of(envelope))

    async def list_of_entries(self, after: int, limit: int) -> tuple[list[EntryChange], int]:
        tenant = self._rows.tenant
        rows = self._execute(self._sql["list_of_entries"], (tenant, after, limit))
        changes = [change_from_row(row) for row in rows]
        end = self._execute(self._sql["end_of_log"], (tenant,)).fetchone()
        assert end is not None  # noqa: S101 - an aggregate always has one row
        return changes, end[0]
