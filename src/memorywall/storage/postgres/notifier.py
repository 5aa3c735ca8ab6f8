"""Wakes the followers of a log after a commit of any process.

A commit of this process wakes them at once. Commits of other processes are detected by polling the
rows in `heads` of the followed tenants, several times a second and only while there are followers.
No notification of the database is used.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

_INTERVAL = 0.1

Progress = Callable[[list[str]], Awaitable[dict[str, int]]]
"""Returns the number of commits of each of these tenants."""


class PostgresNotifier:
    """All followers, by tenant."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._watches: dict[str, set[PostgresWatch]] = {}
        self._seen: dict[str, int] = {}
        self._task: asyncio.Task[None] | None = None

    def watch(self, tenant: str) -> PostgresWatch:
        watch = PostgresWatch(self, tenant)
        self._watches.setdefault(tenant, set()).add(watch)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._notify_of_commits())
        return watch

    def forget(self, watch: PostgresWatch) -> None:
        watches = self._watches.get(watch.tenant, set())
        watches.discard(watch)
        if not watches:
            self._watches.pop(watch.tenant, None)
            self._seen.pop(watch.tenant, None)

    def notify(self, tenant: str) -> None:
        for watch in self._watches.get(tenant, ()):
            watch.wake()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _notify_of_commits(self) -> None:
        try:
            while self._watches:
                # While the database cannot be reached there are no commits to report.
                with suppress(Exception):
                    for tenant, commits in (await self._progress(list(self._watches))).items():
                        if self._seen.get(tenant) != commits:
                            self._seen[tenant] = commits
                            self.notify(tenant)
                await asyncio.sleep(_INTERVAL)
        finally:
            self._task = None


class PostgresWatch:
    """`port.Watch` over the commits of a tenant."""

    def __init__(self, notifier: PostgresNotifier, tenant: str) -> None:
        self.tenant = tenant
        self._notifier = notifier
        self._event = asyncio.Event()

    def wake(self) -> None:
        self._event.set()

    async def changed(self, timeout: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._event.wait()
        self._event.clear()

    def close(self) -> None:
        self._notifier.forget(self)
