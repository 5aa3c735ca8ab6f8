"""Wakes the followers of a tenant's log after a commit."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from contextlib import suppress


class SqliteNotifier:
    """All followers, by tenant. `notify` may be called from any thread."""

    def __init__(self) -> None:
        self._watches: dict[str, set[SqliteWatch]] = {}
        self._guard = threading.Lock()

    def watch(self, tenant: str) -> SqliteWatch:
        watch = SqliteWatch(self, tenant, asyncio.get_running_loop())
        with self._guard:
            self._watches.setdefault(tenant, set()).add(watch)
        return watch

    def forget(self, watch: SqliteWatch) -> None:
        with self._guard:
            watches = self._watches.get(watch.tenant, set())
            watches.discard(watch)
            if not watches:
                self._watches.pop(watch.tenant, None)

    def notify(self, tenants: Iterable[str]) -> None:
        if not self._watches:
            return
        with self._guard:
            watches = [one for tenant in tenants for one in self._watches.get(tenant, ())]
        for watch in watches:
            watch.wake()


class SqliteWatch:
    """`port.Watch` within one process."""

    def __init__(
        self, notifier: SqliteNotifier, tenant: str, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.tenant = tenant
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
