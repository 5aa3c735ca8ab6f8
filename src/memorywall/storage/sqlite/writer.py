"""The only writer, with group commit.

Functions that arrive during a commit are collected and share the next one, up to 64 in a
transaction. They run on the event loop, because each takes some tens of microseconds, less than two
thread switches. A function that turns out to take long fails, and its caller has it run again as a
long one. The commit waits for the disk without the interpreter lock, so a thread makes it.
Long functions run entirely in that thread, so that only later writes wait for them.

A thread without an event loop may run and commit a function itself while no other write runs or
waits, which saves two thread switches; see `CallingThreadStore`. Otherwise the function joins the
queue and shares a commit.

A refused function does not roll back other functions. Nearly all refusals come before the first
change. Otherwise the transaction is run again with a savepoint before each function; permanent
savepoints would cost a third of the time of a write. A caller is notified only after the commit.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Lock, Thread
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

_log = logging.getLogger("memorywall.storage")
_SCRIPTS_PER_COMMIT = 64
_SCRIPTS_WAITING = 4_096


class WriterBusyError(Exception):
    """Other writes are running or waiting."""


class _Worker:
    """A thread that does one piece of work after the other.

    It costs a quarter of the time of an executor, which makes a future with a lock for each piece.
    It is a daemon, because a program may end without closing the store.
    """

    def __init__(self, name: str) -> None:
        self._waiting: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self.submit = self._waiting.put
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while (work := self._waiting.get()) is not None:
            try:
                work()
            except Exception:
                _log.exception("work of the thread that writes failed")

    def close(self) -> None:
        """Ends the thread after the work that waits."""
        self.submit(None)
        self._thread.join()


class _QueuedWrite:
    """A queued function and its outcome.

    future: notifies a caller on the event loop; None for a caller that waits in its own thread
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
        """Notifies the caller, unless it was cancelled."""
        if self.future is None or self.future.done():
            return
        if self.error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.error)


class Writer:
    """Owns the writing connection. Only the holder of the lock uses it: the loop, which passes the
    turn to the thread, or a caller in its own thread.

    The writer belongs to the event loop of its first write. `committed` is called in the thread
    after every commit, with the tenants of its functions.
    """

    def __init__(
        self,
        connection: apsw.Connection,
        committed: Callable[[set[str]], None] = lambda tenants: None,
    ) -> None:
        self._connection = connection
        # The loop never waits for a file lock; the thread does.
        self._connection.set_busy_timeout(0)
        self._transaction = SqliteTransaction(connection)
        self._is_known = False
        self._version = 0
        self._committed = committed
        self._waiting: deque[_QueuedWrite] = deque()
        self._between: deque[Callable[[], None]] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        # The acquiring and the releasing thread may differ: the loop acquires, the thread releases.
        self._lock = Lock()
        self._is_idle = True
        self._closing = False
        # Notifies `close` that no write waits any more.
        self._drained = asyncio.Event()
        # The thread is started now, because none can be started during interpreter exit.
        self._worker = _Worker("memorywall-writer")

    @property
    def removals(self) -> int:
        """The number of removals whose bytes are still in the files; only grows."""
        return self._transaction.removals

    async def submit(
        self, tenant: str, script: TransactionFunction[Result], *, long: bool = False
    ) -> Result:
        """Runs a function; returns after its commit. Raises its exception, and then stores
        nothing."""
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
        # A write completes even if its caller is cancelled: then nobody waits for its outcome.
        return await future

    def write_here(self, tenant: str, script: TransactionFunction[Result]) -> Result:
        """Runs a function and commits it in the calling thread, which must not be the event loop's.

        Raises the function's exception. Raises WriterBusyError, without a change, while other
        writes run or wait: call `submit` then, so that the function shares their commit in order.
        """
        if self._waiting or self._between or self._lock.locked():
            raise WriterBusyError
        job = _QueuedWrite(tenant, script, long=False)
        # `with`, because a signal may interrupt this thread, but not between these two steps.
        with self._lock:
            if self._closing:
                raise UnavailableError("the store is closed")
            self._carry_out([job], run=True)
        if job.error is not None:
            raise job.error
        result: Result = job.result
        return result

    def between_writes(self, work: Callable[[], None]) -> None:
        """Runs `work` in the writer's thread while no write is running. For other threads; work
        that is left when the writer closes is dropped."""
        loop = self._loop
        if loop is None:
            # No write is running, so waiting functions do not wait for long.
            with self._lock:
                work()
            return
        self._between.append(work)
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(self._wake)

    async def close(self) -> None:
        """Completes waiting functions, then ends the thread and closes the connection."""
        self._closing = True
        if not self._is_idle:
            await self._drained.wait()
        self._worker.close()
        await asyncio.to_thread(self._close_connection)

    def _close_connection(self) -> None:
        with self._lock:
            self._connection.close()

    def _wake(self) -> None:
        if self._is_idle and self._loop is not None and not self._closing:
            self._is_idle = False
            self._loop.call_soon(self._acquire_lock)

    def _acquire_lock(self) -> None:
        """On the loop: acquires the lock if functions wait, or lets the thread wait for it."""
        if not (self._between or self._waiting):
            self._become_idle()
        elif self._lock.acquire(blocking=False):
            self._run_with_lock()
        else:
            self._worker.submit(self._wait_for_lock)

    def _wait_for_lock(self) -> None:
        """In the thread: acquires the lock after a caller in its own thread has released it."""
        self._lock.acquire()
        assert self._loop is not None  # noqa: S101 - the loop asked for it
        try:
            self._loop.call_soon_threadsafe(self._run_with_lock)
        except RuntimeError:
            self._lock.release()

    def _run_with_lock(self) -> None:
        """On the loop, with the lock: runs waiting functions and has them committed, or lets the
        thread do both. The thread releases the lock."""
        if self._between:
            work = self._between.popleft()
            self._worker.submit(lambda: self._do_between(work))
        else:
            jobs = self._next_jobs()
            run = jobs[0].long or not self._run(jobs, None)
            self._worker.submit(lambda: self._finish(jobs, run=run))

    def _become_idle(self) -> None:
        self._is_idle = True
        if self._closing:
            self._drained.set()

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
            self._lock.release()
            assert self._loop is not None  # noqa: S101 - it was asked for over it
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._acquire_lock)

    def _finish(self, jobs: list[_QueuedWrite], *, run: bool) -> None:
        """In the thread: runs and commits the jobs, releases the lock, and notifies the loop."""
        self._carry_out(jobs, run=run)
        self._lock.release()
        assert self._loop is not None  # noqa: S101 - the jobs came over it
        # After the loop is closed there is no caller to notify.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._settle, jobs)

    def _carry_out(self, jobs: list[_QueuedWrite], *, run: bool) -> None:
        """Runs the jobs if they have not run, and commits.

        Never raises: each job gets its outcome.
        """
        try:
            if run:
                self._connection.set_busy_timeout(BUSY_TIMEOUT_MILLISECONDS)
                try:
                    if not self._run(jobs, math.inf):
                        raise UnavailableError("another process holds the database; try again")
                finally:
                    self._connection.set_busy_timeout(0)
            if self._connection.in_transaction:
                self._connection.execute("COMMIT")
                self._is_known = True
                self._committed({job.tenant for job in jobs})
        except BaseException as error:
            self._fail(jobs, error)

    def _settle(self, jobs: list[_QueuedWrite]) -> None:
        for job in jobs:
            job.settle()
        # In the next iteration of the loop: a notified caller may then have its next write ready.
        assert self._loop is not None  # noqa: S101 - this runs on it
        self._loop.call_soon(self._acquire_lock)

    def _run(self, jobs: list[_QueuedWrite], latest: float | None) -> bool:
        """Runs the jobs in a transaction that stays open for the commit.

        latest: see `SqliteRowAccess`; a job that takes longer fails with apsw.InterruptError
        Returns False, without a change, if another process holds the file lock.
        """
        try:
            if not self._attempt(jobs, latest, guarded=False):
                self._attempt(jobs, latest, guarded=True)
        except apsw.BusyError:
            return False
        except BaseException as error:
            self._fail(jobs, error)
        return True

    def _attempt(self, jobs: list[_QueuedWrite], latest: float | None, *, guarded: bool) -> bool:
        """Runs the jobs. Returns False, without a change, if one failed after it had made changes
        and there was no savepoint."""
        connection = self._connection
        if connection.in_transaction:
            # A signal interrupted the last writer before its rollback.
            connection.execute("ROLLBACK")
        connection.execute("BEGIN IMMEDIATE")
        self._forget_unless_alone()
        for job in jobs:
            job.error = None
            before = connection.total_changes()
            if guarded:
                connection.execute("SAVEPOINT script")
            self._transaction.rows.latest = latest
            try:
                job.result = run_to_completion(job.script, self._transaction, job.tenant)
            except BaseException as error:
                job.error = translate_error(error)
                if not connection.in_transaction:
                    # SQLite rolled back the whole transaction: a full disk, an I/O error.
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
        """Rolls back and gives every job an error."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        for job in jobs:
            job.error = job.error or translate_error(error)
