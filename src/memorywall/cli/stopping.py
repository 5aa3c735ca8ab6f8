"""How commands end that have something to give back first."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

BY_SIGNAL = 128
"""What is added to a signal's number to make the exit code of what it ended."""


@contextmanager
def heeding_sigterm() -> Iterator[None]:
    """While this lasts, SIGTERM ends the program from where it is, as Ctrl-C does: what is held is
    given back on the way out."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise SystemExit(BY_SIGNAL + number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)
