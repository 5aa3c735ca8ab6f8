"""All repositories on one connection, and the execution of transaction functions over them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import apsw

from memorywall.records.errors import (
    MemorywallError,
    StorageFullError,
    UnavailableError,
)
from memorywall.storage.port import Result, TransactionFunction
from memorywall.storage.sql.registry import SqlIdentityRepository
from memorywall.storage.sql.transaction import SqlTransaction
from memorywall.storage.sqlite.entries import SqliteEntryRepository
from memorywall.storage.sqlite.events import SqliteEventRepository
from memorywall.storage.sqlite.repository import SqliteRowAccess

_DISK_FULL = frozenset(
    {
        apsw.SQLITE_IOERR_WRITE,
        apsw.SQLITE_IOERR_SHMSIZE,
        apsw.SQLITE_IOERR_FSYNC,
        apsw.SQLITE_IOERR_TRUNCATE,
    }
)
"""Errors by which SQLite reports a quota, a file size limit or a full disk below the memory-mapped
log index."""


class SqliteTransaction(SqlTransaction):
    """`port.Transaction`. The owner of the connection begins and ends it.

    rows: bound to the tenant of the next function, to none for the registry
    """

    def __init__(self, connection: apsw.Connection) -> None:
        self.rows = rows = SqliteRowAccess(connection)
        super().__init__(lambda: rows, rows, rows)
        self.entries = SqliteEntryRepository(connection, rows)
        self.events = SqliteEventRepository(connection, rows)
        self.identities = SqlIdentityRepository(rows)

    async def compute(self, size: int, function: Callable[[], Result]) -> Result:
        """Computes in this thread, which is not the event loop's if the function is long."""
        return function()

    @property
    def removals(self) -> int:
        """Returns the number of removals or replacements whose bytes are still in the files."""
        return self.rows.removals


def run_to_completion(
    script: TransactionFunction[Result], transaction: SqliteTransaction, tenant: str | None
) -> Result:
    """Runs a function, bound to a tenant, to completion in this thread.

    No method of an SQLite transaction waits, so a function that suspends awaits something that is
    not allowed in a transaction.
    """
    transaction.rows.bound = tenant
    running: Coroutine[Any, Any, Result] = script(transaction)
    try:
        running.send(None)
    except StopIteration as finished:
        return finished.value  # type: ignore[no-any-return]
    running.close()
    raise RuntimeError("a transaction script awaited something other than its transaction")


@contextmanager
def translated_errors() -> Iterator[None]:
    """Raises memorywall's errors in the place of those of SQLite."""
    try:
        yield
    except Exception as error:
        raise_translated(error)


def raise_translated(error: Exception) -> NoReturn:
    """Raises memorywall's error for an error of SQLite."""
    explained = translate_error(error)
    if explained is error:
        raise error
    raise explained from error


def translate_error(error: BaseException) -> BaseException:
    """Returns memorywall's error for an error of SQLite."""
    if isinstance(error, MemorywallError):
        return error
    if isinstance(error, apsw.FullError):
        return StorageFullError("the disk is full; nothing was stored, reads go on")
    if isinstance(error, apsw.IOError) and getattr(error, "extendedresult", 0) in _DISK_FULL:
        return StorageFullError("the disk takes no writes; nothing was stored, reads go on")
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return UnavailableError("the database is busy; try again")
    return error
