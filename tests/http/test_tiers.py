"""Capacity and eviction: RFC-0015 sections 2.1, 2.2 and 9.4."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from memorywall.jobs.flush import flush_uses
from memorywall.service.administration.tenants import set_capacity
from tests.http.checks import (
    BATCH,
    EVERY_PERMISSION,
    MEMORY,
    assert_problem,
    brief,
    events_of,
    everything,
    keys_of,
    make,
)
from tests.support.service import RunningService, draft, open_service

pytestmark = pytest.mark.anyio

CAPACITY = 5


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[RunningService]:
    """A memorywall that is soon full."""
    async with open_service(
        tmp_path, episodic_capacity=CAPACITY, working_capacity_per_task=3
    ) as opened:
        yield opened


async def _fill(
    service: RunningService, *names: str, **fields: Any
) -> tuple[httpx.AsyncClient, list[str]]:
    """Episodic entries a second apart; returns their agent's client and their paths."""
    agent = await service.agent("ada")
    paths = []
    for name in names:
        made = await make(agent, name, memory_type="episodic", **fields)
        paths.append(f"{MEMORY}/{made['id']}")
        service.clock.advance(1)
    return agent, paths


async def _episodic(agent: httpx.AsyncClient) -> set[str]:
    return set(await keys_of(agent, agent_id="ada", memory_type="episodic"))


async def _evicted(agent: httpx.AsyncClient) -> list[str]:
    return [
        key for kind, key, _ in brief(await events_of(agent, "ada")) if kind == "memory.evicted"
    ]


async def test_the_least_recently_made_goes_when_nothing_was_read(service: RunningService) -> None:
    agent, _ = await _fill(service, *"abcde")
    await make(agent, "f", memory_type="episodic")
    assert await _evicted(agent) == ["a"]
    assert await _episodic(agent) == set("bcdef")


async def test_a_read_just_before_saves_an_entry(service: RunningService) -> None:
    agent, paths = await _fill(service, *"abcde")
    assert (await agent.get(paths[0])).is_success
    service.clock.advance(1)
    await keys_of(agent, key="b")
    service.clock.advance(1)
    changed = await agent.patch(paths[2], json={"tags": ["x"]}, headers={"If-Match": "1"})
    assert changed.is_success
    service.clock.advance(1)
    bare = await agent.get(
        "/api/v1/agents/ada/memory", params={"limit": 1, "memory_type": "episodic"}
    )
    assert [entry["key"] for entry in bare.json()] == ["e"]
    service.clock.advance(1)
    for name in "fghij":
        await make(agent, name, memory_type="episodic")
        service.clock.advance(1)
    # Of the last accesses d's is oldest, then come those of a, b, c and e in the order made above.
    assert await _evicted(agent) == list("dabce")


async def test_lower_priority_is_evicted_first_regardless_of_last_access(
    service: RunningService,
) -> None:
    agent, _ = await _fill(service, "high", priority="high")
    await _fill(service, "normal")
    await _fill(service, "low-old", "low-new", priority="low")
    _, (fresh,) = await _fill(service, "low-read", priority="low")
    await agent.get(fresh)
    for name in ("f", "g", "h", "i", "j"):
        await make(agent, name, memory_type="episodic", priority="high")
        service.clock.advance(1)
    assert await _evicted(agent) == ["low-old", "low-new", "low-read", "normal", "high"]


ORDERS = {"lru": "edbca", "lfu": "ebacd", "oldest": "abcde", "utility": "ebdca"}


@pytest.mark.parametrize("policy", ORDERS)
async def test_a_full_tier_evicts_as_its_policy_says(service: RunningService, policy: str) -> None:
    chief = await service.agent("chief", permissions=EVERY_PERMISSION)
    agent, paths = await _fill(service, *"abcde")
    day = 24 * 3600
    for path, uses, days in (
        (paths[3], 4, 1),
        (paths[1], 1, 1.5),
        (paths[2], 3, 1),
        (paths[0], 2, 3),
    ):
        service.clock.advance(days * day)
        for _ in range(uses):
            assert (await agent.get(path)).is_success
    await flush_uses(service.services)
    narrowed = await chief.put("/api/v1/tiers/episodic", json={"eviction": policy})
    assert narrowed.json()["eviction"] == policy
    asked = {"agent_id": "ada", "target": 0, "dry_run": True}
    order = (await chief.post("/api/v1/tiers/episodic/evict", json=asked)).json()["entry_ids"]
    names = {path.rpartition("/")[2]: name for path, name in zip(paths, "abcde", strict=True)}
    assert "".join(names[one] for one in order) == ORDERS[policy]
    for name in ("f", "g"):
        await make(agent, name, memory_type="episodic", priority="high")
    assert await _evicted(agent) == list(ORDERS[policy][:2])


async def test_a_tier_that_refuses_evicts_nothing(service: RunningService) -> None:
    chief = await service.agent("chief", permissions=EVERY_PERMISSION)
    agent, _ = await _fill(service, *"abcde")
    await chief.put("/api/v1/tiers/episodic", json={"eviction": "refuse"})
    refused = await agent.post(MEMORY, json=draft("f", memory_type="episodic"))
    document = assert_problem(refused, 429, "CAPACITY_EXCEEDED")
    assert (document["current_count"], document["max_capacity"]) == (CAPACITY, CAPACITY)
    assert await _evicted(agent) == []


async def test_a_changed_priority_counts(service: RunningService) -> None:
    agent, paths = await _fill(service, *"abcde")
    change = await agent.patch(paths[4], json={"priority": "low"}, headers={"If-Match": "1"})
    assert change.is_success
    await make(agent, "f", memory_type="episodic")
    assert await _evicted(agent) == ["e"]


async def test_pinned_entries_are_counted_and_never_evicted(service: RunningService) -> None:
    agent, _ = await _fill(service, *"abcd", pinned=True, priority="low")
    await _fill(service, "e", priority="high")
    await make(agent, "f", memory_type="episodic", priority="low")
    assert await _evicted(agent) == ["e"]
    summary = (await agent.get("/api/v1/agents/ada/memory/summary")).json()["episodic"]
    assert (summary["entry_count"], summary["pinned_count"]) == (CAPACITY, 4)


@pytest.mark.parametrize("pinned", [True, False], ids=["pinned", "unpinned"])
async def test_a_store_full_of_pinned_entries_refuses(
    service: RunningService, pinned: bool
) -> None:
    agent, paths = await _fill(service, *"abcde", pinned=True)
    before = await everything(service)
    body = draft("f", memory_type="episodic", pinned=pinned)
    for response in (
        await agent.post(MEMORY, json=body),
        await agent.post(BATCH, json={"entries": [body]}),
    ):
        document = assert_problem(response, 429, "CAPACITY_EXCEEDED")
        assert (document["current_count"], document["max_capacity"]) == (CAPACITY, CAPACITY)
    assert await everything(service) == before
    unpin = await agent.patch(paths[3], json={"pinned": False}, headers={"If-Match": "1"})
    assert unpin.is_success
    assert (await agent.post(MEMORY, json=body)).status_code == 201
    assert await _evicted(agent) == ["d"]


async def test_taken_name_is_reported_before_a_full_store(service: RunningService) -> None:
    agent, _ = await _fill(service, *"abcde", pinned=True)
    clash = await agent.post(MEMORY, json=draft("c", memory_type="episodic"))
    assert_problem(clash, 409, "ENTRY_EXISTS")


async def test_a_refused_create_evicts_nothing_and_forgets_no_read(service: RunningService) -> None:
    agent, paths = await _fill(service, *"abcde")
    assert (await agent.get(paths[0])).is_success
    service.clock.advance(1)
    before = await everything(service)
    clash = await agent.post(MEMORY, json=draft("c", memory_type="episodic"))
    assert_problem(clash, 409, "ENTRY_EXISTS")
    assert await everything(service) == before
    await make(agent, "f", memory_type="episodic")
    assert await _evicted(agent) == ["b"], "the read of `a` was forgotten with the refused create"


async def test_agents_and_tenants_fill_up_apart(service: RunningService) -> None:
    agent, _ = await _fill(service, *"abcde")
    other = await service.agent("other")
    foreign = await service.agent("ada", tenant="elsewhere")
    for client in (other, foreign):
        for name in "abcde":
            await make(client, name, memory_type="episodic")
    for tier in ("working", "session", "semantic", "procedural"):
        await make(agent, "more", memory_type=tier)
    assert await _evicted(agent) == []
    assert await _episodic(agent) == set("abcde")


async def test_a_batch_may_evict_and_even_its_own_first_entries_count(
    service: RunningService,
) -> None:
    agent, _ = await _fill(service, *"abcde")
    elements = [draft(name, memory_type="episodic") for name in "fgh"]
    assert (await agent.post(BATCH, json={"entries": elements})).is_success
    assert await _evicted(agent) == list("abc")
    assert await _episodic(agent) == set("defgh")


@pytest.mark.parametrize("sensitivity", ["internal", "restricted"])
@pytest.mark.parametrize("policy", ["lru", "lfu", "oldest", "utility"])
async def test_entries_about_the_same_person_are_evicted_first(
    service: RunningService, policy: str, sensitivity: str
) -> None:
    """Whoever an agent writes about most does not displace what it knows about others."""
    chief = await service.agent("chief", permissions=EVERY_PERMISSION)
    await chief.put("/api/v1/tiers/episodic", json={"eviction": policy})
    fields: dict[str, Any] = {"subjects": ["ana"], "sensitivity": sensitivity}
    agent, _ = await _fill(service, "allergy", **fields)
    await _fill(service, *"abcdefgh", **{**fields, "subjects": ["bob"]})
    assert await _episodic(agent) == {"allergy", *"efgh"}
    assert await _evicted(agent) == list("abcd")
    # An entry about nobody displaces whatever the policy chooses.
    await _fill(service, "i", **{**fields, "subjects": []})
    assert await _episodic(agent) == set("efghi")


async def test_a_write_that_evicts_warns(service: RunningService) -> None:
    agent, paths = await _fill(service, *"abcd")
    plain = await agent.post(MEMORY, json=draft("e", memory_type="episodic"))
    assert "warnings" not in plain.json()
    made = await agent.post(MEMORY, json=draft("f", memory_type="episodic"))
    (warning,) = made.json()["warnings"]
    assert warning["code"] == "EVICTED"
    assert "episodic memory is full" in warning["detail"]
    gone = {"id": paths[0].removeprefix(f"{MEMORY}/"), "namespace": "invoices", "key": "a"}
    assert warning["entries"] == [gone]
    # Only the response to the write has the warning.
    assert "warnings" not in (await agent.get(f"{MEMORY}/{made.json()['id']}")).json()
    elements = [draft(name, memory_type="episodic") for name in "gh"]
    (warning,) = (await agent.post(BATCH, json={"entries": elements})).json()["warnings"]
    assert [one["key"] for one in warning["entries"]] == ["b", "c"]
    # A request about one person is not told what the agent has named after others.
    put = draft("i", memory_type="episodic")
    bound = await agent.put(MEMORY, json=put, headers={"X-Subject": "ana"})
    assert set(bound.json()["warnings"][0]["entries"][0]) == {"id"}
    text = (await agent.get("/metrics")).text
    assert 'memorywall_evicted_entries_total{memory_type="episodic"} 4.0' in text
    assert 'memorywall_nearly_full_writes_total{memory_type="episodic"} 4.0' in text


async def test_the_status_names_agents_whose_memory_is_nearly_full(
    service: RunningService,
) -> None:
    chief = await service.agent("chief", permissions=EVERY_PERMISSION)
    await set_capacity(service.services, "default", "bob", 2)
    await set_capacity(service.services, "default", "eve", 100)

    async def nearly_full() -> dict[str, Any]:
        tiers = (await chief.get("/api/v1/status")).json()["tiers"]
        return {one["memory_type"]: one["nearly_full"] for one in tiers if one["nearly_full"]}

    await _fill(service, *"abcd")
    bob, eve = await service.agent("bob"), await service.agent("eve")
    elsewhere = await service.agent("ada", tenant="other")
    await make(bob, "a", memory_type="episodic")
    for name in "abcde":
        await make(eve, name, memory_type="episodic")
        await make(elsewhere, name, memory_type="episodic")
    assert await nearly_full() == {}
    await _fill(service, "e")
    await make(bob, "b", memory_type="episodic")
    ada = {"agent_id": "ada", "entries": 5, "capacity": 5}
    assert await nearly_full() == {
        "episodic": [ada, {"agent_id": "bob", "entries": 2, "capacity": 2}]
    }
    await chief.put("/api/v1/tiers/session", json={"capacity": 1})
    await make(bob, "s", memory_type="session", scope={"session_id": "s"})
    assert (await nearly_full())["session"] == [{"agent_id": "bob", "entries": 1, "capacity": 1}]


async def test_capacity_of_an_agent_replaces_the_default(service: RunningService) -> None:
    await set_capacity(service.services, "default", "ada", 2)
    agent, _ = await _fill(service, *"abc")
    assert await _episodic(agent) == set("bc")
    summary = (await agent.get("/api/v1/agents/ada/memory/summary")).json()["episodic"]
    assert summary["capacity"] == 2
    await set_capacity(service.services, "default", "ada", None)
    await _fill(service, *"def")
    assert await _episodic(agent) == set("bcdef")
    # Lowered under what is stored: the next create brings the store down to the new capacity.
    await set_capacity(service.services, "default", "ada", 3)
    await make(agent, "g", memory_type="episodic")
    assert await _episodic(agent) == set("efg")


async def test_too_many_pinned_after_lowering_undoes_every_eviction(
    service: RunningService,
) -> None:
    agent, _ = await _fill(service, *"abc", pinned=True)
    await _fill(service, *"de")
    await set_capacity(service.services, "default", "ada", 2)
    before = await everything(service)
    response = await agent.post(MEMORY, json=draft("f", memory_type="episodic"))
    document = assert_problem(response, 429, "CAPACITY_EXCEEDED")
    assert (document["current_count"], document["max_capacity"]) == (5, 2)
    assert await everything(service) == before


async def test_the_default_capacity_is_a_thousand(tmp_path: Path) -> None:
    async with open_service(tmp_path / "large") as service:
        agent = await service.agent("ada")
        elements = [draft(f"k{number:04}", memory_type="episodic") for number in range(1_000)]
        assert (await agent.post(BATCH, json={"entries": elements})).is_success
        assert await _evicted(agent) == []
        await make(agent, "k1000", memory_type="episodic")
        assert len(await _evicted(agent)) == 1
        summary = (await agent.get("/api/v1/agents/ada/memory/summary")).json()["episodic"]
        assert (summary["entry_count"], summary["capacity"]) == (1_000, 1_000)


async def test_expired_entry_does_not_count_and_is_not_evicted(service: RunningService) -> None:
    agent, _ = await _fill(service, "brief", ttl="duration:PT2S")
    await _fill(service, *"abcd")
    await make(agent, "e", memory_type="episodic")
    assert await _evicted(agent) == []
    service.clock.advance(1)
    await make(agent, "f", memory_type="episodic")
    assert await _episodic(agent) == set("bcdef"), "the store holds more than its capacity"
    assert await _evicted(agent) == ["a"]


async def test_rebinding_an_episode_to_a_task_evicts_nothing(service: RunningService) -> None:
    agent, paths = await _fill(service, *"abcde")
    for number, path in enumerate(paths):
        change = {"scope": {"task_id": f"t{number}"}}
        response = await agent.patch(path, json=change, headers={"If-Match": "1"})
        assert response.status_code == 200, response.text
    assert await _evicted(agent) == []
    assert await _episodic(agent) == set("abcde")


async def test_a_tasks_working_memory_refuses_when_it_is_full(service: RunningService) -> None:
    agent, other = await service.agent("ada"), await service.agent("other")
    task = {"task_id": "t1", "intent_id": "i1"}
    await make(agent, "a", scope=task)
    first = await make(agent, "b", scope=task)
    await make(other, "c", scope=task)
    before = await everything(service)
    for client in (agent, other):
        for pinned in (False, True):
            body = draft("d", scope={"task_id": "t1"}, pinned=pinned)
            document = assert_problem(
                await client.post(MEMORY, json=body), 429, "CAPACITY_EXCEEDED"
            )
            assert (document["current_count"], document["max_capacity"]) == (3, 3)
    assert await everything(service) == before
    clash = await agent.post(MEMORY, json=draft("a", scope=task))
    assert_problem(clash, 409, "ENTRY_EXISTS")
    # Other tasks, other tiers, other tenants and entries without a task have their own room.
    await make(agent, "d", scope={"task_id": "t2"})
    await make(agent, "e", scope={"intent_id": "i1"})
    await make(agent, "f", scope=task, memory_type="episodic")
    await make(await service.agent("ada", tenant="elsewhere"), "a", scope=task)
    assert (await agent.delete(f"{MEMORY}/{first['id']}")).status_code == 204
    await make(agent, "d2", scope=task)


async def test_an_entry_cannot_be_moved_into_a_full_task(service: RunningService) -> None:
    agent = await service.agent("ada")
    for name in "abc":
        await make(agent, name, scope={"task_id": "full"})
    made = await make(agent, "mover", scope={"task_id": "other"})
    path = f"{MEMORY}/{made['id']}"
    before = await everything(service)
    change = {"scope": {"task_id": "full"}}
    response = await agent.patch(path, json=change, headers={"If-Match": "1"})
    document = assert_problem(response, 429, "CAPACITY_EXCEEDED")
    assert (document["current_count"], document["max_capacity"]) == (3, 3)
    assert await everything(service) == before
    within = await keys_of(agent, **{"scope.task_id": "full"})
    assert within == ["c", "b", "a"]


async def test_an_entry_in_a_full_task_can_still_be_changed(service: RunningService) -> None:
    agent = await service.agent("ada")
    entries = [await make(agent, name, scope={"task_id": "full"}) for name in "abc"]
    change = {"value": {}, "scope": {"task_id": "full", "intent_id": "i"}}
    response = await agent.patch(
        f"{MEMORY}/{entries[0]['id']}", json=change, headers={"If-Match": "1"}
    )
    assert response.status_code == 200, response.text


async def test_expired_entries_take_no_room_in_a_task(service: RunningService) -> None:
    agent = await service.agent("ada")
    for name in "abc":
        await make(agent, name, scope={"task_id": "t"}, ttl="duration:PT1M")
    service.clock.advance(60)
    await make(agent, "d", scope={"task_id": "t"})
