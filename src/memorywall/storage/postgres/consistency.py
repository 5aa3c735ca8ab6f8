"""Long reads for `verify`, with their own connection and snapshot."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from typing import Any, TypeVar

import asyncpg

from memorywall.records.attachment import Attachment
from memorywall.records.entry import Entry
from memorywall.records.errors import ConfigurationError
from memorywall.records.event import Event
from memorywall.records.event_chain import StoredEvent
from memorywall.records.feature_errors import StoreDamagedError
from memorywall.records.idempotency import DataKey
from memorywall.records.recall import StoredSegment
from memorywall.storage.consistency import UNREADABLE
from memorywall.storage.data_keys import data_key_from_row
from memorywall.storage.derived_rows import entry_from_history
from memorywall.storage.postgres.connection import LONG_SETTINGS, begin, quote
from memorywall.storage.postgres.hosts import connect
from memorywall.storage.rows import Row, entry_from_row, event_from_row, stored_event_from_row
from memorywall.storage.sql.record_statements import all_checks
from memorywall.storage.sql.record_table import ATTACHMENTS
from memorywall.storage.statements import load

Record = TypeVar("Record")
Result = TypeVar("Result")

_PAGE = 500
_SQL = load("postgres", "heads")
_COLUMNS = load("postgres", "entries")["columns"]
_ENTRIES = f"SELECT {_COLUMNS} FROM entries WHERE tenant = $1 ORDER BY id"
_EVENTS = load("postgres", "events")
_HISTORY = load("postgres", "history")["versions_of_tenant"]
_ATTACHMENTS = load("postgres", "attachments", shown=", ".join(ATTACHMENTS.shown))
_DATA_KEYS = load("postgres", "data_keys")["of_tenant"]
_SEGMENTS = load("postgres", "recall")["every_segment"]
_SIZES = """
SELECT (SELECT count(*) FROM entries WHERE tenant = $1),
    (SELECT count(*) FROM events WHERE tenant = $1)
"""


class PostgresConsistencyReader:
    """`port.ConsistencyReader`; the snapshot is taken at creation.

    The reader waits for each page synchronously, so the connection has its own event loop.
    """

    def __init__(self, url: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        try:
            self._connection = self._wait(_open(url))
        except (
            OSError,
            TimeoutError,
            asyncpg.PostgresError,
            asyncpg.InterfaceError,
            asyncpg.InternalClientError,
            ValueError,
        ) as error:
            self._stop()
            raise ConfigurationError(
                f"PostgreSQL cannot be read with this URL ({type(error).__name__})"
            ) from error

    def file_problems(self) -> Iterable[str]:
        # PostgreSQL checks its files with programs of its own, which need the server's files.
        return ()

    def tenants(self) -> list[str]:
        return [row[0] for row in self._registry("SELECT name FROM tenants ORDER BY name")]

    def tenants_of_rows(self) -> list[str]:
        # A writer of a tenant locks its row in `heads` first, so a tenant with rows has a row
        # there.
        return [row[0] for row in self._registry("SELECT tenant FROM heads ORDER BY tenant")]

    def entries(self, tenant: str) -> Iterator[Entry]:
        return self._each(tenant, _ENTRIES, entry_from_row)

    def versions(self, tenant: str) -> Iterator[Entry]:
        return self._each(tenant, _HISTORY, entry_from_history)

    def attachments(self, tenant: str) -> Iterator[tuple[Attachment, list[bytes]]]:
        for one in self._each(tenant, _ATTACHMENTS["every"], ATTACHMENTS.from_row):
            chunks = self._rows(tenant, _ATTACHMENTS["chunks"], one.id)
            yield one, [row[0] for row in chunks]

    def events(self, tenant: str) -> Iterator[Event]:
        return self._each(tenant, _EVENTS["by_entry"], event_from_row)

    def log(self, tenant: str) -> Iterator[StoredEvent]:
        return self._each(tenant, _EVENTS["log"], stored_event_from_row)

    def data_keys(self, tenant: str) -> list[DataKey]:
        found = map(data_key_from_row, self._rows(tenant, _DATA_KEYS))
        return [data_key for data_key in found if data_key is not None]

    def segments(self, tenant: str) -> Iterator[StoredSegment]:
        return self._each(tenant, _SEGMENTS, StoredSegment._make)

    def sizes(self) -> tuple[int, int]:
        entries = events = 0
        for tenant in self.tenants_of_rows():
            row = self._rows(tenant, _SIZES)[0]
            entries += row[0]
            events += row[1]
        return entries, events

    def index_problems(self) -> Iterable[str]:
        for tenant in self.tenants_of_rows():
            for name, statement in all_checks("postgres").items():
                for row in self._rows(tenant, statement):
                    parts = " ".join(str(part) for part in (tenant, *row))
                    yield f"{name.replace('_', ' ')}: {parts}"

    def close(self) -> None:
        self._wait(self._connection.close())
        self._stop()

    def _each(
        self, tenant: str, statement: str, record: Callable[[Row], Record]
    ) -> Iterator[Record]:
        self._enter(tenant)
        cursor = self._wait(self._cursor(statement, tenant))
        while rows := self._wait(cursor.fetch(_PAGE)):
            try:
                yield from map(record, rows)
            except UNREADABLE as error:
                raise StoreDamagedError(
                    f"the database cannot be read further ({type(error).__name__})"
                ) from error
            self._enter(tenant)

    async def _cursor(self, statement: str, tenant: str) -> Any:
        return await self._connection.cursor(statement, tenant)

    def _rows(self, tenant: str, statement: str, *bindings: str) -> list[Any]:
        self._enter(tenant)
        return self._wait(self._connection.fetch(statement, tenant, *bindings))

    def _registry(self, statement: str) -> list[Any]:
        return self._wait(self._connection.fetch(statement))

    def _enter(self, tenant: str) -> None:
        """Selects the tenant whose rows are visible from now on."""
        self._wait(self._connection.execute(f"SET LOCAL memorywall.tenant = {quote(tenant)}"))

    def _wait(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _open(url: str) -> asyncpg.Connection:
    connection = await connect(url, timeout=10, server_settings=LONG_SETTINGS)
    try:
        await connection.execute(begin(None, "REPEATABLE READ READ ONLY"))
        await connection.fetch("SELECT name FROM tenants LIMIT 1")
    except BaseException:
        await connection.close()
        raise
    return connection
