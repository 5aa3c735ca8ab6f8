"""Signal handling of commands that must release resources."""

from __future__ import annotations

import signal
from collections.abc import Iterator
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
