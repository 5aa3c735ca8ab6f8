"""A client that goes away leaves no task and no watcher of the log behind.

From outside a process that cannot be seen, so here the application runs in this one.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from memorywall.storage.event_log import Watch
from tests.support.service import RunningService, draft

pytestmark = pytest.mark.anyio

_CLIENTS = 32
"""As many as a principal may have by default."""


class CountedWatch:
    """A watch that tells when it is closed."""

    def __init__(self, inner: Watch, open_watches: set[CountedWatch]) -> None:
        self._inner = inner
        self._open = open_watches
        self._open.add(self)

    async def changed(self, timeout: float) -> None:
        await self._inner.changed(timeout)

    def close(self) -> None:
        self._inner.close()
        self._open.discard(self)


async def _follow(
    service: RunningService, key: str, gone: asyncio.Event, begun: asyncio.Semaphore
) -> None:
    async def receive() -> dict[str, Any]:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if b"memory.created" in message.get("body", b""):
            begun.release()

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/api/v1/agents/agent/events",
        "raw_path": b"/api/v1/agents/agent/events",
        "query_string": b"",
        "headers": [(b"x-api-key", key.encode()), (b"accept", b"text/event-stream")],
    }
    await service.app(scope, receive, send)


async def test_cut_event_streams_leave_nothing_behind(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    watches: set[CountedWatch] = set()
    make = service.services.store.watch
    monkeypatch.setattr(
        service.services.store, "watch", lambda tenant: CountedWatch(make(tenant), watches)
    )
    key = await service.key("agent")
    async with service.client(key) as client:
        assert (await client.post("/api/v1/memory", json=draft())).status_code == 201
        standing = len(asyncio.all_tasks())
        gone, begun = asyncio.Event(), asyncio.Semaphore(0)
        followers = [
            asyncio.create_task(_follow(service, key, gone, begun)) for _ in range(_CLIENTS)
        ]
        async with asyncio.timeout(20):
            for _ in range(_CLIENTS):
                await begun.acquire()
        # One reader of the log serves them all.
        assert len(watches) == 1
        gone.set()
        async with asyncio.timeout(20):
            await asyncio.gather(*followers)
        assert not watches
        assert not service.services.log_readers
        async with asyncio.timeout(20):
            while len(asyncio.all_tasks()) != standing:
                await asyncio.sleep(0)
        assert (await client.post("/api/v1/memory", json=draft("next"))).status_code == 201
