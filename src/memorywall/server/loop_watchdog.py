"""Notices callbacks that hold the event loop, by the processor time that they use.

A thread looks at the processor time of the loop's thread, so that requests pay nothing for the
measurement, and so that a busy machine does not make short callbacks look long. While the loop is
busy, the thread asks it for a sign. The loop gives the sign after the callbacks that were ready, of
which there may be many short ones; those looks that find the same callback running tell how long
that one has taken at least.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from memorywall.service.requests.operation_context import OperationCall
from memorywall.service.requests.request_statistics import LoopStatistics
from memorywall.wire.operation import Operation

LONGEST = 0.02
"""Seconds of processor time that a callback may use."""
_INTERVAL = 0.015
"""Seconds between two looks. Each takes the interpreter from the loop for some ten microseconds."""
_BUSY = 0.002
"""Seconds of processor time in an interval, above which the loop is asked for a sign."""
_log = logging.getLogger("memorywall.server")


@contextmanager
def watch_loop(statistics: LoopStatistics) -> Iterator[None]:
    """Measures the running event loop while the context is open.

    Does nothing on a system that does not tell the processor time of another thread.
    """
    if not hasattr(time, "pthread_getcpuclockid"):
        yield
        return
    watchdog = _Watchdog(asyncio.get_running_loop(), statistics)
    watchdog.start()
    try:
        yield
    finally:
        watchdog.stop.set()
        watchdog.join()


class _Watchdog(threading.Thread):
    """Watches the event loop of the thread that makes it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, statistics: LoopStatistics) -> None:
        super().__init__(name="memorywall-watchdog", daemon=True)
        self._loop = loop
        self._statistics = statistics
        self._watched = threading.get_ident()
        self._clock = time.pthread_getcpuclockid(self._watched)
        self._is_asked = False
        self._asked_at = 0.0
        # The callback that ran when the loop was asked, and for how long it has been seen since.
        self._seen = 0
        self._held = 0.0
        self.stop = threading.Event()

    def run(self) -> None:
        """Looks at the loop until `stop` is set."""
        last = time.clock_gettime(self._clock)
        # After the loop is closed there is nothing to watch.
        with suppress(RuntimeError):
            while not self.stop.wait(_INTERVAL):
                now = time.clock_gettime(self._clock)
                self._note_progress(now, now - last > _BUSY)
                last = now

    def _note_progress(self, now: float, is_busy: bool) -> None:
        frame = sys._current_frames().get(self._watched)
        if self._is_asked:
            if _callback_of(frame) == self._seen:
                self._held = now - self._asked_at
            else:
                self._seen = 0
        elif is_busy:
            self._is_asked, self._asked_at, self._held = True, now, 0.0
            self._seen = _callback_of(frame)
            self._loop.call_soon_threadsafe(self._answer, _name_of(frame))

    def _answer(self, running: str) -> None:
        """On the loop: the callback during which the thread asked has ended.

        running: the name of its operation
        """
        self._is_asked = False
        self._statistics.observe(self._held, LONGEST)
        if self._held > LONGEST:
            extra = {"operation": running, "ms": round(self._held * 1000)}
            _log.warning("a callback has held the event loop", extra=extra)


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    """The frames of a callback in a stack, the outermost one last."""
    while frame is not None and frame.f_globals.get("__name__") != "asyncio.runners":
        yield frame
        frame = frame.f_back


def _callback_of(frame: FrameType | None) -> int:
    """Returns the identity of the outermost frame of a callback in a stack."""
    outermost = 0
    for one in _frames(frame):
        outermost = id(one)
    return outermost


def _name_of(frame: FrameType | None) -> str:
    """Returns the operation that a stack works for; otherwise the function that its outermost
    callback runs."""
    name = "unknown"
    for one in _frames(frame):
        code = one.f_code
        if one.f_globals.get("__name__", "").startswith("memorywall."):
            name = code.co_qualname
        for local in {"call", "operation"}.intersection(code.co_varnames + code.co_freevars):
            found = one.f_locals.get(local)
            found = found.operation if isinstance(found, OperationCall) else found
            if isinstance(found, Operation):
                return found.name
    return name
