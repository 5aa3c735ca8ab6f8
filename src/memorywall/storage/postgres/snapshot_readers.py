"""Runs read-only functions, many of a tenant on one snapshot.

Functions that arrive while connections are busy are collected and run concurrently in the next
transaction: common reads are done once, and the cost of beginning is shared.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, cast

from memorywall.storage.postgres.connection import (
    ConnectionPool,
    begin,
    is_lost,
    is_of_database,
    is_to_be_repeated,
    roll_back,
    translate_error,
)
from memorywall.storage.postgres.session import StatementSession
from memorywall.storage.postgres.transaction import PostgresTransaction
from memorywall.storage.postgres.transaction_queue import QueuedTransaction

_SCRIPTS_PER_SNAPSHOT = 64
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.25
_SNAPSHOT = "REPEATABLE READ READ ONLY"
_ITERATIONS = 2


class SnapshotReaders:
    """The readers of one tenant, each with a connection while there are functions to run."""

    def __init__(self, connections: ConnectionPool, tenant: str | None, most: int) -> None:
        self._connections = connections
        self._begin = begin(tenant, _SNAPSHOT)
        self._tenant = tenant
        self._most = most
        self._waiting: deque[QueuedTransaction] = deque()
        self._dirty_pages: deque[QueuedTransaction] = deque()
        self._readers: set[asyncio.Task[None]] = set()

    def submit(self, job: QueuedTransaction) -> None:
        """Queues a job; its future gets the outcome."""
        self._waiting.append(job)
        if len(self._readers) < self._most:
            self._readers.add(asyncio.get_running_loop().create_task(self._read_all()))

    async def close(self) -> None:
        """Waits until no read is running."""
        while self._readers:
            await asyncio.wait(self._readers)

    async def _read_all(self) -> None:
        try:
            await self._read()
        finally:
            # No await may follow the last check of the queue, so that no function is left in it.
            self._readers.discard(cast(asyncio.Task[None], asyncio.current_task()))

    async def _read(self) -> None:
        pause = _FIRST_PAUSE
        while self._is_wanted():
            jobs: list[QueuedTransaction] = []
            try:
                async with self._connections.use() as connection:
                    opening = self._begin
                    try:
                        while jobs := await self._jobs_to_come():
                            await self._run(connection, opening, jobs)
                            # One snapshot ends and the next begins in one round trip.
                            opening = f"COMMIT; {self._begin}"
                            pause = _FIRST_PAUSE
                            if self._connections.are_scarce:
                                break
                    finally:
                        await roll_back(connection)
            except Exception as error:
                left = [job for job in jobs if not job.is_done]
                if is_lost(error) or is_to_be_repeated(error):
                    self._waiting.extendleft(reversed(left))
                    await asyncio.sleep(pause)
                    pause = min(pause * 2, _LONGEST_PAUSE)
                elif len(jobs) > 1:
                    # One function has caused the error and must not affect the others.
                    self._dirty_pages.extend(left)
                else:
                    for job in left:
                        job.error = translate_error(error)
                        job.settle()

    def _is_wanted(self) -> bool:
        """Returns whether any caller still waits."""
        for waiting in (self._dirty_pages, self._waiting):
            while waiting and waiting[0].is_done:
                waiting.popleft()
        return bool(self._dirty_pages or self._waiting)

    async def _jobs_to_come(self) -> list[QueuedTransaction]:
        """Returns the next functions; waits for the iterations of the event loop in which a caller
        gets its outcome and submits the next function of its operation."""
        for _ in range(_ITERATIONS):
            if jobs := self._next_jobs():
                return jobs
            await asyncio.sleep(0)
        return self._next_jobs()

    def _next_jobs(self) -> list[QueuedTransaction]:
        if self._dirty_pages:
            return [self._dirty_pages.popleft()]
        jobs: list[QueuedTransaction] = []
        while self._waiting and len(jobs) < _SCRIPTS_PER_SNAPSHOT:
            job = self._waiting.popleft()
            if not job.is_done:
                jobs.append(job)
        return jobs

    async def _run(self, connection: Any, opening: str, jobs: list[QueuedTransaction]) -> None:
        """Runs functions on the snapshot that `opening` begins. Raises if the connection failed;
        functions without an outcome must then be run again."""
        session = StatementSession(connection, self._tenant)
        transaction = PostgresTransaction(session, side_by_side=True)
        latest = max(job.deadline for job in jobs)
        try:
            async with asyncio.timeout_at(latest + 0.1):
                await connection.execute(opening)
                if len(jobs) == 1:
                    await self._run_one(transaction, jobs[0])
                    return
                runs = (self._run_one(transaction, job) for job in jobs)
                # All functions must have ended before the connection is released.
                for error in await asyncio.gather(*runs, return_exceptions=True):
                    if error is not None:
                        raise error
        finally:
            session.end()

    async def _run_one(self, transaction: PostgresTransaction, job: QueuedTransaction) -> None:
        try:
            job.result = await job.script(transaction)
        except Exception as error:
            if is_of_database(error):
                raise
            job.error = translate_error(error)
        job.settle()
