"""The one place that writes, with group commit.

Scripts that arrive while a commit is on its way to the disk are gathered and share the next one,
up to 64 in a transaction. They run on the event loop, for each takes some tens of microseconds,
less than it costs two threads to take turns at the interpreter over it; the commit, which waits for
the disk and needs no interpreter, is made in a thread. Long scripts run in that thread whole, so
that nobody waits for them but the writes behind them.

A refused script undoes nothing of its neighbours: nearly all refusals come before the first change
and leave nothing to undo, and when one does not, the transaction is begun again with a savepoint
before each script (always having those costs a third of the time of a write). A caller hears of
success only after the commit.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import apsw

from memorywall.records.errors import UnavailableError
from memorywall.storage.port import Result, Script
from memorywall.storage.sqlite.connection import BUSY_TIMEOUT_MILLISECONDS
from memorywall.storage.sqlite.transaction import SqliteTransaction, drive, explain

_SCRIPTS_PER_COMMIT = 64
_SCRIPTS_WAITING = 4_096


class _Job:
    """A script that waits for its turn, and then its outcome."""

    __slots__ = ("error", "future", "long", "result", "script")

    def __init__(self, script: Script[Any], long: bool, loop: asyncio.AbstractEventLoop) -> None:
        self.script = script
        self.long = long
        self.future: asyncio.Future[Any] = loop.create_future()
        self.result: Any = None
        self.error: BaseException | None = None

    def settle(self) -> None:
        """Tells the caller; one that has gone away is not told."""
        if self.future.done():
            return
        if self.error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.error)


class Writer:
    """Owns the writing connection, which the loop and the thread use in turn, never at once.

    It belongs to the event loop of its first write. `committed` is called in the thread after
    every commit.
    """

    def __init__(
        self, connection: apsw.Connection, committed: Callable[[], None] = lambda: None
    ) -> None:
        self._connection = connection
        # On the loop nothing waits for a lock; that is left to the thread.
        self._connection.set_busy_timeout(0)
        self._transaction = SqliteTransaction(connection)
        self._committed = committed
        self._waiting: deque[_Job] = deque()
        self._between: deque[Callable[[], None]] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self._closing = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="memorywall-writer")
        # It is started now, because at the end of the interpreter no thread can be.
        self._thread.submit(lambda: None)

    @property
    def removals(self) -> int:
        """Grows whenever bytes were removed that the files still hold for a while."""
        return self._transaction.removals

    async def submit(self, script: Script[Result], *, long: bool = False) -> Result:
        """Runs a script; returns after its commit. Raises what it raised, then nothing is kept."""
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
        elif self._loop is not loop:
            raise RuntimeError("a store belongs to the event loop that first wrote to it")
        if self._closing:
            raise UnavailableError("the server is shutting down")
        if len(self._waiting) >= _SCRIPTS_WAITING:
            raise UnavailableError("too many writes are waiting; try again shortly")
        job = _Job(script, long, loop)
        self._waiting.append(job)
        self._wake()
        # A write that has been taken is finished even when its caller goes away.
        result: Result = await asyncio.shield(job.future)
        return result

    def between_writes(self, work: Callable[[], None]) -> None:
        """Has `work` done in the writer's thread while nothing is being written. For other threads;
        what is left of it when the writer closes is dropped."""
        loop = self._loop
        if loop is None:
            # Nothing has been written, and what waits for that does not wait for long.
            work()
            return
        self._between.append(work)
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(self._wake)

    async def close(self) -> None:
        """Finishes what waits, then ends the thread and closes the connection."""
        self._closing = True
        await self._idle.wait()
        self._thread.shutdown()
        self._connection.close()

    def _wake(self) -> None:
        if self._idle.is_set() and self._loop is not None and not self._closing:
            self._idle.clear()
            self._loop.call_soon(self._take_turn)

    def _take_turn(self) -> None:
        """On the loop: runs what waits and has it committed, or lets the thread do both."""
        if self._between:
            self._thread.submit(self._do_between, self._between.popleft())
            return
        jobs = self._next_jobs()
        if not jobs:
            self._idle.set()
        elif jobs[0].long or not self._run(jobs):
            self._thread.submit(self._finish, jobs, run=True)
        else:
            self._thread.submit(self._finish, jobs, run=False)

    def _next_jobs(self) -> list[_Job]:
        waiting = self._waiting
        if waiting and waiting[0].long:
            return [waiting.popleft()]
        jobs: list[_Job] = []
        while waiting and not waiting[0].long and len(jobs) < _SCRIPTS_PER_COMMIT:
            jobs.append(waiting.popleft())
        return jobs

    def _do_between(self, work: Callable[[], None]) -> None:
        try:
            work()
        finally:
            assert self._loop is not None  # noqa: S101 - it was asked for over it
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._take_turn)

    def _finish(self, jobs: list[_Job], *, run: bool) -> None:
        """In the thread: runs the jobs if they have not been, commits, and goes back to the loop.

        Never raises: each job gets its outcome.
        """
        try:
            if run:
                self._connection.set_busy_timeout(BUSY_TIMEOUT_MILLISECONDS)
                try:
                    if not self._run(jobs):
                        raise UnavailableError("another process holds the database; try again")
                finally:
                    self._connection.set_busy_timeout(0)
            if self._connection.in_transaction:
                self._connection.execute("COMMIT")
                self._committed()
        except BaseException as error:
            self._fail(jobs, error)
        assert self._loop is not None  # noqa: S101 - the jobs came over it
        # A loop that is closed has nobody left to tell.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._settle, jobs)

    def _settle(self, jobs: list[_Job]) -> None:
        for job in jobs:
            job.settle()
        # On the next turn of the loop: who has just been told may have the next write ready.
        assert self._loop is not None  # noqa: S101 - this runs on it
        self._loop.call_soon(self._take_turn)

    def _run(self, jobs: list[_Job]) -> bool:
        """Runs the jobs in a transaction that is left open for the commit.

        False, and nothing done, when another process holds the file right now.
        """
        try:
            if not self._attempt(jobs, guarded=False):
                self._attempt(jobs, guarded=True)
        except apsw.BusyError:
            return False
        except BaseException as error:
            self._fail(jobs, error)
        return True

    def _attempt(self, jobs: list[_Job], *, guarded: bool) -> bool:
        """Runs the jobs. False, and nothing done, when one failed after it had made changes and no
        savepoint was there to undo just those."""
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
        return True

    def _fail(self, jobs: list[_Job], error: BaseException) -> None:
        """Undoes everything and gives every job an error."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        for job in jobs:
            job.error = job.error or explain(error)
