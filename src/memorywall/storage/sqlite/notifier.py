"""Wakes the followers of a log after a commit."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress


class SqliteNotifier:
    """All followers. `notify` may be called from any thread."""

    def __init__(self) -> None:
        self._watches: set[SqliteWatch] = set()
        self._guard = threading.Lock()

    def watch(self) -> SqliteWatch:
        watch = SqliteWatch(self, asyncio.get_running_loop())
        with self._guard:
            self._watches.add(watch)
        return watch

    def forget(self, watch: SqliteWatch) -> None:
        with self._guard:
            self._watches.discard(watch)

    def notify(self) -> None:
        if not self._watches:
            return
        with self._guard:
            watches = list(self._watches)
        for watch in watches:
            watch.wake()


class SqliteWatch:
    """`port.Watch` within one process."""

    def __init__(self, notifier: SqliteNotifier, loop: asyncio.AbstractEventLoop) -> None:
        self._notifier = notifier
        self._loop = loop
        self._event = asyncio.Event()

    def wake(self) -> None:
        """Called in the writer's thread."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._event.set)

    async def changed(self, timeout: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._event.wait()
        self._event.clear()

    def close(self) -> None:
        self._notifier.forget(self)
