"""A task's lease as its holder sees it, and what keeps it.

The holder judges its time by its own clock, from before it asked: the server counts from when the
question arrived, so the holder never believes in its lease longer than the server does. However
late a paused worker wakes, it finds its time over before it writes.
"""

from __future__ import annotations

import logging
import threading
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

Result = TypeVar("Result")
Step: TypeAlias = Callable[[], Any]
"""Something to be done; what it returns, or what that comes to when awaited, is sent back."""
Work: TypeAlias = Generator[Step, Any, Result]

LEASE_LOST_ERRORS = (FencedError, MemoryAccessError, MemoryNotFoundError)
"""What the server answers when a task is not, or no more, the caller's to work on."""
_SHORTEST_PAUSE = 0.05
_LONGEST_PAUSE = 1.0
_log = logging.getLogger("memorywall.worker")


class WorkerStopped(BaseException):
    """The worker is stopping; its task goes back. Like KeyboardInterrupt, it is not caught with
    the errors of a function, which lets it through."""


class LeaseState:
    """What a worker believes of the lease it works under.

    token: the fencing token that goes with every write
    seconds: how long the lease lasts when it is taken or renewed
    renew_at: when by `clock` it is to be renewed next; at first at half its time
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
        """Whether it is over. What is once lost is lost, whatever reply arrives later."""
        if not self._lost and self.clock() >= self._ends_at:
            self._lost = True
        return self._lost

    @property
    def left(self) -> float:
        """Seconds until it is over, unless it is renewed."""
        return max(0.0, self._ends_at - self.clock())

    def renewed(self, asked_at: float) -> None:
        """The server has granted its whole time, to a request sent after `asked_at`."""
        # Of two replies the later question counts, whichever arrives last.
        self._ends_at = max(self._ends_at, asked_at + self.seconds)
        self.renew_at = self._ends_at - self.seconds / 2

    def lose(self) -> None:
        """It is over, by the server's word or because the work is done."""
        self._lost = True

    def check(self) -> None:
        """Raises FencedError if it is over."""
        if self.lost:
            raise FencedError("this worker holds the task no more; nothing was sent")


class InterruptGuard:
    """When a worker that is asked to stop may be interrupted: while its function runs, but not in
    the midst of a write, after which it is known what has been done."""

    def __init__(self) -> None:
        self.stopping = False
        self._open = False
        self._writes = 0
        self._lock = threading.Lock()

    @property
    def is_open(self) -> bool:
        """Whether it can be interrupted at this moment. Takes no lock: signal handlers ask."""
        return self._open and self._writes == 0

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Lets it be interrupted. Raises WorkerStopped at once if it is stopping."""
        self._open = True
        try:
            self.check()
            yield
        finally:
            self._open = False

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A write, which is finished before anything else. Raises WorkerStopped after it."""
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)
        self.check()

    def check(self) -> None:
        """Raises WorkerStopped if it is stopping."""
        if self.stopping:
            raise WorkerStopped

    def _count(self, change: int) -> None:
        with self._lock:
            self._writes += change


def keep(lease: LeaseState, renew: Step, wait: Callable[[float], Any]) -> Work[None]:
    """Renews a lease at half its time until `wait` says that the work is done, or it is lost.

    renew: asks the server
    wait: a step that lets seconds pass and says whether the work is done
    A renewal that fails for another reason than that the lease is lost is tried again until its
    time is over.
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
    """Does one step after the other."""
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
    """Does one step after the other, and awaits each."""
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
