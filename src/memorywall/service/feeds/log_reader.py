"""Reads the log of a tenant once for all feeds that follow it.

After each commit of the tenant one task reads the new events and wakes the feeds, some at a time,
so that other requests run between them. A feed takes from these events what its own filter and
rights let through. A feed has a position and no queue: one that falls behind reads the log itself,
so that it delays no other feed and its place in memory does not grow.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from memorywall.records.errors import MemorywallError
from memorywall.records.event import Event
from memorywall.service.requests.services import SharedServices
from memorywall.storage.port import Transaction

PAGE = 500
"""The most events of the log that are read at once."""
KEEP_ALIVE = 15.0
"""Seconds without events until a stream sends a keep-alive."""
_WOKEN_AT_ONCE = 4
_PAUSE = 0.5
"""Seconds until the log is read again after an error."""


class _ReadEvents(NamedTuple):
    """The events of a log after a `seq`, up to another."""

    start: int
    end: int
    events: list[Event]


class LogReader:
    """The only reader of a tenant's log in an event loop, while feeds follow it.

    is_over: is called when the last feed has left
    """

    def __init__(self, service: SharedServices, tenant: str, is_over: Callable[[], object]) -> None:
        self._store = service.store
        self._tenant = tenant
        self._is_over = is_over
        self._watch = service.store.watch(tenant)
        self._followers: set[LogFollower] = set()
        self._latest: _ReadEvents | None = None
        self._task = asyncio.get_running_loop().create_task(self._run())

    def join(self) -> LogFollower:
        """Adds a feed, which is woken by every commit from now on."""
        follower = LogFollower(self)
        self._followers.add(follower)
        return follower

    def leave(self, follower: LogFollower) -> None:
        """Removes a feed."""
        self._followers.discard(follower)
        if not self._followers:
            self._is_over()
            self._task.cancel()
            self._watch.close()

    @property
    def end(self) -> int:
        """The `seq` up to which the log was read; 0 if unknown."""
        return 0 if self._latest is None else self._latest.end

    def events_after(self, seq: int) -> list[Event] | None:
        """The events that were read last, after a `seq`; None if the log must be read from there,
        because more were read since."""
        latest = self._latest
        if latest is None or seq < latest.start:
            return None
        if seq >= latest.end:
            return []
        return latest.events[seq - latest.end :]

    async def _run(self) -> None:
        # Nothing was committed since the first feed has joined, unless the watch tells it.
        await self._read_on()
        while True:
            if self._latest is None or len(self._latest.events) < PAGE:
                await self._watch.changed(KEEP_ALIVE)
            await self._read_on()
            for place, follower in enumerate(list(self._followers), start=1):
                follower.wake()
                if place % _WOKEN_AT_ONCE == 0:
                    await asyncio.sleep(0)

    async def _read_on(self) -> None:
        """Reads the events after those that were read last; where these are unknown, only the end
        of the log."""
        latest = self._latest

        async def script(transaction: Transaction) -> list[Event]:
            if latest is not None:
                return await transaction.events.list_from(latest.end + 1, PAGE)
            last = await transaction.events.latest()
            return [] if last is None else [last]

        try:
            events = await self._store.read(self._tenant, script)
        except MemorywallError:
            # Each feed meets the error itself.
            self._latest = None
            await asyncio.sleep(_PAUSE)
            return
        end = events[-1].seq if events else 0 if latest is None else latest.end
        self._latest = _ReadEvents(end - len(events), end, events)


class LogFollower:
    """A feed that follows the log of a tenant."""

    def __init__(self, reader: LogReader) -> None:
        self.reader = reader
        self._woken = asyncio.Event()
        self.wake = self._woken.set

    async def changed(self, timeout: float) -> None:
        """Returns after a commit of the tenant since the last call whose events were read, or after
        `timeout` seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._woken.wait()
        self._woken.clear()

    def close(self) -> None:
        """Ends the feed."""
        self.reader.leave(self)


def follow_log(service: SharedServices, tenant: str) -> LogFollower:
    """Joins the reader of a tenant's log in this event loop, which the first feed starts."""
    # A store without HTTP may be followed in several event loops.
    place = (tenant, asyncio.get_running_loop())
    readers: dict[Any, LogReader] = service.log_readers
    reader = readers.get(place)
    if reader is None:
        reader = LogReader(service, tenant, lambda: readers.pop(place, None))
        readers[place] = reader
    return reader.join()
