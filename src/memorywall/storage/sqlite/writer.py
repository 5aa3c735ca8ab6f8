"""The one thread that writes, with group commit.

Scripts that arrive while a commit is on its way to the disk are gathered and share the next one,
up to 64 in a transaction. A refused script undoes nothing of its neighbours: nearly all refusals
come before the first change and leave nothing to undo, and when one does not, the transaction is
begun again with a savepoint before each script (always having those costs a third of the time of a
write). A caller hears of success only after the commit.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import apsw

from memorywall.records.errors import UnavailableError
from memorywall.storage.port import Result, Script
from memorywall.storage.sqlite.transaction import SqliteTransaction, drive, explain

_SCRIPTS_PER_COMMIT = 64
_SCRIPTS_WAITING = 4_096


class _Job:
    """A script that waits for its turn, and then its outcome."""

    __slots__ = ("error", "future", "loop", "result", "script")

    def __init__(self, script: Script[Any], loop: asyncio.AbstractEventLoop) -> None:
        self.script = script
        self.loop = loop
        self.future: asyncio.Future[Any] = loop.create_future()
        self.result: Any = None
        self.error: BaseException | None = None

    def settle(self) -> None:
        """Tells the caller, on the caller's loop; one that has gone away is not told."""
        if self.future.done():
            return
        if self.error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.error)


class Writer:
    """Owns the writing connection. `committed` is called in its thread after every commit."""

    def __init__(
        self, connection: apsw.Connection, committed: Callable[[], None] = lambda: None
    ) -> None:
        self._connection = connection
        self._transaction = SqliteTransaction(connection)
        self._committed = committed
        self._waiting: deque[_Job] = deque()
        self._arrival = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="memorywall-writer", daemon=True)
        self._thread.start()

    @property
    def removals(self) -> int:
        """Grows whenever bytes were removed that the files still hold for a while."""
        return self._transaction.entries.removals

    async def submit(self, script: Script[Result]) -> Result:
        """Runs a script; returns after its commit. Raises what it raised, then nothing is kept."""
        job = _Job(script, asyncio.get_running_loop())
        with self._arrival:
            if self._closing:
                raise UnavailableError("the server is shutting down")
            if len(self._waiting) >= _SCRIPTS_WAITING:
                raise UnavailableError("too many writes are waiting; try again shortly")
            self._waiting.append(job)
            self._arrival.notify()
        # A write that has been taken is finished even when its caller goes away.
        result: Result = await asyncio.shield(job.future)
        return result

    def close(self) -> None:
        """Finishes what waits, then ends the thread and closes the connection."""
        with self._arrival:
            self._closing = True
            self._arrival.notify()
        self._thread.join()
        self._connection.close()

    def _run(self) -> None:
        while True:
            with self._arrival:
                while not self._waiting and not self._closing:
                    self._arrival.wait()
                if not self._waiting:
                    return
                jobs = [
                    self._waiting.popleft()
                    for _ in range(min(len(self._waiting), _SCRIPTS_PER_COMMIT))
                ]
            self._commit(jobs)
            _settle_all(jobs)

    def _commit(self, jobs: list[_Job]) -> None:
        """Runs the jobs in one transaction. Never raises: each job gets its outcome."""
        try:
            if not self._attempt(jobs, guarded=False):
                self._attempt(jobs, guarded=True)
        except BaseException as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            for job in jobs:
                job.error = job.error or explain(error)
        else:
            self._committed()

    def _attempt(self, jobs: list[_Job], *, guarded: bool) -> bool:
        """Runs and commits the jobs. False, and nothing done, when one failed after it had made
        changes and no savepoint was there to undo just those."""
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        self._transaction.events.forget()
        for job in jobs:
            job.error = None
            before = connection.total_changes()
            if guarded:
                connection.execute("SAVEPOINT script")
            try:
                job.result = drive(job.script, self._transaction)
            except BaseException as error:
                job.error = explain(error)
                if not connection.in_transaction:
                    # SQLite undid the whole transaction by itself: a full disk, an I/O error.
                    raise
                if guarded:
                    connection.execute("ROLLBACK TO script")
                    self._transaction.events.forget()
                elif connection.total_changes() != before:
                    connection.execute("ROLLBACK")
                    return False
            if guarded:
                connection.execute("RELEASE script")
        connection.execute("COMMIT")
        return True


def _settle_all(jobs: list[_Job]) -> None:
    """One wake-up of each loop for all of its jobs."""
    by_loop: dict[asyncio.AbstractEventLoop, list[_Job]] = {}
    for job in jobs:
        by_loop.setdefault(job.loop, []).append(job)
    for loop, settled in by_loop.items():
        # A loop that is closed has nobody left to tell.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_settle, settled)


def _settle(jobs: list[_Job]) -> None:
    for job in jobs:
        job.settle()
