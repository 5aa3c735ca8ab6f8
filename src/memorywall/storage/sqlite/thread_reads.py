"""Reads that take too long for the event loop run in threads, each on a snapshot of its own.

SQLite computes without the interpreter's lock, so such a read delays no request.
"""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw

from memorywall.records.errors import UnavailableError
from memorywall.storage.port import Result, TransactionFunction
from memorywall.storage.sqlite.connection import connect
from memorywall.storage.sqlite.transaction import (
    SqliteTransaction,
    run_to_completion,
    translated_errors,
)

_THREADS = 2
"""A tenant reads in one of them at a time, so that its long reads delay those of no other tenant
while there are fewer such tenants than threads."""


class ReadingConnection:
    """A connection for functions in any thread, one at a time; each has a snapshot of its own."""

    def __init__(self, database: Path) -> None:
        self._connection = connect(database, read_only=True)
        self._snapshot = SqliteTransaction(self._connection)
        self._guard = threading.Lock()
        self._closed = False

    def read(self, tenant: str | None, script: TransactionFunction[Result]) -> Result:
        """Runs a function in this thread."""
        with self._guard, translated_errors():
            if self._closed:
                raise UnavailableError("the store is closed")
            connection = self._connection
            if connection.in_transaction:
                # A signal interrupted the last read before it could end its snapshot.
                connection.execute("COMMIT")
            connection.execute("BEGIN")
            try:
                return run_to_completion(script, self._snapshot, tenant)
            finally:
                connection.execute("COMMIT")

    def use(self, function: Callable[[apsw.Connection], Result]) -> Result:
        """Returns what a function without a snapshot reads."""
        with self._guard:
            if self._closed:
                raise UnavailableError("the store is closed")
            return function(self._connection)

    def close(self) -> None:
        """Closes the connection, after a running read."""
        with self._guard:
            self._closed = True
            self._connection.close()


class ThreadReads:
    """Runs functions in threads, for callers on the event loop.

    let_read: returns when a snapshot may begin; it is called in the threads
    """

    def __init__(self, database: Path, let_read: Callable[[], None]) -> None:
        self._database = database
        self._let_read = let_read
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="memorywall-reader")
        self._idle: deque[ReadingConnection] = deque()
        self._turns: defaultdict[str | None, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def run(self, tenant: str | None, script: TransactionFunction[Result]) -> Result:
        """Returns the result of a function. It completes even if its caller is cancelled."""
        async with self._turns[tenant]:
            loop = asyncio.get_running_loop()
            running = loop.run_in_executor(self._threads, self._read, tenant, script)
            try:
                return await asyncio.shield(running)
            except asyncio.CancelledError:
                # The tenant's next read waits for the end of this one.
                await asyncio.wait({running})
                raise

    def _read(self, tenant: str | None, script: TransactionFunction[Result]) -> Result:
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = ReadingConnection(self._database)
        try:
            self._let_read()
            return connection.read(tenant, script)
        finally:
            self._idle.append(connection)

    async def close(self) -> None:
        """Closes the connections, after running reads."""
        await asyncio.to_thread(self._threads.shutdown)
        for connection in self._idle:
            connection.close()
