"""All streams of a tenant share one read of its log, and each gets what its own rights allow."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from memorywall.storage.sql.events import SqlEventRepository
from tests.http.checks import MEMORY, make
from tests.support.service import RunningService, draft, open_service

pytestmark = pytest.mark.anyio

CHANGES = "/api/v1/memory/changes"
LIMIT = 30.0


class Stream:
    """An open stream of events.

    may_go_on: while it is not set, the client takes nothing, as one with a full buffer
    """

    def __init__(self, service: RunningService, key: str, path: str) -> None:
        self.seen: list[dict[str, Any]] = []
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()
        self._gone, self._moved = asyncio.Event(), asyncio.Event()
        self._begun = asyncio.Event()
        scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"after=0",
            "headers": [(b"x-api-key", key.encode()), (b"accept", b"text/event-stream")],
        }
        self._task = asyncio.ensure_future(service.app(scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        await self.may_go_on.wait()
        lines = message.get("body", b"").decode().splitlines()
        self.seen += [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
        self._begun.set()
        self._moved.set()

    async def wait_for(self, count: int) -> list[str]:
        """The keys of the entries of the first events."""
        async with asyncio.timeout(LIMIT):
            while len(self.seen) < count:
                self._moved.clear()
                await self._moved.wait()
        return [event["data"].get("key", "") for event in self.seen]

    async def begin(self) -> None:
        """Returns when the first part has come."""
        async with asyncio.timeout(LIMIT):
            await self._begun.wait()

    async def close(self) -> None:
        """Leaves, as a client does."""
        self._gone.set()
        self.may_go_on.set()
        await asyncio.gather(self._task, return_exceptions=True)


@asynccontextmanager
async def _opened(service: RunningService, *asked: tuple[str, str]) -> AsyncIterator[list[Stream]]:
    """Open streams, each with a key and a path."""
    streams = [Stream(service, key, path) for key, path in asked]
    try:
        for one in streams:
            await one.begin()
        yield streams
    finally:
        for one in streams:
            await one.close()


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[RunningService]:
    async with open_service(tmp_path, principal_streams=200, tenant_streams=200) as opened:
        yield opened


async def test_a_commit_is_read_once_for_all_streams_of_its_tenant(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[int] = []
    read = SqlEventRepository.list_from

    async def counted(self: SqlEventRepository, seq: int, limit: int) -> Any:
        reads.append(seq)
        return await read(self, seq, limit)

    key = await service.key("ada")
    ada, elsewhere = service.client(key), await service.agent("ada", tenant="other")
    await make(ada, "first")
    async with _opened(service, *[(key, CHANGES)] * 40) as streams:
        monkeypatch.setattr(SqlEventRepository, "list_from", counted)
        for name in "abc":
            await make(elsewhere, name)
        await make(ada, "second")
        for one in streams:
            assert await one.wait_for(2) == ["first", "second"]
        # A commit of another process may be noticed besides, by a store of many servers.
        assert len(reads) <= 3, reads
        assert len(service.services.log_readers) == 1
    assert not service.services.log_readers


async def test_each_stream_gets_what_its_own_rights_allow(service: RunningService) -> None:
    keys = {name: await service.key(name) for name in ("ada", "bob")}
    ada, bob = (service.client(key) for key in keys.values())
    narrow = await service.key("ada", namespaces=["plans"])
    intent = (await ada.post("/api/v1/intents", json={"title": "Close"})).json()["id"]
    asked = [
        (keys["ada"], CHANGES),
        (narrow, CHANGES),
        (keys["bob"], CHANGES),
        (keys["ada"], "/api/v1/agents/ada/events"),
        (narrow, "/api/v1/agents/ada/events"),
        (keys["bob"], "/api/v1/agents/bob/events"),
        (keys["ada"], f"/api/v1/intents/{intent}/events"),
    ]
    async with _opened(service, *asked) as streams:
        for number in range(3):
            await make(ada, f"a{number}", namespace="plans")
            await make(bob, f"b{number}")
            await make(ada, f"c{number}", memory_type="episodic")
            changed = {"event_type": f"round.{number}", "payload": {}}
            assert (await ada.post(f"/api/v1/intents/{intent}/events", json=changed)).is_success
        whole = [f"{kind}{number}" for number in range(3) for kind in "ac"]
        plans, own = whole[::2], [f"b{number}" for number in range(3)]
        for place, wanted in ((0, whole), (1, plans), (2, own), (4, plans), (5, own)):
            assert await streams[place].wait_for(len(wanted)) == wanted, place
        assert (await streams[3].wait_for(len(whole)))[-len(whole) :] == whole
        await streams[6].wait_for(4)
        assert [event["type"] for event in streams[6].seen][-3:] == [
            f"round.{number}" for number in range(3)
        ]
        # What came for the others after the last event of a stream is not delivered to it.
        before = [len(streams[place].seen) for place in (0, 1, 3, 4)]
        await make(ada, "end", namespace="plans")
        for place, count in zip((0, 1, 3, 4), before, strict=True):
            assert (await streams[place].wait_for(count + 1))[-1] == "end"
        assert [len(streams[place].seen) for place in (2, 5, 6)] == [3, 3, 4]


async def test_a_slow_stream_loses_nothing_and_holds_up_nobody(service: RunningService) -> None:
    key = await service.key("ada")
    ada = service.client(key)
    path = "/api/v1/agents/ada/events"
    async with _opened(service, (key, CHANGES), (key, CHANGES), (key, path)) as streams:
        fast, *slow = streams
        for one in slow:
            one.may_go_on.clear()
        names = [f"k{number}" for number in range(1_300)]
        for start in range(0, len(names), 100):
            elements = [draft(name, value={}) for name in names[start : start + 100]]
            reply = await ada.post(f"{MEMORY}/batch", json={"entries": elements})
            assert reply.is_success, reply.text
        assert await fast.wait_for(len(names)) == names
        (reader,) = service.services.log_readers.values()
        # Only what was read last is kept for those that are slow.
        assert len(reader.events_after(reader.end - 1)) == 1
        assert reader.events_after(0) is None
        for one in slow:
            one.may_go_on.set()
            assert await one.wait_for(len(names)) == names
