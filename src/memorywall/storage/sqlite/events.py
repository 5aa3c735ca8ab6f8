"""The event log in SQLite."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import cast

import apsw
import msgspec

from memorywall.records.event import EntryChange, Event
from memorywall.records.event_chain import NO_HASH, LogHead, StoredEvent, hash_of, with_client_names
from memorywall.storage.rows import (
    change_from_row,
    content_to_row,
    encode_names,
    envelope_to_row,
    event_from_row,
    legacy_event_from_row,
    stored_event_from_row,
)
from memorywall.storage.sqlite.repository import Binding, SqliteRepository
from memorywall.storage.statements import load

_SQL = load("sqlite", "events")
Events = list[Event]
_MOST_HEADS = 4_096
"""The most tenants of which the end of the log is remembered."""


class SqliteEventRepository(SqliteRepository):
    """`port.Events` on one connection."""

    def __init__(self, connection: apsw.Connection, binding: Binding) -> None:
        super().__init__(connection, binding)
        self._heads: dict[str, LogHead] = {}

    def forget(self) -> None:
        """To be called when something was undone, and when a transaction begins after which
        another connection may have committed: then the ends of the logs must be read again."""
        self._heads.clear()

    async def head(self) -> LogHead:
        tenant = self._tenant
        head = self._heads.get(tenant)
        if head is None:
            row = self._execute(_SQL["last_envelope"], (tenant,)).fetchone()
            head = LogHead(0, NO_HASH)
            if len(self._heads) >= _MOST_HEADS:
                self._heads.clear()
            if row is not None:
                last = stored_event_from_row(row).envelope
                head = LogHead(last.seq, hash_of(last))
            self._heads[tenant] = head
        return head

    async def append(self, stored: StoredEvent) -> None:
        self._execute(_SQL["append"], envelope_to_row(stored))
        self._execute(_SQL["append_content"], content_to_row(stored))
        envelope = stored.envelope
        self._heads[envelope.tenant] = LogHead(envelope.seq, hash_of(envelope))

    async def seqs_of_entries(self, entry_ids: Collection[str]) -> list[int]:
        chosen = encode_names(list(entry_ids))
        return [row[0] for row in self._execute(_SQL["of_entries"], (self._tenant, chosen))]

    async def containing(
        self, texts: Collection[bytes], after: int, limit: int, kind: str | None = None
    ) -> Events:
        wanted = encode_names([text.decode() for text in texts])
        bindings = (self._tenant, wanted, after, limit, kind)
        return [event_from_row(row) for row in self._execute(_SQL["containing"], bindings)]

    async def erase_content(self, seqs: Collection[int]) -> int:
        tenant = self._tenant
        chosen = _numbers(seqs)
        found = self._execute(_SQL["contents"], (tenant, chosen)).fetchall()
        tasks, intents = with_client_names(cast(list[tuple[int, bytes]], found))
        self._execute(_SQL["erase_content"], (tenant, chosen))
        columns = (tenant, chosen, _numbers(tasks), _numbers(intents))
        self._execute(_SQL["clear_columns"], columns)
        if found:
            self.count_removal()
        return len(found)

    async def legacy(self, limit: int) -> Events:
        rows = self._execute(_SQL["legacy"], (self._tenant, limit))
        return [legacy_event_from_row(row) for row in rows]

    async def drop_legacy(self, through: int) -> None:
        self._execute(_SQL["drop_legacy"], (self._tenant, through))
        self.count_removal()

    async def list_of_intent(
        self,
        intent_id: str,
        after: int,
        limit: int,
        *,
        kind: str | None = None,
        since: str | None = None,
    ) -> Events:
        wanted = (self._tenant, intent_id, after, limit, kind and str(kind), since)
        return [event_from_row(row) for row in self._execute(_SQL["list_of_intent"], wanted)]

    async def latest(self) -> Event | None:
        row = self._execute(_SQL["latest"], (self._tenant,)).fetchone()
        return None if row is None else event_from_row(row)

    async def list_from(self, seq: int, limit: int) -> Events:
        rows = self._execute(_SQL["list_from"], (self._tenant, seq, limit))
        return [event_from_row(row) for row in rows]

    async def list_of_entries(self, after: int, limit: int) -> tuple[list[EntryChange], int]:
        rows = self._execute(_SQL["list_of_entries"], (self._tenant, after, limit))
        changes = [change_from_row(row) for row in rows]
        end = self._execute(_SQL["end_of_log"], (self._tenant,)).fetchone()
        assert end is not None  # noqa: S101 - an aggregate always has one row
        return changes, end[0]

    async def list(self, stream: str, after: int, limit: int) -> Events:
        rows = self._execute(_SQL["list"], (self._tenant, stream, after, limit))
        return [event_from_row(row) for row in rows]


def _numbers(seqs: Iterable[int]) -> str:
    return msgspec.json.encode(list(seqs)).decode()
