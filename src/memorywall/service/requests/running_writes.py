"""The short writes that are running, to which searches give way.

A write uses the interpreter for some tenths of a millisecond, in several turns of the event loop
and of the writer's thread. A search holds it for milliseconds, so a write would wait for a search
in each of its turns, and take several times as long beside searches as alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Condition, Lock
from types import TracebackType

_LONGEST_WAIT = 0.01
"""Seconds that a step of a search waits for writes in total, so that endless writes do not stop
searches."""
_RECENT = 1.0
"""Seconds after a write in which the next one is expected."""


class RunningWrites:
    """A context that is entered for each short write, in any thread.

    clock: seconds, which only grow
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._count = 0
        self._none = Condition(self._lock)
        self._expected_until = float("-inf")

    def __enter__(self) -> None:
        with self._lock:
            self._count += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            self._count -= 1
            self._expected_until = self._clock() + _RECENT
            if not self._count:
                self._none.notify_all()

    @property
    def are_expected(self) -> bool:
        """Whether a write is running, or has just ended."""
        return self._count > 0 or self._clock() < self._expected_until

    def giving_way(self) -> Callable[[], None]:
        """Returns a function for one step of a search, which calls it often in a thread: it waits
        while writes are running, 10 milliseconds in all its calls together."""
        left = _LONGEST_WAIT

        def give_way() -> None:
            nonlocal left
            if left > 0 and self._count:
                begun = self._clock()
                with self._lock:
                    if self._count:
                        self._none.wait(left)
                left -= self._clock() - begun

        return give_way
