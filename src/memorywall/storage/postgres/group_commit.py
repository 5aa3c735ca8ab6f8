"""The only writer, with group commit.

The writes of a tenant are serial over all processes: a transaction first locks the tenant's row in
`heads`. No other write of the tenant runs concurrently. Functions that arrive during a commit share
the next one, up to 64 in a transaction, and their buffered writes are flushed together.

A refused function does not roll back other functions: its buffered writes are discarded. If some
were flushed already, or a flush detects a conflict, all functions run again, each in its own
transaction that checks before it buffers.

The outcome of an unconfirmed commit is looked up afterwards by its number: no acknowledged write is
lost, and none is applied twice.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from memorywall.storage.postgres.connection import (
    ConnectionPool,
    begin,
    is_answer,
    is_lost,
    is_of_database,
    is_to_be_repeated,
    roll_back,
    run_to_end,
    translate_error,
)
from memorywall.storage.postgres.events import Last
from memorywall.storage.postgres.session import StatementSession
from memorywall.storage.postgres.transaction import PostgresTransaction
from memorywall.storage.postgres.transaction_queue import QueuedTransaction
from memorywall.storage.postgres.write_buffer import InsertConflictError
from memorywall.storage.statements import load

_SQL = load("postgres", "heads")
_SCRIPTS_PER_COMMIT = 64
_ROOM_OF_A_LONG_ONE = 8
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.25
_MOST_ATTEMPTS = 4
"""The attempts of a group, and as many of single functions: a function with conflicts runs at most
eight times."""
_LOCKED = "READ COMMITTED"
"""Each statement sees the commits before its start, and the first one waits for the lock."""


class _InDoubtError(Exception):
    """A commit was sent and not answered."""


class GroupCommitter:
    """The queue of one tenant's writes in this process.

    writer: the name under which this process numbers its commits
    committed: called with the tenant after every commit
    """

    def __init__(
        self,
        connections: ConnectionPool,
        tenant: str,
        writer: str,
        committed: Callable[[str], None],
    ) -> None:
        self._connections = connections
        self._committed = committed
        self._tenant = tenant
        self._writer = writer
        self._number = 0
        self._begin = begin(tenant, _LOCKED)
        self._waiting: deque[QueuedTransaction] = deque()
        self._worker: asyncio.Task[None] | None = None

    def submit(self, job: QueuedTransaction) -> None:
        """Queues a job; its future gets the outcome after the commit."""
        self._waiting.append(job)
        if self._worker is None:
            self._worker = asyncio.get_running_loop().create_task(self._work())

    async def close(self) -> None:
        """Waits until no write is running."""
        while self._worker is not None:
            await asyncio.wait({self._worker})

    async def _work(self) -> None:
        try:
            while self._waiting:
                jobs = self._next_jobs()
                try:
                    await self._carry_out(jobs)
                except Exception as error:
                    # A defect: callers must not wait until their deadline.
                    for job in jobs:
                        job.error = translate_error(error)
                        job.settle()
        finally:
            self._worker = None

    async def _carry_out(self, jobs: list[QueuedTransaction]) -> None:
        await self._commit(jobs, cautious=False)
        for job in jobs:
            if job.is_apart:
                await self._commit([job], cautious=True)

    def _next_jobs(self) -> list[QueuedTransaction]:
        jobs: list[QueuedTransaction] = []
        room = _SCRIPTS_PER_COMMIT
        while self._waiting and room > 0:
            job = self._waiting.popleft()
            if not job.is_done:
                jobs.append(job)
                room -= _ROOM_OF_A_LONG_ONE if job.long else 1
        return jobs

    async def _commit(self, jobs: list[QueuedTransaction], *, cautious: bool) -> None:
        """Runs jobs in one transaction until it is committed or refused, or all callers have left.

        Without caution, some or all jobs may be returned with `is_apart` and without an outcome.
        """
        pause, attempts = _FIRST_PAUSE, 0
        while live := [job for job in jobs if not job.is_done]:
            number = self._number + 1
            try:
                async with self._connections.use() as connection:
                    await self._attempt(connection, live, number, cautious=cautious)
                self._number = number
                break
            except _InDoubtError:
                self._number = number
                if await self._came_through(number, live):
                    break
            except Exception as error:
                attempts += 1
                again = is_lost(error) or (is_to_be_repeated(error) and attempts < _MOST_ATTEMPTS)
                if not again:
                    for job in live:
                        job.is_apart, job.error = not cautious, translate_error(error)
                    break
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
        for job in jobs:
            if not job.is_apart:
                job.settle()
        self._committed(self._tenant)

    async def _attempt(
        self, connection: Any, jobs: list[QueuedTransaction], number: int, *, cautious: bool
    ) -> None:
        """Runs the jobs and commits. Raises _InDoubtError if the commit was not answered."""
        # Callers whose deadline has passed have been told that nothing was stored, so their jobs
        # must not run.
        jobs = [job for job in jobs if not job.is_done]
        if not jobs:
            return
        latest = max(job.deadline for job in jobs) + 0.1
        for job in jobs:
            job.is_running, job.is_apart, job.error = True, False, None
        committing = False
        session = StatementSession(connection, self._tenant)
        try:
            async with asyncio.timeout_at(latest):
                last = await self._begin_transaction(connection)
                transaction = PostgresTransaction(session, last, cautious=cautious)
                await _run(transaction, jobs, cautious=cautious)
                committing = await self._seal(connection, transaction, number)
            await run_to_end(connection, "COMMIT" if committing else "ROLLBACK", latest)
        except BaseException as error:
            if committing and isinstance(error, Exception) and not is_answer(error):
                # The state of the connection is unknown, so it must not be used again.
                connection.terminate()
                raise _InDoubtError from error
            await roll_back(connection)
            raise
        finally:
            session.end()

    async def _begin_transaction(self, connection: Any) -> Last:
        """Begins, and locks the tenant's row in `heads`. Returns the end of its log."""
        await connection.execute(self._begin)
        head = await connection.fetchrow(_SQL["lock"], self._tenant)
        if head is None:
            await connection.execute(_SQL["found"], self._tenant)
            head = await connection.fetchrow(_SQL["lock"], self._tenant)
        return head[0], head[1]

    async def _seal(self, connection: Any, transaction: PostgresTransaction, number: int) -> bool:
        """Flushes buffered writes and the number of the commit. Returns False if nothing was
        changed."""
        if transaction.buffer.is_empty and not transaction.session.statements:
            return False
        await transaction.buffer.flush()
        await connection.execute(
            _SQL["seal"], self._tenant, self._writer, number, *transaction.events.last
        )
        return True

    async def _came_through(self, number: int, jobs: list[QueuedTransaction]) -> bool:
        """Returns whether an unanswered commit was applied. Repeats until the answer is known, or
        until all callers have left; then returns False."""
        pause = _FIRST_PAUSE
        while not all(job.is_done for job in jobs):
            # After an error here the outcome is still unknown.
            with suppress(Exception):
                async with self._connections.use() as connection:
                    try:
                        async with asyncio.timeout(5):
                            await connection.execute(self._begin)
                            # The lock is acquired after a running commit has ended.
                            await connection.fetchrow(_SQL["lock"], self._tenant)
                            row = await connection.fetchrow(
                                _SQL["committed"], self._tenant, self._writer
                            )
                    finally:
                        await roll_back(connection)
                return row is not None and row[0] >= number
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
        return False


async def _run(
    transaction: PostgresTransaction, jobs: list[QueuedTransaction], *, cautious: bool
) -> None:
    """Runs the functions, one after another.

    Raises errors of the database, and the error of a function that had flushed writes.
    """
    session = transaction.session
    for job in jobs:
        transaction.begin_script()
        keys = session.keys_changed, session.keys_revoked
        try:
            job.result = await job.script(transaction)
            job.keys_changed = session.keys_changed != keys[0]
            job.keys_revoked = session.keys_revoked != keys[1]
        except Exception as error:
            if isinstance(error, InsertConflictError) or is_of_database(error):
                raise
            noted = transaction.has_noted
            if not transaction.undo_script():
                raise
            job.error = translate_error(error)
            # A function that relied on conflicting buffered writes may have been refused for
            # another reason.
            job.is_apart = noted and not cautious
