"""The one place that writes, with group commit.

Scripts that arrive while a commit is on its way to the disk are gathered and share the next one,
up to 64 in a transaction. They run on the event loop, for each takes some tens of microseconds,
less than it costs two threads to take turns at the interpreter over it; the commit, which waits for
the disk and needs no interpreter, is made in a thread. Long scripts run in that thread whole, so
that nobody waits for them but the writes behind them.

A thread with no event loop of its own may run a script and commit it by itself while nobody else
writes, which saves it two changes of threads; see `CallingThreadStore`. Where anybody writes or
waits it joins the others, and shares their commit.

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
from threading import Lock
from typing import Any

import apsw

from memorywall.records.errors import UnavailableError
from memorywall.storage.port import Result, TransactionFunction
from memorywall.storage.sqlite.connection import BUSY_TIMEOUT_MILLISECONDS, data_version
from memorywall.storage.sqlite.transaction import (
    SqliteTransaction,
    run_to_completion,
    translate_error,
)

_SCRIPTS_PER_COMMIT = 64
_SCRIPTS_WAITING = 4_096


class TurnTakenError(Exception):
    """Others write or wait to write right now."""


class _QueuedWrite:
    """A script that waits for its turn, and then its outcome.

    future: how a caller on the event loop is told; None for one that waits in its own thread
    """

    __slots__ = ("error", "future", "long", "result", "script", "tenant")

    def __init__(
        self,
        tenant: str,
        script: TransactionFunction[Any],
        long: bool,
        future: asyncio.Future[Any] | None = None,
    ) -> None:
        self.tenant = tenant
        self.script = script
        self.long = long
        self.future = future
        self.result: Any = None
        self.error: BaseException | None = None

    def settle(self) -> None:
        """Tells the caller; one that has gone away is not told."""
        if self.future is None or self.future.done():
            return
        if self.error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.error)


class Writer:
    """Owns the writing connection, which is used by whoever holds the turn, never by two at once:
    the loop, which passes it on to the thread, or a caller in a thread of its own.

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
        self._is_known = False
        self._version = 0
        self._committed = committed
        self._waiting: deque[_QueuedWrite] = deque()
        self._between: deque[Callable[[], None]] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        # Whoever takes it need not be who gives it back: the loop takes it, the thread gives it.
        self._turn = Lock()
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

    async def submit(
        self, tenant: str, script: TransactionFunction[Result], *, long: bool = False
    ) -> Result:
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
        future: asyncio.Future[Result] = loop.create_future()
        self._waiting.append(_QueuedWrite(tenant, script, long, future))
        self._wake()
        # A write that has been taken is finished even when its caller goes away.
        return await asyncio.shield(future)

    def write_here(self, tenant: str, script: TransactionFunction[Result]) -> Result:
        """Runs a script and commits it in the calling thread, which is not the event loop's.

        Raises what the script raised, and TurnTakenError, with nothing done, while others write
        or wait: then `submit` it, so that it shares their commit and nobody is overtaken forever.
        """
        if self._waiting or self._between or self._turn.locked():
            raise TurnTakenError
        job = _QueuedWrite(tenant, script, long=False)
        # `with`, because a signal may interrupt this thread, and nowhere between the two of these.
        with self._turn:
            if self._closing:
                raise UnavailableError("the store is closed")
            self._carry_out([job], run=True)
        if job.error is not None:
            raise job.error
        result: Result = job.result
        return result

    def between_writes(self, work: Callable[[], None]) -> None:
        """Has `work` done in the writer's thread while nothing is being written. For other threads;
        what is left of it when the writer closes is dropped."""
        loop = self._loop
        if loop is None:
            # Nothing has been written, and what waits for that does not wait for long.
            with self._turn:
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
        await asyncio.to_thread(self._close_connection)

    def _close_connection(self) -> None:
        with self._turn:
            self._connection.close()

    def _wake(self) -> None:
        if self._idle.is_set() and self._loop is not None and not self._closing:
            self._idle.clear()
            self._loop.call_soon(self._take_turn)

    def _take_turn(self) -> None:
        """On the loop: takes the turn if anything waits, or has the thread wait for it."""
        if not (self._between or self._waiting):
            self._idle.set()
        elif self._turn.acquire(blocking=False):
            self._use_turn()
        else:
            self._thread.submit(self._wait_for_turn)

    def _wait_for_turn(self) -> None:
        """In the thread: takes the turn as soon as a caller in a thread of its own is through."""
        self._turn.acquire()
        assert self._loop is not None  # noqa: S101 - the loop asked for it
        try:
            self._loop.call_soon_threadsafe(self._use_turn)
        except RuntimeError:
            self._turn.release()

    def _use_turn(self) -> None:
        """On the loop, which has the turn: runs what waits and has it committed, or lets the thread
        do both. The thread gives the turn back."""
        if self._between:
            self._thread.submit(self._do_between, self._between.popleft())
            return
        jobs = self._next_jobs()
        if jobs[0].long or not self._run(jobs):
            self._thread.submit(self._finish, jobs, run=True)
        else:
            self._thread.submit(self._finish, jobs, run=False)

    def _next_jobs(self) -> list[_QueuedWrite]:
        waiting = self._waiting
        if waiting and waiting[0].long:
            return [waiting.popleft()]
        jobs: list[_QueuedWrite] = []
        while waiting and not waiting[0].long and len(jobs) < _SCRIPTS_PER_COMMIT:
            jobs.append(waiting.popleft())
        return jobs

    def _do_between(self, work: Callable[[], None]) -> None:
        try:
            work()
        finally:
            self._turn.release()
            assert self._loop is not None  # noqa: S101 - it was asked for over it
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._take_turn)

    def _finish(self, jobs: list[_QueuedWrite], *, run: bool) -> None:
        """In the thread: carries the jobs out, gives the turn back, and goes back to the loop."""
        self._carry_out(jobs, run=run)
        self._turn.release()
        assert self._loop is not None  # noqa: S101 - the jobs came over it
        # A loop that is closed has nobody left to tell.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._settle, jobs)

    def _carry_out(self, jobs: list[_QueuedWrite], *, run: bool) -> None:
        """Runs the jobs if they have not been, and commits.

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
                self._is_known = True
                self._committed()
        except BaseException as error:
            self._fail(jobs, error)

    def _settle(self, jobs: list[_QueuedWrite]) -> None:
        for job in jobs:
            job.settle()
        # On the next turn of the loop: who has just been told may have the next write ready.
        assert self._loop is not None  # noqa: S101 - this runs on it
        self._loop.call_soon(self._take_turn)

    def _run(self, jobs: list[_QueuedWrite]) -> bool:
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

    def _attempt(self, jobs: list[_QueuedWrite], *, guarded: bool) -> bool:
        """Runs the jobs. False, and nothing done, when one failed after it had made changes and no
        savepoint was there to undo just those."""
        connection = self._connection
        if connection.in_transaction:
            # A signal has interrupted who wrote last before that was undone.
            connection.execute("ROLLBACK")
        connection.execute("BEGIN IMMEDIATE")
        self._forget_unless_alone()
        for job in jobs:
            job.error = None
            before = connection.total_changes()
            if guarded:
                connection.execute("SAVEPOINT script")
            try:
                job.result = run_to_completion(job.script, self._transaction, job.tenant)
            except BaseException as error:
                job.error = translate_error(error)
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

    def _forget_unless_alone(self) -> None:
        """At the beginning of a transaction: forgets the ends of the logs, unless the last thing
        that was committed to the file is what this connection has committed."""
        version = data_version(self._connection)
        if not self._is_known or version != self._version:
            self._transaction.events.forget()
        # Until it is committed, what is remembered may yet be undone.
        self._is_known = False
        self._version = version

    def _fail(self, jobs: list[_QueuedWrite], error: BaseException) -> None:
        """Undoes everything and gives every job an error."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        for job in jobs:
            job.error = job.error or translate_error(error)
