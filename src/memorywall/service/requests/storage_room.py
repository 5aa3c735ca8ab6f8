"""Whether the store has room for writes, for `/ready`."""

from __future__ import annotations

import time

from memorywall.records.errors import StorageFullError
from memorywall.storage.port import Store

_LOOK_AGAIN = 1.0
"""Seconds between two checks, each of which writes to the disk."""


class StorageRoom:
    """Whether writes are refused because the disk is full.

    A refused write says so first. Then a check that writes as much as a large request decides, and
    not the next write: a small one may still be stored where larger ones are refused.
    """

    def __init__(self) -> None:
        self._reason: str | None = None
        self._checked_at = float("-inf")

    def note_refusal(self, error: StorageFullError) -> None:
        """Records that a write was refused."""
        self._reason = error.detail

    async def find_reason(self, store: Store) -> str | None:
        """Returns why writes are refused now; None if they are not."""
        now = time.monotonic()
        if self._reason is not None and now - self._checked_at >= _LOOK_AGAIN:
            self._checked_at = now
            try:
                await store.check_room()
            except StorageFullError:
                pass
            else:
                self._reason = None
        return self._reason
