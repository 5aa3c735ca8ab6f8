"""Tracks the pages that checkpoints have moved from the write-ahead log into the database."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from struct import Struct

_HEADER = Struct(">8xI4xI12x")
"""Of the log header: the page size, and a number that grows by one when the log is restarted."""
_FRAME_HEADER = 24
_FRAMES_AT_ONCE = 64


class WalLostError(Exception):
    """Checkpoints have moved unseen pages: any page may be one of them."""


class WalPages:
    """Follows the log from checkpoint to checkpoint. A reader must be open from before
    `read_header` until after `moved_until`, because it prevents a restart of the log.

    Only this process makes checkpoints, so it has seen all of a restarted log. A checkpoint of
    another program is detected by the number in the log's header as soon as the log was restarted
    twice between two calls.
    """

    def __init__(self, log: Path) -> None:
        self._log = log
        self._run: int | None = None
        self._page_size = 0
        self._seen = 0

    def read_header(self) -> None:
        """Call before a checkpoint. Raises WalLostError; the next call continues from there."""
        expected, self._run = self._run, None
        try:
            with self._log.open("rb") as log:
                header = log.read(_HEADER.size)
        except FileNotFoundError:
            header = b""
        if len(header) == _HEADER.size:
            self._page_size, self._run = _HEADER.unpack(header)
        if self._run != expected or expected is None:
            self._seen = 0
            if expected is not None and self._run != (expected + 1) % 2**32:
                raise WalLostError

    def moved_until(self, frames: int) -> Iterator[int]:
        """Call after a checkpoint that has moved the first `frames` of the log. Returns the pages
        of the frames that the last checkpoint had not moved. Raises WalLostError."""
        frame = _FRAME_HEADER + self._page_size
        page_of_frame = Struct(f">I{frame - 4}x")
        if self._seen >= frames:
            return
        buffer = memoryview(bytearray(_FRAMES_AT_ONCE * frame))
        with self._log.open("rb", buffering=0) as log:
            while self._seen < frames:
                count = min(frames - self._seen, _FRAMES_AT_ONCE)
                block = buffer[: count * frame]
                place = _HEADER.size + self._seen * frame
                if os.preadv(log.fileno(), [block], place) != len(block):
                    raise WalLostError
                for (page,) in page_of_frame.iter_unpack(block):
                    yield page
                self._seen += count

    def pass_over(self, frames: int) -> None:
        """Replaces `moved_until` if the pages are irrelevant."""
        self._seen = max(self._seen, frames)

    def emptied(self) -> None:
        """Records that the log was truncated after all of it was seen."""
        self._run = None
        self._seen = 0
