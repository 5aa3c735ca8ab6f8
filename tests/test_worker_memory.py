"""`ctx.memory` on a real server: scoped to the task, handed on with it, replaced or not."""

from __future__ import annotations

import pytest

from memorywall.exceptions import (
    EntryExistsError,
    MemoryAccessError,
    MemoryConflictError,
    MemoryNotFoundError,
)
from memorywall.records.errors import FencedError
from memorywall.records.task import TaskStatus
from memorywall.sdk.worker_context import TaskContext
from tests.support.workers import Shop, on, shop
from tests.test_sdk_support import fresh, server

__all__ = ["server", "shop"]

NAME = ("invoice_processing", "batch_progress")


def test_working_memory_of_another_task_is_out_of_sight(shop: Shop) -> None:
    agent = fresh("w")
    first = shop.task(agent)

    def begin(ctx: TaskContext) -> None:
        ctx.memory.set(*NAME, {"of": "first"})
        raise ctx.blocked("waits")

    assert on(shop, agent, begin) == 1
    shop.task(agent)

    def look(ctx: TaskContext) -> None:
        assert ctx.memory.get(*NAME) is None
        assert ctx.memory.query(memory_type="working") == []
        with pytest.raises(EntryExistsError):
            ctx.memory.set(*NAME, {"of": "second"})
        ctx.memory.set("another", "name", {"of": "second"})
        assert [one.key for one in ctx.memory.query(memory_type="working")] == ["name"]

    assert on(shop, agent, look) == 1
    with shop.client(agent) as client:
        (kept,) = client.memory.query(task_id=first.id, memory_type="working")
        assert (kept.value, kept.version) == ({"of": "first"}, 1)


def test_a_node_of_an_openwop_run_reads_what_its_run_reads(shop: Shop) -> None:
    agent, name = fresh("w"), fresh("hello")
    with shop.client(agent) as client:
        client.openwop.install(name, {"nodes": [{"id": "a", "typeId": "core.noop"}]})
        run = client.openwop.run(name)
        client.openwop.run(name)
    shop.task(agent, input={"runId": run.run_id})
    found: list[str] = []

    def read(ctx: TaskContext) -> None:
        memory = ctx.client.openwop.memory(ctx.input["runId"])
        (entry,) = memory.list(f"runs/{name}")
        found.append(entry.content)
        assert memory.get(f"runs/{name}", entry.id) == entry
        assert len(ctx.client.openwop.list(f"runs/{name}")) == 2

    assert on(shop, agent, read) == 1
    assert run.run_id in found[0]


def test_memory_goes_from_agent_to_agent_and_back(shop: Shop) -> None:
    first, second = fresh("a"), fresh("b")
    task = shop.task(first)

    def begin(ctx: TaskContext) -> None:
        assert not ctx.resumed
        ctx.memory.set(*NAME, {"n": 1}, tags=["batch"])
        raise ctx.blocked()

    def go_on(ctx: TaskContext) -> None:
        assert ctx.resumed
        before = ctx.memory.get(*NAME)
        assert before is not None
        value = {"n": before["n"] + 1, "resumed_from": before.id}
        now = ctx.memory.set(*NAME, value)
        assert now.agent_id == ctx.agent_id
        assert ctx.memory.get(*NAME) == now
        if before.agent_id != ctx.agent_id:
            with pytest.raises(MemoryAccessError):
                ctx.memory.delete_by_id(before.id)
        raise ctx.blocked()

    def hand_to(agent: str) -> None:
        ready = shop.boss.tasks.update(shop.look(task), status="ready")
        shop.boss.tasks.assign(ready, agent)

    for agent, function in ((first, begin), (second, go_on), (first, go_on)):
        if function is go_on:
            hand_to(agent)
        assert on(shop, agent, function) == 1
        assert shop.look(task).status is TaskStatus.BLOCKED
    with shop.client(first) as client:
        found = client.memory.query(task_id=task.id, memory_type="working")
    entries = {entry.agent_id: entry for entry in found}
    assert {agent: entry["n"] for agent, entry in entries.items()} == {first: 3, second: 2}
    assert entries[first]["resumed_from"] == entries[second].id
    assert entries[second]["resumed_from"] == entries[first].id
    assert [one.agent_id for one in shop.look(task).assignments] == [first, second, first]


def test_own_memory_is_replaced_unread_and_shared_knowledge_is_not(shop: Shop) -> None:
    agent, place = fresh("w"), fresh("facts")
    task = shop.task(agent)
    with shop.client(agent) as client:
        client.memory.set("habits", "k", {"n": 1}, memory_type="episodic")
        client.memory.set(place, "k", {"n": 1}, memory_type="semantic")

    def work(ctx: TaskContext) -> None:
        assert ctx.memory.set("habits", "k", {"n": 2}, memory_type="episodic").version == 2
        assert ctx.memory.set("habits", "k", {"n": 3}, "episodic").version == 3
        with pytest.raises(MemoryConflictError):
            ctx.memory.set("habits", "k", {"n": 4}, "episodic", version=1)
        with pytest.raises(EntryExistsError):
            ctx.memory.set(place, "k", {"n": 2}, memory_type="semantic")
        known = ctx.memory.get(place, "k")
        assert known is not None
        assert known["n"] == 1
        assert ctx.memory.set(place, "k", {"n": 2}).memory_type == "semantic"
        new = ctx.memory.set("new", "k", {"n": 1})
        assert (new.memory_type, new.scope.task_id) == ("working", task.id)
        assert new.provenance is not None
        assert new.provenance.fencing_token is not None
        ctx.memory.delete("new", "k")
        assert ctx.memory.get("new", "k") is None

    assert on(shop, agent, work) == 1


def test_memory_of_the_tasks_above_can_be_read(shop: Shop) -> None:
    boss, agent = fresh("lead"), fresh("w")
    parent = shop.task(boss)

    def begin(ctx: TaskContext) -> None:
        ctx.memory.set("plan", "k", {"steps": 3})
        raise ctx.blocked()

    assert on(shop, boss, begin) == 1
    inherits = {"memory_policy": {"inherit_from_parent": True}}
    middle = shop.task(fresh("x"), parent_task_id=parent.id, **inherits)
    shop.task(agent, parent_task_id=middle.id, **inherits)
    shop.task(agent, parent_task_id=middle.id)
    seen: list[list[str]] = []

    def read(ctx: TaskContext) -> None:
        seen.append([entry.namespace for entry in ctx.memory.inherited()])
        assert ctx.memory.get("plan", "k") is None

    assert on(shop, agent, read) == 2
    assert seen == [["plan"], []]


def test_a_refusal_about_something_else_does_not_lose_the_task(shop: Shop) -> None:
    agent, place = fresh("w"), fresh("secret")
    shop.boss.memory.set(place, "k", {"n": 1}, memory_type="semantic")
    shop.boss.memory.set_permissions(place, default="none")
    task = shop.task(agent)

    def work(ctx: TaskContext) -> dict[str, bool]:
        with pytest.raises(MemoryAccessError):
            ctx.memory.set(place, "other", {"n": 2}, memory_type="semantic")
        with pytest.raises(MemoryNotFoundError):
            ctx.memory.delete_by_id("mem_0")
        with (
            shop.client(fresh("other")) as other,
            other.claims.hold("ticket"),
            pytest.raises(FencedError),
        ):
            ctx.memory.set("shared/global", "ticket", {"n": 1}, memory_type="shared")
        ctx.memory.set(*NAME, {"n": 1})
        return {"lost": ctx.lost}

    assert on(shop, agent, work) == 1
    assert shop.look(task).output == {"lost": False}
