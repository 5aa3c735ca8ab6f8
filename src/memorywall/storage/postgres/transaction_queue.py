"""Queued functions, and the deadline by which each gets an answer."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from memorywall.records.errors import UnavailableError
from memorywall.storage.port import TransactionFunction

_ROUND = 0.05
_NOT_DONE = "the database did not answer in time; nothing was stored, try again"
_IN_DOUBT = (
    "the database did not answer in time, so this may or may not have been stored; repeat it with"
    " the same Idempotency-Key or version to learn which"
)


class QueuedTransaction:
    """A queued function and its outcome.

    deadline: the latest instant of an answer to the caller, by the clock of the event loop
    is_apart: whether it was removed from its group, to run again alone and with caution
    is_running: whether its transaction has begun, so that it may be stored
    """

    __slots__ = (
        "deadline",
        "error",
        "future",
        "is_apart",
        "is_running",
        "keys_changed",
        "keys_revoked",
        "long",
        "result",
        "script",
    )

    def __init__(
        self, script: TransactionFunction[Any], deadline: float, *, long: bool = False
    ) -> None:
        self.script = script
        self.deadline = deadline
        self.long = long
        self.is_apart = False
        self.is_running = False
        self.keys_changed = False
        self.keys_revoked = False
        self.result: Any = None
        self.error: BaseException | None = None
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    @property
    def is_done(self) -> bool:
        """Returns whether the caller has left."""
        return self.future.done()

    def settle(self) -> None:
        """Notifies the caller."""
        if self.future.done():
            return
        if self.error is None:
            self.future.set_result(self.result)
        else:
            self._fail(self.error)

    def expire(self) -> None:
        """Notifies the caller that the deadline has passed."""
        if not self.future.done():
            doubt = self.is_running
            self._fail(UnavailableError(_IN_DOUBT if doubt else _NOT_DONE))

    def _fail(self, error: BaseException) -> None:
        self.future.set_exception(error)
        # Marks the exception as retrieved, also if the caller has left, to prevent a warning.
        self.future.exception()


class Deadlines:
    """Ends the jobs whose deadline has passed. Jobs arrive in the order of their deadlines."""

    def __init__(self) -> None:
        self._jobs: deque[QueuedTransaction] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, job: QueuedTransaction) -> None:
        """Adds a job that must end by its deadline."""
        self._jobs.append(job)
        if self._timer is None:
            self._expire_overdue(asyncio.get_running_loop())

    def _expire_overdue(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        while self._jobs and (self._jobs[0].is_done or self._jobs[0].deadline <= now):
            self._jobs.popleft().expire()
        self._timer = loop.call_later(_ROUND, self._expire_overdue, loop) if self._jobs else None

    def close(self) -> None:
        """Ends all jobs."""
        if self._timer is not None:
            self._timer.cancel()
        while self._jobs:
            self._jobs.popleft().expire()
