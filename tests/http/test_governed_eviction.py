"""Evictions and expiry leave entries of governed kinds to their own operations."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from memorywall.records.principal import Permission
from tests.http.checks import MEMORY, assert_problem, make
from tests.http.test_sessions import begin
from tests.support.rounds import sweep
from tests.support.service import RunningService, draft
from tests.work.crew import TASKS, crew_of, ok, under

pytestmark = pytest.mark.anyio

TIERS = "/api/v1/tiers"


@pytest.fixture
async def chief(service: RunningService) -> httpx.AsyncClient:
    return await service.agent("root", permissions=tuple(Permission))


@pytest.fixture
async def ada(service: RunningService) -> httpx.AsyncClient:
    return await service.agent("ada")


async def _evict(chief: httpx.AsyncClient, tier: str, **asked: Any) -> tuple[list[str], int]:
    told = ok(await chief.post(f"{TIERS}/{tier}/evict", json=asked))
    assert told["evicted"] == len(told["entry_ids"])
    return told["entry_ids"], told["remaining"]


async def test_turns_are_not_evicted_on_request(
    chief: httpx.AsyncClient, ada: httpx.AsyncClient
) -> None:
    talk = await begin(ada)
    await talk.add("a", "b", "c")
    note = await make(ada, "note", memory_type="session")
    asked = {"agent_id": "ada", "target": 1, "policy": "oldest"}
    assert await _evict(chief, "session", **asked, dry_run=True) == ([note["id"]], 3)
    assert await _evict(chief, "session", **asked) == ([note["id"]], 3)
    assert await _evict(chief, "session", **asked) == ([], 3)
    assert await talk.texts() == ["a", "b", "c"]
    assert (await talk.do("GET"))["counts"]["turn_count"] == 3


async def test_turns_are_not_evicted_for_a_new_entry(
    chief: httpx.AsyncClient, ada: httpx.AsyncClient
) -> None:
    ok(await chief.put(f"{TIERS}/session", json={"capacity": 3, "eviction": "oldest"}))
    talk = await begin(ada)
    await talk.add("a", "b")
    await make(ada, "note", memory_type="session")
    await talk.add("c")
    assert_problem(
        await ada.post(MEMORY, json=draft("more", memory_type="session")), 429, "CAPACITY_EXCEEDED"
    )
    turns = {"turns": [{"role": "user", "content": "d"}]}
    assert_problem(await talk.ask("POST", "/turns", **turns), 429, "CAPACITY_EXCEEDED")
    assert await talk.texts() == ["a", "b", "c"]
    counts = (await talk.do("GET"))["counts"]
    assert (counts["turn_count"], counts["last_sequence"]) == (3, 3)


async def test_turns_outlast_the_default_lifetime_of_their_tier(
    service: RunningService, chief: httpx.AsyncClient, ada: httpx.AsyncClient
) -> None:
    ok(await chief.put(f"{TIERS}/session", json={"default_ttl": "duration:PT1H"}))
    talk = await begin(ada)
    await talk.add("a", "b")
    await make(ada, "note", memory_type="session")
    service.clock.advance(3601)
    assert await sweep(service.services) == 1
    assert await talk.texts() == ["a", "b"]


async def test_items_of_working_memory_are_evicted_by_no_request_and_no_write(
    service: RunningService, chief: httpx.AsyncClient
) -> None:
    crew = await crew_of(service)
    _, taken = await crew.working()
    scope = {"task_id": taken.task["id"]}
    path, headers = f"{TASKS}/{taken.task['id']}/working", under(taken.token)
    ok(await crew.a.post(f"{path}/steps", json={"goal": ""}, headers=headers), 201)
    for name in ("first", "second"):
        body = {"content": name}
        ok(await crew.a.put(f"{path}/items/{name}", json=body, headers=headers))
    body = draft("note", memory_type="working", scope=scope)
    note = ok(await crew.a.post(MEMORY, json=body, headers=headers), 201)
    elsewhere = await make(crew.a, "elsewhere", memory_type="working", scope={"task_id": "x"})
    asked = {"agent_id": "a", "target": 0, "policy": "oldest"}
    of_task = {**asked, "task_id": taken.task["id"]}
    assert await _evict(chief, "working", **of_task, dry_run=True) == ([note["id"]], 2)
    ok(await chief.put(f"{TIERS}/working", json={"capacity": 3, "eviction": "oldest"}))
    third = {"content": "third"}
    ok(await crew.a.put(f"{path}/items/third", json=third, headers=headers))
    full = await crew.a.put(f"{path}/items/fourth", json=third, headers=headers)
    assert_problem(full, 429, "CAPACITY_EXCEEDED")
    assert await _evict(chief, "working", **of_task) == ([], 3)
    assert await _evict(chief, "working", **asked) == ([elsewhere["id"]], 3)
    shown = ok(await crew.a.get(path))
    assert [one["name"] for one in shown["items"]] == ["first", "second", "third"]


async def test_a_tier_that_refuses_is_evicted_only_by_a_named_policy(
    chief: httpx.AsyncClient, ada: httpx.AsyncClient
) -> None:
    made = await make(ada, "note", memory_type="session")
    asked = {"agent_id": "ada", "target": 0}
    for given in (asked, {**asked, "policy": "refuse"}):
        refused = await chief.post(f"{TIERS}/session/evict", json=given)
        assert "`policy`" in assert_problem(refused, 422)["detail"]
    assert await _evict(chief, "session", **asked, policy="lru") == ([made["id"]], 0)


async def test_a_task_is_named_only_where_capacity_is_per_task(
    chief: httpx.AsyncClient,
) -> None:
    asked = {"agent_id": "ada", "task_id": "t", "target": 0, "policy": "lru"}
    refused = await chief.post(f"{TIERS}/session/evict", json=asked)
    assert "`task_id`" in assert_problem(refused, 422)["detail"]
