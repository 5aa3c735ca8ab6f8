"""Measures the callbacks of event loops exactly, by the processor time of their thread."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Callbacks:
    """What the callbacks of a `watched` context have used.

    longest: the most processor time of one, in seconds; `reset` begins again
    name: what that callback runs
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.longest = 0.0
        self.name = ""

    def observe(self, handle: asyncio.Handle, seconds: float) -> None:
        if seconds > self.longest:
            self.longest, self.name = seconds, repr(handle)


@contextmanager
def watched() -> Iterator[Callbacks]:
    """Measures every callback of asyncio's own event loop while the context is open."""
    measured = Callbacks()
    run = asyncio.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        begun = time.thread_time()
        run(handle)
        measured.observe(handle, time.thread_time() - begun)

    asyncio.Handle._run = timed  # type: ignore[method-assign]
    try:
        yield measured
    finally:
        asyncio.Handle._run = run  # type: ignore[method-assign]
