"""A lock with many readers or one writer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

Result = TypeVar("Result")


class ReadWriteLock:
    """A lock for one event loop; the readers may read in threads."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._readers = 0
        self._nobody_reads = asyncio.Event()
        self._nobody_reads.set()

    @property
    def is_changing(self) -> bool:
        """Whether a writer has the lock or waits for it."""
        return self._turn.locked()

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        """Holds the lock for reading."""
        async with self._turn:
            self._begin_reading()
        try:
            yield
        finally:
            self._end_reading()

    @asynccontextmanager
    async def changing(self) -> AsyncIterator[None]:
        """Holds the lock for writing."""
        async with self._turn:
            await self._nobody_reads.wait()
            yield

    @asynccontextmanager
    async def reading_after(self, change: Callable[[], Awaitable[Result]]) -> AsyncIterator[Result]:
        """Runs a change, and within the context nothing is changed after it. Gives its result."""
        async with self._turn:
            await self._nobody_reads.wait()
            result = await change()
            self._begin_reading()
        try:
            yield result
        finally:
            self._end_reading()

    def _begin_reading(self) -> None:
        self._readers += 1
        self._nobody_reads.clear()

    def _end_reading(self) -> None:
        self._readers -= 1
        if self._readers == 0:
            self._nobody_reads.set()
