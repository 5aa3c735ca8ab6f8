"""Workers on a real server: the example of RFC-0015, what a function is given, how it ends."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import memorywall
from memorywall.records.errors import FencedError
from memorywall.records.task import TaskStatus
from memorywall.sdk.worker import AsyncTaskWorker, TaskWorker, Worker
from memorywall.sdk.worker_context import AsyncTaskContext, TaskContext
from tests.support.workers import Shop, eventually, shop
from tests.test_sdk_support import fresh, server

__all__ = ["server", "shop"]

WORKER_CONTEXT = """
from memorywall import Worker

@Worker(capabilities=["billing"])
def process_invoices(ctx):
    # Working memory is scoped to this task
    progress = ctx.memory.get("invoice_processing", "batch_progress")

    if progress:
        start_from = progress["last_id"]
    else:
        start_from = None

    for invoice in fetch_invoices(start_from):
        process(invoice)
        ctx.memory.set(
            "invoice_processing", "batch_progress",
            value={"completed": invoice.index, "last_id": invoice.id},
            tags=["batch", "in-progress"]
        )

    # Record a learned pattern in episodic memory
    ctx.memory.set(
        "learned_patterns", "invoice_batch_size",
        value={"optimal_batch_size": 50, "reason": "API rate limits"},
        memory_type="episodic",
        tags=["performance", "optimization"]
    )
"""
INVOICES = [SimpleNamespace(index=n, id=f"inv_{n}") for n in range(1, 6)]
NAME = ("invoice_processing", "batch_progress")


# The example


def example(processed: list[str], dies_after: str = "") -> TaskWorker:
    def fetch_invoices(start_from: str | None) -> list[SimpleNamespace]:
        ids = [one.id for one in INVOICES]
        return INVOICES[0 if start_from is None else ids.index(start_from) + 1 :]

    def process(invoice: SimpleNamespace) -> None:
        if processed and processed[-1] == dies_after:
            raise KeyboardInterrupt
        processed.append(invoice.id)

    names: dict[str, Any] = {"fetch_invoices": fetch_invoices, "process": process}
    exec(compile(WORKER_CONTEXT, "RFC-0015", "exec"), names)
    worker = names["process_invoices"]
    assert isinstance(worker, TaskWorker)
    return worker


def test_the_example_runs_as_printed(shop: Shop) -> None:
    agent = fresh("agent_billing")
    task = shop.task(agent, capabilities_required=["billing"])
    processed: list[str] = []
    assert shop.run(example(processed), agent) == 1
    assert processed == [one.id for one in INVOICES]
    assert shop.look(task).status is TaskStatus.COMPLETED
    (entry,) = shop.archived(task)
    assert entry["value"] == {"completed": 5, "last_id": "inv_5"}
    assert entry["tags"] == ["batch", "in-progress"]
    with shop.client(agent) as client:
        assert client.memory.query(memory_type="working") == []
        (learned,) = client.memory.query(memory_type="episodic")
        assert learned["optimal_batch_size"] == 50
        assert learned.tags == ("performance", "optimization")


def test_the_example_runs_for_every_task_and_in_every_process(shop: Shop) -> None:
    agent = fresh("agent_billing")
    tasks = [shop.task(agent, capabilities_required=["billing"]) for _ in range(3)]
    processed: list[str] = []
    assert shop.run(example(processed), agent, max_tasks=2) == 2
    assert shop.run(example(processed), agent) == 1
    assert len(processed) == 15
    assert {shop.look(task).status for task in tasks} == {TaskStatus.COMPLETED}
    with shop.client(agent) as client:
        (learned,) = client.memory.query(memory_type="episodic")
        assert learned.version == 3


def test_the_example_goes_on_where_it_was_interrupted(shop: Shop) -> None:
    agent, successor = fresh("agent_billing"), fresh("agent_billing")
    task = shop.task(agent, capabilities_required=["billing"])
    processed: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        shop.run(example(processed, dies_after="inv_2"), agent)
    given_back = shop.look(task)
    assert (given_back.status, given_back.assigned_agent) == (TaskStatus.READY, agent)
    shop.boss.tasks.assign(given_back, successor)
    assert shop.run(example(processed), successor) == 1
    assert processed == [one.id for one in INVOICES]
    assert [one["value"]["last_id"] for one in shop.archived(task)] == ["inv_2", "inv_5"]


def test_worker_claims_only_tasks_within_its_capabilities(shop: Shop) -> None:
    agent = fresh("w")
    other = shop.task(agent, capabilities_required=["billing", "sql"])
    assert shop.run(example([]), agent) == 0
    assert shop.look(other).status is TaskStatus.READY


# What a function is given


def test_the_context(shop: Shop) -> None:
    agent = fresh("w")
    task = shop.task(agent, input={"month": "2026-02"}, metadata={"colour": "red"})
    shop.task(agent)
    seen: list[Any] = []

    @Worker()
    def work(ctx: TaskContext) -> dict[str, str]:
        """Works."""
        seen.append((ctx.task.id, ctx.input, ctx.attempt, ctx.agent_id, ctx.resumed, ctx.lost))
        assert ctx.client.tasks.get(ctx.task.id).status is TaskStatus.RUNNING
        with ctx.claims.hold("ticket", ttl=30, scope="agent") as claim:
            ctx.client.shared.set("ticket", {"by": agent}, scope="agent")
            assert not claim.lost
        ctx.log("invoice.seen", {"count": 3})
        return {"report": "done"}

    assert (vars(work)["__name__"], work.__doc__) == ("work", "Works.")
    assert shop.run(work, agent, intent_id=shop.intent, max_tasks=1) == 1
    assert seen == [(task.id, {"month": "2026-02"}, 1, agent, False, False)]
    assert shop.look(task).output == {"report": "done"}
    (event,) = shop.boss.intents.events(shop.intent, event_type="invoice.seen")
    assert (event.agent_id, event.data) == (agent, {"task_id": task.id, "count": 3})


def test_a_worker_can_be_called_with_a_context() -> None:
    @Worker(capabilities=["billing"])
    def double(ctx: Any) -> dict[str, int]:
        return {"n": 2 * ctx.input["n"]}

    assert double.capabilities == ("billing",)
    assert double(cast(TaskContext, SimpleNamespace(input={"n": 21}))) == {"n": 42}

    @Worker()
    async def triple(ctx: Any) -> dict[str, int]:
        return {"n": 3 * ctx.input["n"]}

    async def call() -> Any:
        return await triple(cast(AsyncTaskContext, SimpleNamespace(input={"n": 14})))

    assert isinstance(triple, AsyncTaskWorker)
    assert asyncio.run(call()) == {"n": 42}
    with pytest.raises(TypeError, match="@Worker"):
        Worker(lambda ctx: None)  # type: ignore[arg-type]


def test_environment_gives_address_and_key(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = fresh("w")
    task = shop.task(agent)
    monkeypatch.setenv("MEMORYWALL_URL", shop.server.url)
    monkeypatch.setenv("MEMORYWALL_API_KEY", shop.server.create_key(agent))
    assert Worker()(lambda ctx: None).run(until_idle=True) == 1
    assert shop.look(task).status is TaskStatus.COMPLETED


# How it ends


def test_failure_is_reported_and_can_be_retried(shop: Shop) -> None:
    agent = fresh("w")
    task = shop.task(agent)

    @Worker()
    def work(ctx: TaskContext) -> None:
        if ctx.attempt == 1:
            raise LookupError("the account of Mrs Miller")

    shop.run(work, agent)
    failed = shop.look(task)
    assert (failed.status, failed.error) == ("failed", "LookupError: see the worker's log")
    shop.boss.tasks.update(failed, status="ready")
    shop.run(work, agent)
    assert shop.look(task).status is TaskStatus.COMPLETED


def test_a_blocked_task_keeps_its_memory_until_it_is_ready_again(shop: Shop) -> None:
    agent = fresh("w")
    task = shop.task(agent)

    @Worker()
    def work(ctx: TaskContext) -> dict[str, Any] | None:
        progress = ctx.memory.get(*NAME)
        if progress:
            return {"resumed": ctx.resumed, "n": progress["n"]}
        ctx.memory.set(*NAME, {"n": 7})
        raise ctx.blocked("needs an approval")

    shop.run(work, agent)
    blocked = shop.look(task)
    assert (blocked.status, blocked.blocked_reason) == ("blocked", "needs an approval")
    assert shop.run(work, agent) == 0
    shop.boss.tasks.update(blocked, status="ready")
    assert shop.run(work, agent) == 1
    assert shop.look(task).output == {"resumed": True, "n": 7}


def start(
    shop: Shop, worker: TaskWorker | AsyncTaskWorker, agent: str, **options: Any
) -> threading.Thread:
    """Runs a worker in a thread, which does not keep the tests from ending."""
    thread = threading.Thread(target=shop.run, args=(worker, agent), kwargs=options, daemon=True)
    thread.start()
    return thread


def test_stopping_gives_the_task_back(shop: Shop) -> None:
    agent = fresh("w")
    task = shop.task(agent)
    kept: list[TaskContext] = []
    begun = threading.Event()

    @Worker()
    def work(ctx: TaskContext) -> None:
        kept.append(ctx)
        for n in range(1_000_000):
            ctx.memory.set(*NAME, {"n": n})
            begun.set()

    thread = start(shop, work, agent, lease_seconds=600)
    assert begun.wait(30)
    work.stop()
    thread.join(30)
    assert not thread.is_alive()
    assert shop.look(task).status is TaskStatus.READY
    assert kept[0].stopping
    assert kept[0].lost
    with pytest.raises(FencedError):
        kept[0].memory.set(*NAME, {"n": -1})
    with shop.client(agent) as client:
        taken = client.tasks.next([])
        assert taken is not None
        assert taken.task.id == task.id
        (entry,) = client.memory.query(task_id=task.id)
        assert entry["n"] >= 0
    assert shop.run(work, agent) == 0, "it has been stopped for good"


def test_an_idle_worker_stops_at_once(shop: Shop) -> None:
    worker = Worker()(lambda ctx: None)
    thread = start(shop, worker, fresh("w"), until_idle=False, poll_interval=3_600)
    eventually(lambda: worker._runs)
    worker.stop()
    thread.join(30)
    assert not thread.is_alive()


# Over a store in this process


def test_one_task_at_a_time_and_without_a_server(place: Path | str) -> None:
    @Worker()
    def work(ctx: TaskContext) -> dict[str, int]:
        return {"version": ctx.memory.set(*NAME, {"n": 1}).version}

    with memorywall.open(place, agent="w") as client:
        intent = client.intents.create("what there is to do")
        task = client.tasks.create(intent.id, "a task")
        assert work.run_once(client, intent_id=intent.id)
        assert not work.run_once(client, intent_id=intent.id)
        assert client.tasks.get(task.id).output == {"version": 1}
        client.tasks.create(intent.id, "another")
        assert work.run(client=client, until_idle=True) == 1
        assert client.whoami().agent_id == "w", "it is left open"


@pytest.mark.anyio
async def test_async_client_has_the_same_behavior(place: Path | str) -> None:
    @Worker()
    async def work(ctx: AsyncTaskContext) -> dict[str, int]:
        return {"version": (await ctx.memory.set(*NAME, {"n": 1})).version}

    async with memorywall.open_async(place, agent="w") as client:
        intent = await client.intents.create("what there is to do")
        task = await client.tasks.create(intent.id, "a task")
        assert await work.run_once(client)
        assert not await work.run_once(client)
        assert (await client.tasks.get(task.id)).output == {"version": 1}


# The other colour


def test_an_async_function(shop: Shop) -> None:
    agent = fresh("w")
    tasks = [shop.task(agent, input={"n": n}) for n in range(2)]

    @Worker()
    async def work(ctx: AsyncTaskContext) -> dict[str, Any]:
        assert await ctx.memory.get(*NAME) is None
        await ctx.memory.set(*NAME, {"n": ctx.input["n"]})
        found = await ctx.memory.get(*NAME)
        assert found is not None
        await ctx.log("seen")
        if found["n"] == 1:
            raise ctx.blocked("by one")
        return {"n": found["n"]}

    assert shop.run(work, agent) == 2
    done, blocked = (shop.look(task) for task in tasks)
    assert (done.status, done.output) == ("completed", {"n": 0})
    assert (blocked.status, blocked.blocked_reason) == ("blocked", "by one")


def test_stopping_interrupts_an_async_function_where_it_waits(shop: Shop) -> None:
    agent = fresh("w")
    task = shop.task(agent)
    begun = threading.Event()
    cancelled: list[bool] = []

    @Worker()
    async def work(ctx: AsyncTaskContext) -> None:
        await ctx.memory.set(*NAME, {"n": 1})
        begun.set()
        try:
            await asyncio.sleep(3_600)
        except asyncio.CancelledError:
            cancelled.append(ctx.stopping)
            raise

    thread = start(shop, work, agent, lease_seconds=600)
    assert begun.wait(30)
    work.stop()
    thread.join(30)
    assert not thread.is_alive()
    assert cancelled == [True]
    assert shop.look(task).status is TaskStatus.READY


def test_a_function_that_cancels_itself_fails(shop: Shop) -> None:
    agent = fresh("w")
    task = shop.task(agent)

    @Worker()
    async def work(ctx: AsyncTaskContext) -> None:
        raise asyncio.CancelledError

    assert shop.run(work, agent) == 1
    assert shop.look(task).error == "RuntimeError: see the worker's log"


def test_cancelling_an_async_worker_gives_the_task_back(shop: Shop) -> None:
    agent = fresh("w")
    task = shop.task(agent)

    async def main() -> None:
        begun = asyncio.Event()

        @Worker()
        async def work(ctx: AsyncTaskContext) -> None:
            begun.set()
            await asyncio.sleep(3_600)

        run = asyncio.create_task(
            work.run_async(shop.server.url, shop.server.dev_key, agent=agent, lease_seconds=600)
        )
        await asyncio.wait_for(begun.wait(), 30)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    asyncio.run(main())
    assert shop.look(task).status is TaskStatus.READY
