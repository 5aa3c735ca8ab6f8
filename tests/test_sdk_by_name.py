"""Getting an entry by its name: one look-up, and with servers that have none a query."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import memorywall
from memorywall import Client
from memorywall.in_process.drivers import InProcessDriver
from memorywall.records.errors import MemoryNotFoundError, RequestError
from memorywall.records.principal import Permission
from memorywall.records.tier import Tier
from tests.support.service import RunningService, draft

PATH = "/api/v1/memory/by-name"


@pytest.fixture
def opened(place: Path | str) -> Iterator[Client]:
    with memorywall.open(place, agent="billing") as client:
        yield client


def client_of(opened: Client, agent: str, task_id: str | None = None) -> Client:
    driver = opened.driver
    assert isinstance(driver, InProcessDriver)
    return Client.over(driver.for_agent(agent), agent=agent, task_id=task_id)


def test_the_narrowest_tier_comes_first(opened: Client) -> None:
    wide_to_narrow = list(reversed(Tier))
    for tier in wide_to_narrow:
        namespace = "shared/global" if tier is Tier.SHARED else "n"
        if tier is Tier.SHARED:
            opened.shared.set("k", {"tier": "shared"})
            continue
        opened.memory.set(namespace, "k", {"tier": str(tier)}, tier)
        found = opened.memory.get("n", "k")
        assert found is not None
        assert found.memory_type is tier
        assert opened.memory.get("n", "k", tier) == found
    shared = opened.shared.get("k")
    assert shared is not None
    assert shared["tier"] == "shared"
    assert opened.memory.get("n", "other") is None


def test_a_name_is_read_at_an_earlier_version(opened: Client) -> None:
    for number in (1, 2):
        last = opened.memory.set("facts", "k", {"n": number}, "semantic")
    first = opened.memory.get("facts", "k", version=1)
    assert first is not None
    assert (first.version, first.value) == (1, {"n": 1})
    assert opened.memory.get("facts", "k", "semantic", as_of=last.updated_at) == last
    # What was read does not count as seen: the next write replaces the present version.
    assert opened.memory.set("facts", "k", {"n": 3}).version == 3
    assert opened.memory.get("facts", "none", version=1) is None
    with pytest.raises(MemoryNotFoundError):
        opened.memory.get("facts", "k", version=9)
    with pytest.raises(RequestError):
        opened.memory.get("facts", "k", version=1, as_of=last.updated_at)
    assert [one.version for one in opened.memory.export(namespace="facts", key="k")] == [3]
    long_ago = "2020-01-01T00:00:00Z"
    assert list(opened.memory.export(namespace="facts", as_of=long_ago)) == []


def test_what_a_task_lets_see_comes_first(opened: Client) -> None:
    intent = opened.intents.create("work")
    task = opened.tasks.create(intent.id, "t", assigned_agent="first")
    first = client_of(opened, "first", task.id)
    first.memory.set("n", "k", {"by": "first"})
    second = client_of(opened, "second", task.id)
    second.memory.set("n", "k", {"by": "second"}, "episodic")
    opened.tasks.assign(opened.tasks.get(task.id), "second")
    # A successor is shown what is there for the task before what it keeps itself.
    found = second.memory.get("n", "k")
    assert found is not None
    assert found["by"] == "first"
    outside = client_of(opened, "second")
    found = outside.memory.get("n", "k")
    assert found is not None
    assert found["by"] == "second"
    assert client_of(opened, "stranger").memory.get("n", "k") is None


def test_lookup_finds_the_same_entry_as_a_query(opened: Client) -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)
    intent = opened.intents.create("work")
    tasks = [opened.tasks.create(intent.id, f"t{n}", assigned_agent="a").id for n in range(2)]
    agents = ["a", "b", "billing"]
    for _ in range(60):
        agent, task = chance.choice(agents), chance.choice([*tasks, None])
        client = client_of(opened, agent, task if agent == "a" else None)
        tier = chance.choice([Tier.WORKING, Tier.EPISODIC, Tier.SEMANTIC, Tier.PROCEDURAL])
        try:
            client.memory.set("n", f"k{chance.randrange(4)}", {"n": chance.random()}, tier)
        except memorywall.exceptions.MemorywallError:
            continue
    for agent in agents:
        for task_id in [*tasks, None]:
            for key in ("k0", "k1", "k2", "k3"):
                for tier in (None, Tier.WORKING, Tier.EPISODIC, Tier.SEMANTIC):
                    looking = client_of(opened, agent, task_id)
                    asking = client_of(opened, agent, task_id)
                    asking._state.finds_by_name = False
                    found = looking.memory.get("n", key, tier)
                    assert looking._state.finds_by_name
                    assert found == asking.memory.get("n", key, tier), (agent, task_id, key, tier)


@pytest.mark.anyio
async def test_over_http(service: RunningService) -> None:
    billing, other = await service.agent("billing"), await service.agent("other")
    body = {"namespace": "n", "key": "k", "value": {"n": 1}, "memory_type": "working"}
    made = (await billing.post("/api/v1/memory", json=body)).json()
    query = {"namespace": "n", "key": "k"}
    assert (await billing.get(PATH, params=query)).json() == {"entry": made}
    assert (await other.get(PATH, params=query)).json() == {"entry": None}
    foreign = await service.agent("billing", tenant="elsewhere")
    assert (await foreign.get(PATH, params=query)).json() == {"entry": None}
    assert (await service.client().get(PATH, params=query)).status_code == 401
    for bad in ({}, {"namespace": "n"}, {**query, "memory_type": "x"}, {**query, "limit": "1"}):
        assert (await billing.get(PATH, params=bad)).status_code == 400
    unlisted = {**query, "memory_type": "episodic"}
    assert (await billing.get(PATH, params=unlisted)).json() == {"entry": None}


@pytest.mark.anyio
async def test_expired_entry_is_not_found(service: RunningService) -> None:
    billing = await service.agent("billing")
    body: dict[str, Any] = {"namespace": "n", "key": "k", "value": {}, "memory_type": "working"}
    await billing.post("/api/v1/memory", json={**body, "ttl": "duration:PT1M"})
    query = {"namespace": "n", "key": "k"}
    assert (await billing.get(PATH, params=query)).json()["entry"] is not None
    service.clock.advance(61)
    assert (await billing.get(PATH, params=query)).json() == {"entry": None}


@pytest.mark.parametrize("status", [404, 400])
def test_a_server_that_looks_no_names_up_is_asked_once(status: int) -> None:
    asked: list[str] = []
    page = {"entries": [], "total": 0, "limit": 100, "offset": 0}

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        if request.url.path == "/api/v1/memory":
            return httpx.Response(200, json=page)
        return httpx.Response(status, json={"error": "ENTRY_NOT_FOUND" if status == 404 else "X"})

    with Client("http://x", "k", agent="a", transport=httpx.MockTransport(answer)) as client:
        assert client.memory.get("n", "k") is None
        assert client.memory.get("n", "k") is None
    assert asked == [PATH, "/api/v1/memory", "/api/v1/memory"]


def test_an_entry_that_hides_another_one_says_so(
    opened: Client, caplog: pytest.LogCaptureFixture
) -> None:
    long_lived = opened.memory.set("n", "k", {"kept": True}, "episodic")
    opened.memory.get("n", "k")
    assert caplog.messages == []
    # A second client has not seen the entry, and names no tier.
    careless = client_of(opened, "billing")
    made = careless.memory.set("n", "k", {"kept": False})
    found = careless.memory.get("n", "k")
    assert (made.memory_type, found) == (Tier.WORKING, made)
    (warning,) = caplog.messages
    assert warning == (
        "n/k is the working entry; it hides an entry of the same name in: episodic (another value)."
        " Pass memory_type to choose."
    )
    assert careless.memory.get("n", "k", "episodic") == long_lived
    assert len(caplog.messages) == 1


@pytest.mark.anyio
async def test_by_name_lists_the_readable_entries_that_one_hides(service: RunningService) -> None:
    agent = await service.agent("ada", permissions=[*Permission])
    other = await service.agent("bob")
    made = {}
    for client, name, tier in (
        (other, "bob", "working"),
        (agent, "ada", "working"),
        (agent, "ada", "semantic"),
        (agent, "ada", "episodic"),
        (other, "bob", "episodic"),
    ):
        body = draft("k", memory_type=tier, namespace="n")
        reply = await client.post("/api/v1/memory", json=body)
        assert reply.status_code == 201, reply.text
        made[name, tier] = reply.json()["id"]
    body = draft("k", memory_type="episodic", namespace="n", scope={"session_id": "s"})
    assert (await agent.post("/api/v1/memory", json=body)).status_code == 201

    async def shadows(client: httpx.AsyncClient, **asked: str) -> list[tuple[str, str]] | None:
        reply = await client.get(PATH, params={"namespace": "n", "key": "k", **asked})
        listed = reply.json().get("shadows")
        return None if listed is None else [(one["id"], one["memory_type"]) for one in listed]

    semantic = (made["ada", "semantic"], "semantic")
    assert await shadows(agent) == [(made["ada", "episodic"], "episodic"), semantic]
    assert await shadows(other) == [(made["bob", "episodic"], "episodic"), semantic]
    assert await shadows(agent, memory_type="working") is None
    closed = {"default": "none", "allow": [{"agent": "ada", "access": "admin"}]}
    namespace = await agent.get("/api/v1/memory/namespaces/n")
    version = {"If-Match": str(namespace.json()["version"])}
    changed = await agent.patch(
        "/api/v1/memory/namespaces/n", json={"permissions": closed}, headers=version
    )
    assert changed.status_code == 200, changed.text
    assert await shadows(other) == [(made["bob", "episodic"], "episodic")]
    stranger = await service.agent("carol")
    assert (await stranger.get(PATH, params={"namespace": "n", "key": "k"})).json() == {
        "entry": None
    }
