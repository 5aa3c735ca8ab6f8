"""Row access in SQLite: one connection, and the tenant that it is bound to."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import apsw
import msgspec

from memorywall.storage.sql.record_spec import Row
from memorywall.storage.sql.record_statements import Dialect


class SqliteRowAccess:
    """`RowAccess` on one connection. Its methods never suspend.

    All repositories of a connection share it, because transactions are serial.

    bound: the tenant of the running transaction; None in a transaction of the registry
    removals: the number of rows with content that were removed or replaced through this connection;
        their bytes are still in the write-ahead log
    """

    dialect: Dialect = "sqlite"

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute = connection.execute
        self._executemany = connection.executemany
        self.bound: str | None = None
        self.removals = 0

    @property
    def tenant(self) -> str:
        if self.bound is None:
            raise LookupError("a transaction over the registry reads no tenant's rows")
        return self.bound

    async def rows(self, statement: str, *bindings: Any) -> Sequence[Row]:
        return self._execute(statement, bindings).fetchall()

    async def row(self, statement: str, *bindings: Any) -> Row | None:
        return self._execute(statement, bindings).fetchone()

    async def change(self, statement: str, *bindings: Any) -> Sequence[Row]:
        return self._execute(statement, bindings).fetchall()

    async def change_each(
        self, statement: str, shared: Sequence[Any], rows: Sequence[Sequence[Any]]
    ) -> None:
        self._executemany(statement, [(*shared, *row) for row in rows])

    def names(self, names: Collection[str] | Collection[int]) -> str:
        return msgspec.json.encode(tuple(names)).decode()

    def numbers_by_name(self, numbers: Mapping[str, int]) -> tuple[str]:
        return (msgspec.json.encode(numbers).decode(),)

    def count_removal(self) -> None:
        """Records that content was removed or replaced, whose bytes must leave the files."""
        self.removals += 1

    large_rows = rows
