"""Row access in SQLite: one connection, and the tenant that it is bound to."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from time import thread_time
from typing import Any

import apsw
import msgspec

from memorywall.storage.sql.access import LONGEST_IN_LOOP
from memorywall.storage.sql.record_spec import Row
from memorywall.storage.sql.record_statements import Dialect

_READ_AT_ONCE = 16
"""Rows of some hundred kilobytes each, which take few milliseconds."""


class SqliteRowAccess:
    """`RowAccess` on one connection. Its methods never suspend.

    All repositories of a connection share it, because transactions are serial.

    bound: the tenant of the running transaction; None in a transaction of the registry
    removals: the number of rows with content that were removed or replaced through this connection;
        their bytes are still in the write-ahead log
    latest: the processor time after which a function may no longer use the event loop; None at its
        begin, because the clock costs more than the usual function may: the time is measured from
        the first look. Infinite for functions in a thread.
    """

    dialect: Dialect = "sqlite"

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute = connection.execute
        self._executemany = connection.executemany
        self.bound: str | None = None
        self.removals = 0
        self.latest: float | None = math.inf

    @property
    def tenant(self) -> str:
        if self.bound is None:
            raise LookupError("a transaction over the registry reads no tenant's rows")
        return self.bound

    def is_over(self) -> bool:
        """Returns whether the running function must leave the event loop."""
        if self.latest is None:
            self.latest = thread_time() + LONGEST_IN_LOOP
        return thread_time() > self.latest

    def leave_loop(self) -> None:
        """Raises apsw.InterruptError if the running function must leave the event loop. The store
        then runs it again in a thread."""
        if self.is_over():
            raise apsw.InterruptError("the function takes too long for the event loop")

    async def rows(self, statement: str, *bindings: Any) -> Sequence[Row]:
        cursor = self._execute(statement, bindings)
        rows = part = list(islice(cursor, _READ_AT_ONCE))
        while len(part) == _READ_AT_ONCE:
            self.leave_loop()
            part = list(islice(cursor, _READ_AT_ONCE))
            rows += part
        return rows

    async def give_way(self) -> None:
        """Runs the function again in a thread, where it delays nobody."""
        self.leave_loop()

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
