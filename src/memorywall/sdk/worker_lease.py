"""The holder's state of a task lease, and its renewal.

The holder measures the lease from before it sends a request, and the server measures it from the
arrival of the request. Therefore the holder never considers the lease live for longer than the
server does. A worker that was paused finds its lease expired before it writes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias, TypeVar

from memorywall.records.errors import (
    FencedError,
    MemoryAccessError,
    MemoryNotFoundError,
    MemorywallError,
)
from memorywall.records.forks import FORK_LOCK

Result = TypeVar("Result")
Step: TypeAlias = Callable[[], Any]
"""A function call; its result, or its awaited result, is sent back."""
Work: TypeAlias = Generator[Step, Any, Result]

LEASE_LOST_ERRORS = (FencedError, MemoryAccessError, MemoryNotFoundError)
"""Errors that mean that the caller may not, or no longer, work on a task."""
_SHORTEST_PAUSE = 0.05
_LONGEST_PAUSE = 1.0
_log = logging.getLogger("memorywall.worker")


class WorkerStopped(BaseException):
    """The worker is stopping and releases its task. Like KeyboardInterrupt, this is a
    BaseException, so that functions that catch Exception do not suppress it."""


class LeaseState:
    """The holder's state of a lease.

    token: the fencing token of every write
    seconds: the duration of the lease after acquisition or renewal
    renew_at: the time of the next renewal by `clock`; at first half of the duration
    """

    def __init__(
        self, token: int, seconds: int, asked_at: float, clock: Callable[[], float]
    ) -> None:
        self.token = token
        self.seconds = seconds
        self.clock = clock
        self._lost = False
        self._ends_at = self.renew_at = asked_at
        self.renewed(asked_at)

    @property
    def lost(self) -> bool:
        """Whether the lease is over. A lost lease stays lost, even if a later response arrives."""
        if not self._lost and self.clock() >= self._ends_at:
            self._lost = True
        return self._lost

    @property
    def left(self) -> float:
        """Returns the seconds until expiry without renewal."""
        return max(0.0, self._ends_at - self.clock())

    def renewed(self, asked_at: float) -> None:
        """Records that the server has granted the full duration to a request that was sent after
        `asked_at`."""
        # The later request counts, regardless of the order of the responses.
        self._ends_at = max(self._ends_at, asked_at + self.seconds)
        self.renew_at = self._ends_at - self.seconds / 2

    def lose(self) -> None:
        """Records that the lease is over: the server refused it or the work is done."""
        self._lost = True

    def check(self) -> None:
        """Raises FencedError if the lease is over."""
        if self.lost:
            raise FencedError("this worker holds the task no more; nothing was sent")


class InterruptGuard:
    """Decides when a stopping worker may be interrupted: while its function runs, but not during a
    write, because the outcome of a write must be known.

    stopping: whether the worker must stop
    reason: why it must stop, for the log
    """

    def __init__(self) -> None:
        self.stopping = False
        self.reason = "stop() was called"
        self._open = False
        self._writes = 0

    def stop(self, reason: str | None = None) -> None:
        """Makes the worker stop. Takes no lock, because signal handlers call this.

        reason: default: a call of `stop`
        """
        self.reason = reason or self.reason
        self.stopping = True

    @property
    def is_open(self) -> bool:
        """Whether an interruption is allowed now. Takes no lock, because signal handlers call
        this."""
        return self._open and self._writes == 0

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Allows interruption. Raises WorkerStopped at once if the worker is stopping."""
        self._open = True
        try:
            self.check()
            yield
        finally:
            self._open = False

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Runs a write to completion. Raises WorkerStopped afterwards if the worker is stopping."""
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)
        self.check()

    def check(self) -> None:
        """Raises WorkerStopped if the worker is stopping."""
        if self.stopping:
            raise WorkerStopped

    def _count(self, change: int) -> None:
        with FORK_LOCK:
            self._writes += change


def keep(lease: LeaseState, renew: Step, wait: Callable[[float], Any]) -> Work[None]:
    """Renews a lease at half of its time until `wait` reports that the work is done, or the lease
    is lost.

    renew: requests a renewal
    wait: a step that waits for a number of seconds and returns whether the work is done

    A renewal that fails for a reason other than a lost lease is repeated until the lease expires.
    """
    pause = _SHORTEST_PAUSE
    while not lease.lost:
        waits = min(lease.renew_at - lease.clock(), lease.left)
        if waits > 0:
            if (yield partial(wait, waits)):
                return
            continue
        asked_at = lease.clock()
        try:
            yield renew
        except LEASE_LOST_ERRORS as error:
            lease.lose()
            _log.warning("the task was taken away: %s", error)
        except MemorywallError as error:
            _log.warning("the lease could not be renewed, which is tried again: %s", error)
            lease.renew_at = lease.clock() + pause
            pause = min(2 * pause, _LONGEST_PAUSE)
        else:
            lease.renewed(asked_at)
            pause = _SHORTEST_PAUSE


def run_blocking(work: Work[Result]) -> Result:
    """Runs one step after another."""
    try:
        step = next(work)
        while True:
            try:
                answer = step()
            except BaseException as error:
                step = work.throw(error)
            else:
                step = work.send(answer)
    except StopIteration as end:
        result: Result = end.value
        return result


async def run_awaiting(work: Work[Result]) -> Result:
    """Runs and awaits one step after another."""
    try:
        step = next(work)
        while True:
            try:
                answer = await step()
            except BaseException as error:
                step = work.throw(error)
            else:
                step = work.send(answer)
    except StopIteration as end:
        result: Result = end.value
        return result
