"""The event log."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from memorywall.records.event import Event
from memorywall.records.event_chain import with_client_names
from memorywall.storage.rows import decode_rows, event_from_row, legacy_event_from_row
from memorywall.storage.sql.access import RowAccess
from memorywall.storage.statements import load

Events = list[Event]


class SqlEventRepository:
    """The part of `port.EventRepository` that both databases share, over rows that are read after
    all writes of events.

    The methods `head` and `append`, which every write of an entry calls, and `list_of_entries`,
    which followers call all the time, have the shortest form for each database.
    """

    def __init__(self, rows: RowAccess) -> None:
        self._rows = rows
        self._sql = load(rows.dialect, "events")

    async def seqs_of_entries(self, entry_ids: Collection[str]) -> list[int]:
        bindings = (self._rows.tenant, self._rows.names(entry_ids))
        return [row[0] for row in await self._rows.rows(self._sql["of_entries"], *bindings)]

    async def containing(
        self, texts: Collection[bytes], after: int, limit: int, kind: str | None = None
    ) -> Events:
        return await self._list("containing", self._texts(texts), after, limit, kind)

    async def list_forgotten(self, texts: Collection[bytes], since: str) -> Events:
        return await self._list("list_forgotten", self._texts(texts), since)

    async def erase_content(self, seqs: Collection[int]) -> int:
        place = (self._rows.tenant, self._rows.names(seqs))
        found = await self._rows.rows(self._sql["contents"], *place)
        named = with_client_names((row[0], row[1]) for row in found)
        await self._rows.change(self._sql["erase_content"], *place)
        await self._rows.change(self._sql["clear_columns"], *place, *map(self._rows.names, named))
        if found:
            self._rows.count_removal()
        return len(found)

    async def legacy(self, limit: int) -> Events:
        rows = await self._rows.rows(self._sql["legacy"], self._rows.tenant, limit)
        return [legacy_event_from_row(row) for row in rows]

    async def drop_legacy(self, through: int) -> None:
        await self._rows.change(self._sql["drop_legacy"], self._rows.tenant, through)
        self._rows.count_removal()

    async def list_of_intent(
        self,
        intent_id: str,
        after: int,
        limit: int,
        *,
        kind: str | None = None,
        since: str | None = None,
    ) -> Events:
        wanted = (intent_id, after, limit, kind and str(kind), since)
        return await self._list("list_of_intent", *wanted)

    async def latest(self) -> Event | None:
        found = await self._list("latest")
        return found[0] if found else None

    async def list_from(self, seq: int, limit: int) -> Events:
        return await self._list("list_from", seq, limit)

    def _texts(self, texts: Collection[bytes]) -> Any:
        return self._rows.names([text.decode() for text in texts])

    async def _list(self, statement: str, *bindings: Any) -> Events:
        rows = await self._rows.rows(self._sql[statement], self._rows.tenant, *bindings)
        return await decode_rows(self._rows, rows, event_from_row)

    async def list(self, stream: str, after: int, limit: int) -> Events:
        return await self._list("list", stream, after, limit)
