"""Signal handling of commands that must release resources."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

BY_SIGNAL = 128
"""The exit code of a process that a signal has ended is this number plus the signal."""


@contextmanager
def handle_sigterm() -> Iterator[None]:
    """While the context is open, SIGTERM ends the program like Ctrl-C, so that resources are
    released."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise SystemExit(BY_SIGNAL + number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)


@contextmanager
def defer_sigterm() -> Iterator[Callable[[], None]]:
    """Defers SIGTERM until the function that the context returns is called, at the latest until the
    end of the context. A resource that is acquired meanwhile is surely released afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})

    def release() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    try:
        yield release
    finally:
        release()
