"""All the nouns on one connection, and how a script is driven over them."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

import apsw

from memorywall.records.errors import (
    MemorywallError,
    StorageFullError,
    UnavailableError,
)
from memorywall.storage.port import Result, Script
from memorywall.storage.sqlite.attachments import SqliteAttachments
from memorywall.storage.sqlite.coordinators import SqliteCoordinators
from memorywall.storage.sqlite.entries import SqliteEntries
from memorywall.storage.sqlite.events import SqliteEvents
from memorywall.storage.sqlite.identities import SqliteIdentities
from memorywall.storage.sqlite.intents import SqliteIntents
from memorywall.storage.sqlite.leases import SqliteLeases
from memorywall.storage.sqlite.namespaces import SqliteNamespaces
from memorywall.storage.sqlite.recall import SqliteRecall
from memorywall.storage.sqlite.replies import SqliteDataKeys, SqliteKeptReplies
from memorywall.storage.sqlite.tasks import SqliteTasks

_NO_ROOM = frozenset(
    {
        apsw.SQLITE_IOERR_WRITE,
        apsw.SQLITE_IOERR_SHMSIZE,
        apsw.SQLITE_IOERR_FSYNC,
        apsw.SQLITE_IOERR_TRUNCATE,
    }
)
"""How a quota, a limit on a file's size or a full disk below the memory-mapped log index show."""


class SqliteTransaction:
    """`port.Transaction`; beginning and ending it is the business of who owns the connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.entries = SqliteEntries(connection)
        self.events = SqliteEvents(connection)
        self.namespaces = SqliteNamespaces(connection)
        self.identities = SqliteIdentities(connection)
        self.replies = SqliteKeptReplies(connection)
        self.data_keys = SqliteDataKeys(connection)
        self.leases = SqliteLeases(connection)
        self.intents = SqliteIntents(connection)
        self.tasks = SqliteTasks(connection)
        self.coordinators = SqliteCoordinators(connection)
        self.attachments = SqliteAttachments(connection)
        self.recall = SqliteRecall(connection)

    @property
    def removals(self) -> int:
        """How often something was removed or replaced whose bytes have yet to leave the files."""
        nouns = (self.entries, self.attachments, self.replies, self.data_keys, self.recall)
        return sum(noun.removals for noun in nouns)


def drive(script: Script[Result], transaction: SqliteTransaction) -> Result:
    """Runs a script to its end in this thread.

    Nothing in an SQLite transaction ever waits, so a script that suspends awaits something that
    has no place in it.
    """
    running: Coroutine[Any, Any, Result] = script(transaction)
    try:
        running.send(None)
    except StopIteration as finished:
        return finished.value  # type: ignore[no-any-return]
    running.close()
    raise RuntimeError("a transaction script awaited something other than its transaction")


def explain(error: BaseException) -> BaseException:
    """The error of ours that an error of SQLite means to a caller."""
    if isinstance(error, MemorywallError):
        return error
    if isinstance(error, apsw.FullError):
        return StorageFullError("the disk is full; nothing was stored, reads go on")
    if isinstance(error, apsw.IOError) and getattr(error, "extendedresult", 0) in _NO_ROOM:
        return StorageFullError("the disk takes no writes; nothing was stored, reads go on")
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return UnavailableError("the database is busy; try again")
    return error
