"""What is loaded for an agent before it works on a task (RFC-0015 section 6.3)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from memorywall import AsyncClient, Client
from memorywall.exceptions import RequestError
from memorywall.sdk import context_loading as context
from memorywall.sdk.context_loading import Context, load_context
from memorywall.wire.tasks import TaskResponse
from tests.support.workers import Shop, shop
from tests.test_sdk_support import fresh, server

__all__ = ["server", "shop"]


class AgentWithTask:
    """An agent with a task of its own, and the means to remember things."""

    def __init__(self, shop: Shop, **fields: Any) -> None:
        self.shop = shop
        self.agent = fresh("w")
        self.task = shop.task(self.agent, **fields)
        self.client = shop.client(self.agent)

    def work(self, *keys: str) -> None:
        lease = self.client.tasks.claim(self.task.id).lease
        with self.client.scoped(task_id=self.task.id, fencing_token=lease.fencing_token) as mine:
            for key in keys:
                mine.memory.set("progress", key, {"by": self.agent})
        self.client.tasks.release(self.task.id, lease.fencing_token)

    def experience(self, *tags: str) -> str:
        return self.client.memory.set("learned", fresh("k"), {}, "episodic", tags=tags).id

    def fact(self, namespace: str, key: str = "k") -> str:
        return self.client.memory.set(namespace, key, {"is": "so"}, memory_type="semantic").id

    def load(self, **options: Any) -> Context:
        """The same in both colours."""
        loaded = load_context(self.client, self.task, **options)

        async def load() -> Context:
            url, key = self.shop.server.url, self.shop.server.dev_key
            async with AsyncClient(url, key, agent=self.agent) as twin:
                return await load_context(twin, self.task, **options)

        assert asyncio.run(load()) == loaded
        return loaded


@pytest.fixture
def worker(shop: Shop) -> Iterator[AgentWithTask]:
    """An agent whose task is known by two words."""
    opened = AgentWithTask(
        shop, capabilities_required=["billing"], metadata={"tags": ["quarterly"]}
    )
    yield opened
    opened.client.close()


def ids(entries: list[Any]) -> list[str]:
    return [entry.id for entry in entries]


def test_all_that_is_kept_for_the_task_is_loaded(worker: AgentWithTask) -> None:
    worker.work("a", "b")
    worker.client.memory.set("progress", "elsewhere", {})
    worker.client.memory.set("progress", "of a task nobody made", {}, scope={"task_id": fresh("t")})
    successor = AgentWithTask(worker.shop)
    worker.shop.boss.tasks.assign(worker.task.id, successor.agent)
    successor.task = worker.shop.look(worker.task)
    successor.work("b", "c")
    loaded = successor.load()
    assert sorted((one.key, one.agent_id) for one in loaded.working) == sorted(
        [("a", worker.agent), ("b", worker.agent), ("b", successor.agent), ("c", successor.agent)]
    )
    assert (loaded.episodic, loaded.semantic[:0]) == ([], [])
    successor.client.close()


def test_it_does_not_matter_how_many_pages_that_are(
    worker: AgentWithTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = [f"k{n}" for n in range(7)]
    worker.work(*keys)
    monkeypatch.setattr(context, "LARGEST_PAGE", 3)
    assert sorted(one.key for one in worker.load().working) == keys


def test_experience_with_the_like_is_loaded_newest_first(worker: AgentWithTask) -> None:
    made = [worker.experience("billing"), worker.experience("weather", "quarterly")]
    other = worker.experience("weather")
    made.append(worker.experience("billing", "quarterly"))
    assert ids(worker.load().episodic) == made[::-1]
    assert ids(worker.load(episodic=2).episodic) == made[:0:-1]
    assert worker.load(episodic=0).episodic == []
    assert ids(worker.load(tags=["weather"]).episodic) == [other, made[1]]
    assert worker.load(tags=["nothing"]).episodic == []
    assert ids(worker.load(tags=[]).episodic) == [made[2], other, made[1], made[0]]


def test_experience_of_others_is_not_loaded(worker: AgentWithTask) -> None:
    other = AgentWithTask(worker.shop)
    other.experience("billing")
    assert worker.load().episodic == []
    other.client.close()


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("one", ["one"]),
        (["one", "two", "one"], ["one", "two"]),
        (["a,b", "", " x", 7, None, "y" * 129, "fine"], ["fine"]),
        ({"not": "words"}, []),
        (7, []),
        (None, []),
        ([f"t{n}" for n in range(100)], [f"t{n}" for n in range(64)]),
    ],
)
def test_the_words_of_a_task_are_used_as_far_as_they_can_be_tags(
    shop: Shop, given: object, found: list[str]
) -> None:
    worker = AgentWithTask(shop, metadata={"tags": given})
    assert context._tags_of(worker.task) == found
    made = worker.experience(*found[:1])
    assert ids(worker.load().episodic) == [made]
    worker.client.close()


def test_words_that_are_given_must_be_tags(worker: AgentWithTask) -> None:
    with pytest.raises(RequestError):
        load_context(worker.client, worker.task, tags=[" x"])


def test_knowledge_is_loaded_from_wherever_the_agent_may_read(worker: AgentWithTask) -> None:
    root = fresh("facts")
    mine, closed = f"{root}.mine", f"{root}.closed"
    fact = worker.fact(mine)
    with Client(worker.shop.server.url, worker.shop.server.dev_key, agent=fresh("c")) as curator:
        curator.memory.set(closed, "k", {"is": "secret"}, memory_type="semantic")
        curator.memory.set_permissions(closed, default="none")
        curator.shared.set(root, {"is": "state"})
    assert ids(worker.load().semantic)[0] == fact
    assert {one.memory_type for one in worker.load().semantic} == {"semantic"}
    assert closed not in {one.namespace for one in worker.load().semantic}
    assert worker.load(namespaces=[closed, "shared/global", fresh("nowhere")]).semantic == []
    assert worker.load(namespaces=[]).semantic == []


def test_knowledge_is_loaded_from_where_it_is_looked_for(worker: AgentWithTask) -> None:
    root = fresh("facts")
    facts = {name: worker.fact(f"{root}.{name}") for name in ("a", "b", "c")}
    place = f"{root}.b"
    assert ids(worker.load(namespaces=[place]).semantic) == [facts["b"]]
    both = worker.load(namespaces=[place, f"{root}.a", place]).semantic
    assert ids(both) == [facts["b"], facts["a"]]
    every = [facts["c"], facts["b"], facts["a"]]
    assert ids(worker.load(namespaces=[f"{root}.*"]).semantic) == every
    assert ids(worker.load(namespaces=[place, f"{root}.*"]).semantic) == [facts["b"], *every[::2]]
    assert ids(worker.load(namespaces=[f"{root}.*"], semantic=2).semantic) == every[:2]
    twice = worker.load(namespaces=[f"{root}.c", f"{root}.*"], semantic=2)
    assert ids(twice.semantic) == every[:2]
    assert ids(worker.load(semantic=1).semantic) == [facts["c"]]
    assert worker.load(semantic=0).semantic == []


def test_a_task_that_is_only_known_by_its_id_has_no_memory(worker: AgentWithTask) -> None:
    worker.work("a")
    other: TaskResponse = worker.shop.task(worker.agent)
    assert load_context(worker.client, other).working == []
