"""Long reads for `verify`, with their own connection and snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import apsw

from memorywall.records.entry import Entry
from memorywall.records.event import Event
from memorywall.records.event_chain import StoredEvent
from memorywall.records.idempotency import DataKey
from memorywall.storage.data_keys import data_key_from_row
from memorywall.storage.rows import entry_from_row, event_from_row, stored_event_from_row
from memorywall.storage.sql.record_statements import all_checks
from memorywall.storage.sqlite.connection import check_ours, connect
from memorywall.storage.statements import load

_COLUMNS = load("sqlite", "entries")["columns"]
_EVENTS = load("sqlite", "events")
_DATA_KEYS = load("sqlite", "data_keys")["of_tenant"]


class SqliteConsistencyReader:
    """`consistency.ConsistencyReader`; the snapshot is taken at creation.

    database: a file, or an open connection, which is closed with the reader
    """

    def __init__(self, database: Path | apsw.Connection) -> None:
        if isinstance(database, Path):
            database = connect(database, read_only=True)
        self._connection = database
        check_ours(self._connection, empty_too=False)
        self._connection.execute("BEGIN; SELECT count(*) FROM tenants").fetchall()

    def tenants(self) -> list[str]:
        return [str(row[0]) for row in self._connection.execute("SELECT name FROM tenants")]

    def tenants_of_rows(self) -> list[str]:
        rows = self._connection.execute(
            "SELECT tenant FROM entries UNION SELECT tenant FROM events"
        )
        return [str(row[0]) for row in rows]

    def entries(self, tenant: str) -> Iterator[Entry]:
        rows = self._connection.execute(
            f"SELECT {_COLUMNS} FROM entries WHERE tenant = ? ORDER BY id", (tenant,)
        )
        return map(entry_from_row, rows)

    def events(self, tenant: str) -> Iterator[Event]:
        return map(event_from_row, self._connection.execute(_EVENTS["by_entry"], (tenant,)))

    def log(self, tenant: str) -> Iterator[StoredEvent]:
        return map(stored_event_from_row, self._connection.execute(_EVENTS["log"], (tenant,)))

    def data_keys(self, tenant: str) -> list[DataKey]:
        found = map(data_key_from_row, self._connection.execute(_DATA_KEYS, (tenant,)))
        return [data_key for data_key in found if data_key is not None]

    def sizes(self) -> tuple[int, int]:
        execute = self._connection.execute
        entries = execute("SELECT count(*) FROM entries").fetchone()
        events = execute("SELECT count(*) FROM events").fetchone()
        return (entries[0] if entries else 0, events[0] if events else 0)

    def index_problems(self) -> Iterable[str]:
        for (message,) in self._connection.execute("PRAGMA integrity_check"):
            if message != "ok":
                yield f"the database file: {message}"
        for name, statement in all_checks("sqlite").items():
            for row in self._connection.execute(statement):
                yield f"{name.replace('_', ' ')}: {' '.join(str(part) for part in row)}"

    def close(self) -> None:
        self._connection.close()
