"""Many writers of one entry lose nothing, whether they share a client or not."""

from __future__ import annotations

import threading
from collections.abc import Callable

import anyio
import pytest

from memorywall import Client
from memorywall.exceptions import MemoryConflictError
from tests.support.extent import extent
from tests.support.process import ServerProcess
from tests.test_sdk_support import Either, World, fresh, server, world

pytestmark = pytest.mark.anyio
__all__ = ["server", "world"]

WRITERS = extent(24, long=64)


async def increment(client: Either) -> None:
    """Adds one with what this client saw last; merges whenever that was too old."""
    entry = await client.memory.get("n", "counter")
    try:
        await client.memory.set("n", "counter", {"count": entry["count"] + 1})
        return
    except MemoryConflictError as error:
        conflict = error
    await merge(client, conflict)


async def increment_shared(client: Either) -> None:
    """The same for writers that share a client: each says which version it has read."""
    entry = await client.memory.get("n", "counter")
    try:
        await client.memory.set(
            "n", "counter", {"count": entry["count"] + 1}, version=entry.version
        )
        return
    except MemoryConflictError as error:
        conflict = error
    await merge(client, conflict)


async def merge(client: Either, conflict: MemoryConflictError) -> None:
    while True:
        try:
            await client.memory.set(
                "n",
                "counter",
                {"count": conflict.current_value["count"] + 1},
                version=conflict.current_version,
            )
            return
        except MemoryConflictError as error:
            conflict = error


async def run_all(world: World, works: list[Callable[[], object]]) -> None:
    """Runs the works at once: in threads for blocking clients, in tasks for the others."""
    if world.colour == "async":
        async with anyio.create_task_group() as group:
            for work in works:
                group.start_soon(work)  # type: ignore[arg-type]
        return
    failures: list[BaseException] = []

    def run(work: Callable[[], object]) -> None:
        try:
            anyio.run(work)  # type: ignore[arg-type]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        await anyio.to_thread.run_sync(thread.join)
    assert not failures


async def test_writers_with_clients_of_their_own(world: World) -> None:
    agent = fresh("billing")
    await world.client(agent).memory.set("n", "counter", {"count": 0})
    clients = [world.client(agent) for _ in range(WRITERS)]
    await run_all(world, [lambda one=one: increment(one) for one in clients])  # type: ignore[misc]
    counter = await world.client(agent).memory.get("n", "counter")
    assert (counter["count"], counter.version) == (WRITERS, WRITERS + 1)


async def test_writers_that_share_a_client(world: World) -> None:
    client = world.client(fresh("billing"))
    await client.memory.set("n", "counter", {"count": 0})
    await run_all(world, [lambda: increment_shared(client) for _ in range(WRITERS)])
    counter = await client.memory.get("n", "counter")
    assert (counter["count"], counter.version) == (WRITERS, WRITERS + 1)
    assert (await client.memory.set("n", "counter", {"count": 0})).version == WRITERS + 2


def test_threads_that_share_a_client_create_each_entry_once(server: ServerProcess) -> None:
    outcomes: list[str] = []
    with Client(server.url, server.dev_key, agent=fresh("billing")) as client:
        barrier = threading.Barrier(16)

        def create() -> None:
            barrier.wait(timeout=30)
            try:
                client.memory.set("n", "one", {"n": 1}, memory_type="episodic")
                outcomes.append("written")
            except MemoryConflictError:
                outcomes.append("conflict")

        threads = [threading.Thread(target=create) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(outcomes) == 16
        made = client.memory.get("n", "one")
        assert made is not None
        assert made.version == outcomes.count("written")
        assert [event.type for event in client.events.list()].count("memory.created") == 1
