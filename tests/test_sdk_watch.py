"""`memory.watch` and `shared.watch` of both colours over both transports, and kept reads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import memorywall
from memorywall import AsyncClient, Client
from memorywall.exceptions import (
    AuthenticationError,
    CursorLostError,
    MemoryAccessError,
    MemoryConflictError,
    MemoryTransportError,
    ValidationError,
)
from memorywall.records.principal import Permission
from memorywall.records.tier import Tier
from memorywall.sdk.read_cache import ReadCache
from memorywall.sdk.streams import ServerSentEvents
from memorywall.service.administration.tenants import revoke_key
from tests.support.asgi import AsgiTransport
from tests.support.service import RunningService
from tests.test_sdk_support import World, fresh, server, take, world

__all__ = ["server", "world"]

pytestmark = pytest.mark.anyio

LIMIT = 30.0


async def test_a_watch_tells_what_others_change(world: World) -> None:
    ada, grace = world.client(fresh("ada")), world.client(fresh("grace"))
    scope = f"team:{fresh('red')}"
    start = (await grace.memory.changes()).next
    assert await grace.memory.changes(start) == []
    namespace = fresh("facts")
    made = await ada.memory.set(namespace, "a", {"n": 1}, "semantic")
    await ada.memory.set("own", "hidden", {})
    await ada.memory.set(namespace, "a", {"n": 2})
    await ada.memory.delete(namespace, "a")
    watched = grace.target.memory.watch(namespace, after=start)
    events = await take(watched, 3)
    assert [event.type for event in events] == [
        "memory.created", "memory.updated", "memory.deleted",
    ]  # fmt: skip
    assert {event.data.entry_id for event in events} == {made.id}
    assert [event.data.version for event in events] == [1, 2, 2]
    page = await grace.memory.changes(start, namespace=namespace, memory_type="semantic", limit=2)
    assert (list(page), page.next, page.more) == (events[:2], events[1].seq, True)
    await ada.shared.set("plan", {}, scope)
    assert [one.data.key for one in await take(ada.target.shared.watch(scope, after=start), 1)] == [
        "plan"
    ]
    with pytest.raises(MemoryAccessError):
        await take(grace.target.shared.watch(scope, after=start), 1)
    with pytest.raises(CursorLostError):
        await take(grace.target.memory.watch(after=1 << 40), 1)
    with pytest.raises(TypeError, match="colour"):
        await grace.memory.changes(colour="red")


def test_a_watch_of_another_thread_ends_with_the_client(place: Path | str) -> None:
    """Without a server, too, an event arrives while the watch waits, and closing ends it."""
    seen: list[str] = []
    progress = threading.Condition()
    ended: list[BaseException] = []
    with memorywall.open(place, agent="ada") as client:

        def follow() -> None:
            try:
                for event in client.shared.watch():
                    with progress:
                        seen.append(event.data.key)
                        progress.notify_all()
            except BaseException as error:
                ended.append(error)

        follower = threading.Thread(target=follow, daemon=True)
        position = client.memory.changes().next
        follower.start()
        number = 0
        with progress:
            # The watch begins at the present of its start, which may be after the first writes.
            while not progress.wait_for(lambda: bool(seen), timeout=0.05):
                number += 1
                client.shared.set(f"k{number}", {})
        told = [event.data.key for event in client.memory.changes(position, scope="global")]
        assert seen == told[-len(seen) :]
    follower.join(timeout=LIMIT)
    assert not follower.is_alive()
    assert isinstance(ended[0], MemoryTransportError | RuntimeError)


class Network:
    """The application in this process behind a network that fails as a test asks.

    cut: breaks a stream after its next event
    failures: how many of the next requests fail unsent
    """

    def __init__(self, service: RunningService) -> None:
        self._inner = AsgiTransport(service.app)
        self.cut = False
        self.failures = 0
        self.requests: list[httpx.Request] = []

    async def handle(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if self.failures:
            self.failures -= 1
            raise httpx.ConnectError("refused, as the test asked", request=request)
        response = await self._inner.handle_async_request(request)
        if "event-stream" in response.headers.get("content-type", ""):
            stream = response.stream
            assert isinstance(stream, httpx.AsyncByteStream)
            response.stream = _Cut(self, stream)
        return response

    def client(self, key: str) -> AsyncClient:
        transport = httpx.MockTransport(self.handle)
        return AsyncClient("http://memorywall.test", key, transport=transport)


class _Cut(httpx.AsyncByteStream):
    def __init__(self, network: Network, stream: httpx.AsyncByteStream) -> None:
        self._network = network
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            yield piece
            if self._network.cut and b"data:" in piece:
                self._network.cut = False
                raise httpx.ReadError("cut, as the test asked")

    async def aclose(self) -> None:
        await self._stream.aclose()


async def test_a_watch_resumes_after_a_cut_and_pauses_are_bounded(service: RunningService) -> None:
    network = Network(service)
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    async with await service.agent("ada") as ada, network.client(await service.key("g")) as grace:
        grace.memory.driver.pause = pause
        watched = grace.memory.watch(scope="global")
        waiting = asyncio.ensure_future(anext(watched))
        while not any("text/event-stream" in one.headers["Accept"] for one in network.requests):
            await asyncio.sleep(0)
        keys = []
        for number in range(3):
            network.cut, network.failures = True, 9 if number else 0
            await ada.post("/api/v1/memory", json=_state(f"k{number}"))
            async with asyncio.timeout(LIMIT):
                keys.append((await waiting).data.key)
                waiting = asyncio.ensure_future(anext(watched))
                await asyncio.sleep(0)
        assert keys == ["k0", "k1", "k2"]
        network.failures = 1 << 30
        network.cut = True
        await ada.post("/api/v1/memory", json=_state("k3"))
        async with asyncio.timeout(LIMIT):
            # The stream may have been open again when the network went away.
            await asyncio.wait([waiting])
            if waiting.exception() is None:
                waiting = asyncio.ensure_future(anext(watched))
            with pytest.raises(MemoryTransportError):
                await waiting
    assert max(pauses) == 2.0
    resumed = [int(one.headers["Last-Event-ID"]) for one in network.requests
               if "Last-Event-ID" in one.headers]  # fmt: skip
    assert resumed == sorted(resumed)


def _state(key: str, **fields: Any) -> dict[str, Any]:
    name = {"namespace": "shared/global", "memory_type": "shared"}
    return {"key": key, "value": {"n": 1}, **name, **fields}


async def test_a_watch_raises_the_error_that_ends_its_stream(service: RunningService) -> None:
    key = await service.key("grace")
    network = Network(service)
    async with await service.agent("ada") as ada, network.client(key) as grace:
        await ada.post("/api/v1/memory", json=_state("a"))
        watched = grace.memory.watch(after=0)
        assert (await anext(watched)).data.key == "a"
        assert await revoke_key(service.services, key.partition(".")[0])
        await ada.post("/api/v1/memory", json=_state("b"))
        sent = len(network.requests)
        async with asyncio.timeout(LIMIT):
            with pytest.raises(AuthenticationError):
                await anext(watched)
        assert len(network.requests) == sent, "the stream itself tells why it ended"


def test_ids_and_kinds_of_messages_are_read_however_they_are_cut() -> None:
    text = (
        b": alive\n\nid: 7\n\nid: 8\nevent: e\ndata: a\ndata:b\nretry: 1\n\n"
        b"event: problem\r\ndata: {}\r\n\r\n"
    )
    for size in range(1, len(text)):
        parser = ServerSentEvents()
        pieces = [text[place : place + size] for place in range(0, len(text), size)]
        messages = [tuple(one) for piece in pieces for one in parser.messages(piece)]
        assert messages == [(b"7", b"", None), (b"8", b"e", b"a\nb"), (b"", b"problem", b"{}")]


# Kept reads


class Ticking:
    """A clock that stands still until a test moves it."""

    def __init__(self, client: AsyncClient | Client) -> None:
        self.seconds = 0.0
        client.memory.driver.clock = lambda: self.seconds


async def test_reads_of_a_named_namespace_are_kept(service: RunningService) -> None:
    network = Network(service)
    async with await service.agent("ada") as ada, network.client(await service.key("g")) as grace:
        clock = Ticking(grace)
        made = (await ada.post("/api/v1/memory", json=_state("a"))).json()
        path = f"/api/v1/memory/{made['id']}"

        async def read() -> tuple[int, int]:
            """The version by name, and the number of requests for it."""
            before = len(network.requests)
            entry = await grace.shared.get("a")
            assert entry is not None
            entry.value["n"] = -1  # What one caller does to a value is nobody else's matter.
            same = await grace.memory.get_by_id(entry.id)
            assert (same.version, same.value) == (entry.version, {"n": 1})
            return entry.version, len(network.requests) - before

        assert await read() == (1, 2)
        await grace.memory.cache("shared/global", max_age=10)
        assert await read() == (1, 1)
        await ada.patch(path, json={"pinned": True}, headers={"If-Match": "1"})
        clock.seconds = 9.9
        assert await read() == (1, 0)
        clock.seconds = 10.0
        assert await read() == (2, 1)
        clock.seconds = 20.0
        assert await read() == (2, 1)
        asked = network.requests[-1]
        assert asked.headers["If-None-Match"] == f'"{made["id"]}.2"'
        # The feed drops what others have changed, by its page and by its stream.
        start = (await grace.memory.changes()).next
        await ada.patch(path, json={"pinned": False}, headers={"If-Match": "2"})
        assert await read() == (2, 0)
        assert len(await grace.memory.changes(start)) == 1
        assert await read() == (3, 1)
        await ada.patch(path, json={"pinned": True}, headers={"If-Match": "3"})
        watched = grace.memory.watch(after=start)
        for _ in range(2):
            await anext(watched)
        assert await read() == (4, 1)
        await watched.aclose()
        assert await read() == (4, 1), "without the feed nothing is known to be current"
        # Own writes.
        await grace.shared.set("a", {"n": 1})
        assert await read() == (5, 1)
        await grace.memory.put("shared/global", "a", {"n": 1}, "shared")
        assert await read() == (6, 1)
        await grace.memory.batch([{"namespace": "shared/global", "key": "a", "value": {"n": 1},
                                   "memory_type": "shared"}])  # fmt: skip
        assert await read() == (7, 1)
        await ada.patch(path, json={"pinned": False}, headers={"If-Match": "7"})
        with pytest.raises(MemoryConflictError):
            await grace.shared.set("a", {"n": 1})
        assert await read() == (8, 1), "a conflict shows that the kept read is not current"
        await grace.memory.cache("shared/global", max_age=0)
        assert await read() == (8, 2)


async def test_a_kept_read_outlives_access_for_its_age_at_most(service: RunningService) -> None:
    network = Network(service)
    async with (
        await service.agent("ada", permissions=tuple(Permission)) as ada,
        network.client(await service.key("g")) as grace,
    ):
        clock = Ticking(grace)
        draft = _state("a", namespace="facts", memory_type="semantic")
        made = (await ada.post("/api/v1/memory", json=draft)).json()
        await grace.memory.cache("facts", max_age=10)
        assert await grace.memory.get_by_id(made["id"])
        assert await grace.memory.get("facts", "a")
        closed = {"permissions": {"default": "none"}}
        assert (await ada.patch("/api/v1/memory/namespaces/facts", json=closed)).status_code == 200
        clock.seconds = 9.0
        assert await grace.memory.get_by_id(made["id"])
        clock.seconds = 10.0
        with pytest.raises(MemoryAccessError):
            await grace.memory.get_by_id(made["id"])
        clock.seconds = 0.0
        with pytest.raises(MemoryAccessError):
            await grace.memory.get_by_id(made["id"])
        assert await grace.memory.get("facts", "a") is None
        with pytest.raises(ValidationError, match="max_age"):
            await grace.memory.cache("facts", max_age=-1)


async def test_reads_are_kept_without_a_server(world: World) -> None:
    ada = world.client(fresh("ada"))
    namespace = fresh("facts")
    await ada.memory.cache(namespace, max_age=3600)
    made = await ada.memory.set(namespace, "a", {"n": [1, 2.0, None]}, "semantic")
    clock = Ticking(ada.target)
    for seconds in (0.0, 1.0, 4000.0):
        clock.seconds = seconds
        assert await ada.memory.get(namespace, "a") == made
        assert await ada.memory.get_by_id(made.id) == made
    await ada.memory.delete(namespace, "a")
    assert await ada.memory.get(namespace, "a") is None
    assert await ada.call("find_entry", namespace=namespace, key="a") == {"entry": None}


async def test_a_change_without_a_version_names_the_present_one(world: World) -> None:
    name, namespace = fresh("ada"), fresh("facts")
    ada, again = world.client(name), world.client(name)
    await ada.memory.cache(namespace, max_age=3600)
    older = await ada.memory.set(namespace, "a", {"n": 1}, "semantic")
    newer = await ada.memory.set(namespace, "b", {"n": 2}, "semantic")
    assert await ada.memory.get_by_id(older.id) == older
    await again.memory.put(namespace, "a", {"n": 3}, "semantic")
    changed = await ada.memory.supersede(older.id, newer.id)
    assert (changed.version, changed.state) == (3, "superseded")


def test_a_read_that_began_before_a_drop_is_not_kept() -> None:
    entry = memorywall.MemoryEntry(
        id="mem_1", agent_id="ada", namespace="n", key="k", value={}, memory_type=Tier.SHARED,
        version=1,
    )  # fmt: skip
    reads = ReadCache(most=2)
    reads.allow("n", 10)
    ticket = reads.ticket
    reads.drop_id("mem_1")
    reads.keep(("n", "k"), (None, None), entry, "t", 0.0, ticket)
    assert reads.find(("n", "k"), (None, None)) is None
    for key in ("a", "b", "c"):
        reads.keep(("n", key), (None, None), entry, "t", 0.0, reads.ticket)
    assert reads.find(("n", "a"), (None, None)) is None
    assert reads.find(("n", "c"), (None, None)) is not None
    assert reads.max_age("m") is None
