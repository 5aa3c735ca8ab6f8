"""Row access in SQLite: one connection, and the tenant that it is bound to."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import apsw
import msgspec

from memorywall.storage.sql.record_spec import Row
from memorywall.storage.sql.record_statements import Dialect


class Binding:
    """The tenant of the running transaction.

    All repositories of a connection share one binding, because transactions are serial. A
    transaction of the registry is bound to no tenant.

    removals: the number of rows with content that were removed or replaced through this connection;
        their bytes are still in the write-ahead log
    """

    __slots__ = ("bound", "removals")

    def __init__(self) -> None:
        self.bound: str | None = None
        self.removals = 0

    @property
    def tenant(self) -> str:
        """The bound tenant. Raises LookupError in a transaction of the registry."""
        if self.bound is None:
            raise LookupError("a transaction over the registry reads no tenant's rows")
        return self.bound


class SqliteRowAccess:
    """`RowAccess` on one connection. Its methods never suspend."""

    dialect: Dialect = "sqlite"

    def __init__(self, connection: apsw.Connection, binding: Binding) -> None:
        self._execute = connection.execute
        self._executemany = connection.executemany
        self._binding = binding

    @property
    def tenant(self) -> str:
        return self._binding.tenant

    @property
    def bound(self) -> str | None:
        return self._binding.bound

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
        self._binding.removals += 1

    large_rows = rows
