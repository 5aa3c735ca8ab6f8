"""Many may read at once; whoever changes something waits until nobody reads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Gate:
    """Belongs to one event loop; what is read may be read in threads."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._readers = 0
        self._nobody_reads = asyncio.Event()
        self._nobody_reads.set()

    @property
    def is_changing(self) -> bool:
        """Whether somebody changes something, or waits to."""
        return self._turn.locked()

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        """Within it nothing is changed."""
        async with self._turn:
            self._readers += 1
            self._nobody_reads.clear()
        try:
            yield
        finally:
            self._readers -= 1
            if self._readers == 0:
                self._nobody_reads.set()

    @asynccontextmanager
    async def changing(self) -> AsyncIterator[None]:
        """Within it nobody reads and nobody else changes anything."""
        async with self._turn:
            await self._nobody_reads.wait()
            yield
