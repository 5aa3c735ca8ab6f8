"""Both sides of a copy over the database of a data directory.

The statements are generated from the tables in `storage/transfer.py`, so that columns are listed
only once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import apsw

from memorywall.records.errors import ConfigurationError
from memorywall.storage.rows import decode_edges, decode_names
from memorywall.storage.sqlite.connection import (
    FileLock,
    check_ours,
    connect,
    create_file,
    data_version,
    lock,
    migrate,
    migrations,
    schema_version,
)
from memorywall.storage.sqlite.transaction import translated_errors
from memorywall.storage.statements import load
from memorywall.storage.transfer import (
    EMBEDDED,
    ENTRIES,
    NOT_CHAINED,
    PAGE,
    TENANTS,
    CopyRowDigest,
    Key,
    Row,
    Table,
    TableDigest,
    digest_row,
)

_SQL = load("sqlite", "entries")
_RECALL = load("sqlite", "recall")
_LINKS = load("sqlite", "links")
_JOBS = load("sqlite", "scheduled_jobs")
_UNCOUNT = "DELETE FROM usage WHERE tenant = ?1 AND owner = ?2 AND tier = ?3 AND entries = 0"
_LOG_LIMIT = 64 * 1024 * 1024
"""The number of bytes after which the write-ahead log is moved into the database."""
_Removed = tuple[int, str, str, str, str, int, int, int]
_TENANT, _ID, _TIER, _OWNER = (ENTRIES.indexes[name] for name in ("tenant", "id", "tier", "owner"))
_TAGS, _SIZE, _PINNED = (ENTRIES.indexes[name] for name in ("tags", "size", "pinned"))
_EDGES, _LISTED = (ENTRIES.indexes[name] for name in ("edges", "listed"))
_SAME_NAME = (
    "tier = ?2 AND owner = ?3 AND namespace = ?4 AND key = ?5"
    " AND coalesce(session_id, '') = coalesce(?6, '')"
)


class SqliteCopySide:
    """`transfer.Readable` over one connection, which is closed with it."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    async def tenants(self) -> list[str]:
        rows = self._connection.execute("SELECT name FROM tenants ORDER BY name")
        return [str(row[0]) for row in rows]

    async def count(self, table: Table, tenant: str) -> int:
        return self._number(
            f"SELECT count(*) FROM {table.name} WHERE {table.tenant} = ?1", (tenant,)
        )

    async def lines(self, table: Table, tenant: str, after: Key | None) -> list[CopyRowDigest]:
        if not table.key and after is not None:
            return []
        statement = f"SELECT {_columns(table)} FROM {table.name} WHERE {table.tenant} = ?"
        if after:
            statement += f" AND ({', '.join(table.key)}) > ({_holes(len(table.key))})"
        if table.key:
            statement += f" ORDER BY {', '.join(table.key)} LIMIT {PAGE}"
        rows = self._connection.execute(statement, (tenant, *(after or ())))
        return [digest_row(table, row) for row in rows]

    async def rows(self, table: Table, tenant: str, keys: Sequence[Key]) -> list[Row]:
        statement = (
            f"SELECT {_columns(table)} FROM {table.name} WHERE {_equal((table.tenant, *table.key))}"
        )
        found = (self._connection.execute(statement, (tenant, *key)).fetchone() for key in keys)
        return [row for row in found if row is not None]

    async def end_of_log(self, tenant: str) -> int:
        return self._number("SELECT max(seq) FROM events WHERE tenant = ?1", (tenant,))

    def _number(self, statement: str, bindings: tuple[str, ...]) -> int:
        row = self._connection.execute(statement, bindings).fetchone()
        return int(row[0] or 0) if row else 0

    async def close(self) -> None:
        self._connection.close()


class SqliteCopySource(SqliteCopySide):
    """`transfer.Origin`: a database, even beside a running server, or a backup."""

    def __init__(
        self, connection: apsw.Connection, let_go: Callable[[], object] = lambda: None
    ) -> None:
        super().__init__(connection)
        self._let_go = let_go
        connection.execute("BEGIN; SELECT count(*) FROM tenants").fetchall()
        self._version = data_version(connection)

    @classmethod
    def open(cls, database: Path) -> SqliteCopySource:
        """Opens the database of a data directory. Raises ConfigurationError if it is missing or of
        another version."""
        if not database.exists():
            raise ConfigurationError(f"there is no database at {database}")
        connection = connect(database, read_only=True)
        try:
            check_ours(connection, empty_too=False)
            known, present = migrations()[-1].number, schema_version(connection)
            if present != known:
                raise ConfigurationError(
                    f"{database} has schema {present}, this memorywall knows {known};"
                    " start the server of this version on it once, or use the version that wrote it"
                )
            if connection.execute("SELECT 1 FROM legacy_events LIMIT 1").fetchone() is not None:
                raise ConfigurationError(NOT_CHAINED)
            return cls(connection)
        except BaseException:
            connection.close()
            raise

    async def changed(self) -> bool:
        self._end()
        return data_version(self._connection) != self._version

    async def close(self) -> None:
        self._end()
        self._connection.close()
        self._let_go()

    def _end(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("COMMIT")


class SqliteCopyTarget(SqliteCopySide):
    """`transfer.Target`: the database of a data directory, with the server's lock."""

    is_unfinished = False

    def __init__(self, connection: apsw.Connection, held: FileLock | None) -> None:
        super().__init__(connection)
        self._held = held
        self._written = 0

    @classmethod
    def open(cls, database: Path) -> SqliteCopyTarget:
        """Opens a database, and creates and migrates it if necessary. Raises StoreLockedError if a
        server has it open."""
        create_file(database)
        held = lock(database)
        try:
            connection = connect(database)
            try:
                migrate(connection)
                return cls(connection, held)
            except BaseException:
                connection.close()
                raise
        except BaseException:
            held.release()
            raise

    async def apply(
        self, table: Table, tenant: str, put: Sequence[Row], remove: Sequence[Key]
    ) -> None:
        with translated_errors():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                if table is ENTRIES:
                    self._apply_entries(tenant, put, remove)
                else:
                    self._apply_rows(table, tenant, put, remove)
                if table in EMBEDDED:
                    self._connection.execute(_RECALL["begin_again"], (tenant,))
                    self._connection.execute(_RECALL["remove_all_segments"], (tenant,))
                    self._connection.execute(_JOBS["forget"], (tenant,))
                elif table is TENANTS and remove:
                    self._connection.execute(_RECALL["forget_models"], (tenant,))
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            self._written += sum(_size(row) for row in put) + len(remove)
            if self._written > _LOG_LIMIT:
                self._cut_log()

    async def finish(self, tables: Sequence[TableDigest]) -> None:
        self._cut_log()

    async def close(self) -> None:
        # Removed data leaves the write-ahead log here at the latest.
        with suppress(apsw.Error):
            self._cut_log()
        self._connection.close()
        if self._held is not None:
            self._held.release()

    def _cut_log(self) -> None:
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._written = 0

    def _apply_rows(
        self, table: Table, tenant: str, put: Sequence[Row], remove: Sequence[Key]
    ) -> None:
        many = self._connection.executemany
        by_key = f"DELETE FROM {table.name} WHERE {_equal((table.tenant, *table.key))}"
        many(by_key, [(tenant, *key) for key in remove])
        many(by_key, [(tenant, *table.key_of(row)) for row in put])
        for other in table.others:
            places = [table.indexes[name] for name in other]
            many(
                f"DELETE FROM {table.name} WHERE {_equal((table.tenant, *other))}",
                [(tenant, *(row[place] for place in places)) for row in put],
            )
        many(_insert(table), put)

    def _apply_entries(self, tenant: str, put: Sequence[Row], remove: Sequence[Key]) -> None:
        for (entry_id,) in remove:
            self._remove_entries("id = ?2", (tenant, entry_id))
        name = [ENTRIES.indexes[column] for column in ENTRIES.others[0]]
        in_the_way = _SAME_NAME
        for row in put:
            self._remove_entries("id = ?2", (tenant, row[_ID]))
            self._remove_entries(in_the_way, (tenant, *(row[place] for place in name)))
        insert = _insert(ENTRIES) + " RETURNING number"
        for row in put:
            inserted = self._connection.execute(insert, row).fetchone()
            assert inserted is not None  # noqa: S101 - what could be in its way has been removed
            self._derive(row, inserted[0])

    def _derive(self, row: Row, number: int) -> None:
        """Writes the rows that are derived from an inserted entry."""
        execute = self._connection.execute
        for tag in decode_names(row[_TAGS]):
            tagged = execute(_SQL["count_tag"], (row[_TENANT], row[_OWNER], tag)).fetchone()
            assert tagged is not None  # noqa: S101 - the statement always answers with one row
            execute(_SQL["add_tag"], (row[_TENANT], tagged[0], number))
        for edge in decode_edges(row[_EDGES]):
            execute(_LINKS["add_edge"], (row[_TENANT], *edge, row[_ID]))
        if row[_LISTED]:
            owned = (row[_TENANT], row[_OWNER], row[_TIER])
            execute(_SQL["add_usage"], (*owned, 1, row[_SIZE], row[_PINNED]))

    def _remove_entries(self, condition: str, bindings: tuple[Any, ...]) -> None:
        """Deletes the entry, if any, that meets a condition, and its derived rows."""
        execute = self._connection.execute
        removed = execute(
            f"DELETE FROM entries WHERE tenant = ?1 AND {condition}"
            " RETURNING number, id, owner, tier, tags, size, pinned, listed",
            bindings,
        ).fetchall()
        tenant = bindings[0]
        for found in removed:
            number, entry_id, owner, tier, tags, size, pinned, listed = cast(_Removed, found)
            execute(_RECALL["remove_vectors"], (tenant, entry_id))
            execute(_LINKS["remove_edges"], (tenant, entry_id))
            for tag in decode_names(tags):
                row = execute(_SQL["uncount_tag"], (tenant, owner, tag)).fetchone()
                assert row is not None  # noqa: S101 - the entry has the tag, so it is counted
                execute(_SQL["remove_tag"], (tenant, row[0], number))
                if row[1] == 0:
                    execute(_SQL["forget_tag"], (tenant, row[0]))
            if listed:
                execute(_SQL["add_usage"], (tenant, owner, tier, -1, -size, -pinned))
                execute(_UNCOUNT, (tenant, owner, tier))


def _columns(table: Table) -> str:
    return ", ".join(
        f"CAST({name} AS BLOB)" if name in table.raw_texts else name for name in table.columns
    )


def _insert(table: Table) -> str:
    cells = ", ".join(
        "CAST(? AS TEXT)" if name in table.raw_texts else "?" for name in table.columns
    )
    return f"INSERT INTO {table.name} ({', '.join(table.columns)}) VALUES ({cells})"


def _equal(columns: Sequence[str], first: int = 1) -> str:
    return " AND ".join(f"{name} = ?{place}" for place, name in enumerate(columns, first))


def _holes(count: int) -> str:
    return ", ".join("?" * count)


def _size(row: Row) -> int:
    return sum(len(cell) for cell in row if isinstance(cell, str | bytes))
