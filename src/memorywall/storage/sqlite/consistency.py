"""Long reads for `verify`, with their own connection and snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import apsw

from memorywall.records.attachment import Attachment
from memorywall.records.entry import Entry
from memorywall.records.event import Event
from memorywall.records.event_chain import StoredEvent
from memorywall.records.feature_errors import StoreDamagedError
from memorywall.records.idempotency import DataKey
from memorywall.records.recall import StoredSegment
from memorywall.storage.consistency import UNREADABLE
from memorywall.storage.data_keys import data_key_from_row
from memorywall.storage.derived_rows import entry_from_history
from memorywall.storage.rows import entry_from_row, event_from_row, stored_event_from_row
from memorywall.storage.sql.record_statements import all_checks
from memorywall.storage.sql.record_table import ATTACHMENTS
from memorywall.storage.sqlite.connection import check_ours, connect
from memorywall.storage.statements import load

Converted = TypeVar("Converted")

_COLUMNS = load("sqlite", "entries")["columns"]
_EVENTS = load("sqlite", "events")
_HISTORY = load("sqlite", "history")["versions_of_tenant"]
_ATTACHMENTS = load("sqlite", "attachments", shown=", ".join(ATTACHMENTS.shown))
_DATA_KEYS = load("sqlite", "data_keys")["of_tenant"]
_SEGMENTS = load("sqlite", "recall")["every_segment"]


class SqliteConsistencyReader:
    """`consistency.ConsistencyReader`; the snapshot is taken at creation.

    database: a file, or an open connection, which is closed with the reader
    """

    def __init__(self, database: Path | apsw.Connection) -> None:
        if isinstance(database, Path):
            database = connect(database, read_only=True)
        self._connection = database
        check_ours(self._connection, empty_too=False)
        try:
            self._connection.execute("BEGIN; SELECT count(*) FROM tenants").fetchall()
        except apsw.Error as error:
            self._connection.close()
            raise StoreDamagedError(f"the database cannot be read: {error}") from error

    def file_problems(self) -> Iterable[str]:
        try:
            for (message,) in self._connection.execute("PRAGMA integrity_check"):
                if message != "ok":
                    yield f"the database file: {message}"
        except apsw.Error as error:
            yield f"the database file: {error}"

    def tenants(self) -> list[str]:
        return list(self._read(_first, "SELECT name FROM tenants"))

    def tenants_of_rows(self) -> list[str]:
        statement = "SELECT tenant FROM entries UNION SELECT tenant FROM events"
        return list(self._read(_first, statement))

    def entries(self, tenant: str) -> Iterator[Entry]:
        statement = f"SELECT {_COLUMNS} FROM entries WHERE tenant = ? ORDER BY id"
        return self._read(entry_from_row, statement, tenant)

    def versions(self, tenant: str) -> Iterator[Entry]:
        return self._read(entry_from_history, _HISTORY, tenant)

    def attachments(self, tenant: str) -> Iterator[tuple[Attachment, list[bytes]]]:
        for one in self._read(ATTACHMENTS.from_row, _ATTACHMENTS["every"], tenant):
            yield one, list(self._read(_bytes, _ATTACHMENTS["chunks"], tenant, one.id))

    def events(self, tenant: str) -> Iterator[Event]:
        return self._read(event_from_row, _EVENTS["by_entry"], tenant)

    def log(self, tenant: str) -> Iterator[StoredEvent]:
        return self._read(stored_event_from_row, _EVENTS["log"], tenant)

    def data_keys(self, tenant: str) -> list[DataKey]:
        found = self._read(data_key_from_row, _DATA_KEYS, tenant)
        return [data_key for data_key in found if data_key is not None]

    def segments(self, tenant: str) -> Iterator[StoredSegment]:
        return self._read(StoredSegment._make, _SEGMENTS, tenant)

    def sizes(self) -> tuple[int, int]:
        statement = "SELECT (SELECT count(*) FROM entries), (SELECT count(*) FROM events)"
        (found,) = self._read(_pair, statement)
        return found

    def index_problems(self) -> Iterable[str]:
        for name, statement in all_checks("sqlite").items():
            for parts in self._read(_text, statement):
                yield f"{name.replace('_', ' ')}: {parts}"

    def close(self) -> None:
        self._connection.close()

    def _read(
        self, convert: Callable[[Any], Converted], statement: str, *bindings: str
    ) -> Iterator[Converted]:
        """Yields the converted rows of a statement."""
        try:
            for row in self._connection.execute(statement, bindings):
                yield convert(row)
        except (apsw.Error, *UNREADABLE) as error:
            raise StoreDamagedError(
                f"the database cannot be read further ({type(error).__name__})"
            ) from error


def _first(row: tuple[Any, ...]) -> str:
    return str(row[0])


def _bytes(row: tuple[Any, ...]) -> bytes:
    return bytes(row[0])


def _pair(row: tuple[Any, ...]) -> tuple[int, int]:
    return int(row[0]), int(row[1])


def _text(row: tuple[Any, ...]) -> str:
    return " ".join(str(part) for part in row)
