"""A worker that loses its lease: by the server's clock, by its own, by being replaced."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from memorywall import AsyncClient
from memorywall.records.errors import FencedError
from memorywall.records.task import TaskStatus
from memorywall.sdk.worker import Worker
from memorywall.sdk.worker_context import AsyncTaskContext
from memorywall.wire.tasks import TaskResponse
from tests.support.asgi import AsgiTransport
from tests.support.rounds import expire_leases
from tests.support.service import RunningService
from tests.support.workers import Clock

pytestmark = pytest.mark.anyio

PLACE = ("invoices", "progress")
SOON = 30.0


class Counting(httpx.AsyncBaseTransport):
    """The application, and how often it was asked."""

    def __init__(self, service: RunningService) -> None:
        self.inner = AsgiTransport(service.app)
        self.requests: list[httpx.Request] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return await self.inner.handle_async_request(request)


async def client_of(service: RunningService, agent: str, clock: Clock | None = None) -> AsyncClient:
    transport = Counting(service)
    client = AsyncClient("http://memorywall.test", await service.key(agent), transport=transport)
    if clock is not None:
        client.driver.clock = clock
    return client


@dataclass
class Scene:
    """A worker in the midst of a task, waiting to be told to go on."""

    service: RunningService
    boss: AsyncClient
    intent: str
    task: TaskResponse
    clock: Clock = field(default_factory=Clock)
    paused: asyncio.Event = field(default_factory=asyncio.Event)
    resume: asyncio.Event = field(default_factory=asyncio.Event)

    async def look(self) -> TaskResponse:
        return await self.boss.tasks.get(self.task.id)

    async def run(self, after: Any, **options: Any) -> asyncio.Task[int]:
        """Starts a worker whose function writes once, waits, and then does `after(ctx)`."""

        @Worker()
        async def work(ctx: AsyncTaskContext) -> Any:
            if ctx.task.id != self.task.id:
                return {"another": True}
            await ctx.memory.set(*PLACE, {"n": 1})
            self.paused.set()
            await self.resume.wait()
            return await after(ctx)

        client = await client_of(self.service, "a", self.clock)
        options = {"max_tasks": 1, "poll_interval": 0.05, **options}
        running = asyncio.create_task(work.run_async(client=client, **options))
        await asyncio.wait_for(self.paused.wait(), SOON)
        return running


async def open_scene(service: RunningService) -> Scene:
    boss = await client_of(service, "boss")
    intent = await boss.intents.create("work")
    task = await boss.tasks.create(intent.id, "t", assigned_agent="a")
    return Scene(service, boss, intent.id, task)


def sent(ctx: AsyncTaskContext) -> int:
    transport = ctx.client.driver._pools.connect()._transport
    assert isinstance(transport, Counting)
    return len(transport.requests)


async def test_a_late_write_is_refused_by_the_server_and_then_not_even_sent(
    service: RunningService,
) -> None:
    scene = await open_scene(service)
    refused: list[int] = []

    async def write_late(ctx: AsyncTaskContext) -> dict[str, int]:
        assert not ctx.lost, "by its own clock no time has passed"
        for _ in range(3):
            with pytest.raises(FencedError):
                await ctx.memory.set(*PLACE, {"n": 2})
            refused.append(sent(ctx))
            assert ctx.lost
        with pytest.raises(FencedError):
            await ctx.client.memory.set("elsewhere", "k", {"n": 2})
        with pytest.raises(FencedError):
            await ctx.log("late")
        return {"late": 1}

    running = await scene.run(write_late)
    service.clock.advance(31)
    assert await expire_leases(service.services) == 1
    await scene.boss.tasks.assign(await scene.look(), "b")
    other = await client_of(service, "b")
    taken = await other.tasks.next()
    assert taken is not None
    assert taken.task.id == scene.task.id
    mine = other.scoped(task_id=taken.task.id, fencing_token=taken.lease.fencing_token)
    await mine.memory.set(*PLACE, {"n": 10})

    scene.resume.set()
    assert await asyncio.wait_for(running, SOON) == 1
    assert refused[1:] == [refused[0]] * 2
    now = await scene.look()
    assert (now.status, now.assigned_agent, now.output) == ("claimed", "b", None)
    found = await other.memory.query(task_id=scene.task.id)
    assert sorted((entry.agent_id, entry["n"]) for entry in found) == [("a", 1), ("b", 10)]


async def test_by_its_own_clock_a_worker_stops_before_it_sends(service: RunningService) -> None:
    scene = await open_scene(service)
    requests: list[int] = []

    async def write_late(ctx: AsyncTaskContext) -> dict[str, int]:
        requests.append(sent(ctx))
        for write in (
            lambda: ctx.memory.set(*PLACE, {"n": 2}),
            lambda: ctx.memory.put(*PLACE, {"n": 2}),
            lambda: ctx.memory.update(*PLACE, lambda value: value),
            lambda: ctx.memory.set_permissions("x", default="read"),
            lambda: ctx.memory.delete(*PLACE),
            lambda: ctx.memory.batch([{"namespace": "x", "key": "k", "value": {}}]),
            lambda: ctx.memory.delete_matching(namespace="x"),
            lambda: ctx.memory.delete_by_id("mem_1"),
            lambda: ctx.memory.set("x", "k", {}, memory_type="episodic"),
        ):
            with pytest.raises(FencedError):
                await write()
        requests.append(sent(ctx))
        return {"late": 1}

    await scene.boss.tasks.create(scene.intent, "another", assigned_agent="a")
    running = await scene.run(write_late, max_tasks=2)
    scene.clock.now += 31
    scene.resume.set()
    assert await asyncio.wait_for(running, SOON) == 2
    assert requests[0] == requests[1]
    # To the server it is under way until the lease is over there as well.
    assert (await scene.look()).status is TaskStatus.RUNNING
    tasks = await scene.boss.tasks.list(intent_id=scene.intent)
    assert [task.output for task in tasks] == [None, {"another": True}]


async def test_a_worker_that_is_replaced_hears_of_it(service: RunningService) -> None:
    scene = await open_scene(service)

    async def wait_for_it(ctx: AsyncTaskContext) -> dict[str, int]:
        async with asyncio.timeout(SOON):
            while not ctx.lost:
                await asyncio.sleep(0.01)
        return {"late": 1}

    running = await scene.run(wait_for_it, lease_seconds=1)
    await scene.boss.tasks.assign(await scene.look(), "b")
    scene.resume.set()
    # By its clock it is time to renew, and not over: only the server can tell it.
    scene.clock.now += 0.6
    assert await asyncio.wait_for(running, SOON) == 1
    now = await scene.look()
    assert (now.status, now.assigned_agent, now.output) == ("ready", "b", None)


async def test_cancelled_task_is_not_changed(service: RunningService) -> None:
    scene = await open_scene(service)

    async def finish(ctx: AsyncTaskContext) -> dict[str, int]:
        return {"late": 1}

    running = await scene.run(finish)
    await scene.boss.tasks.cancel(await scene.look())
    scene.resume.set()
    assert await asyncio.wait_for(running, SOON) == 1
    now = await scene.look()
    assert (now.status, now.output) == ("cancelled", None)
