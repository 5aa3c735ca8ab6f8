"""Limits of working memory: by task, by guardrails, by settings; the tightest holds (6.5, 6.6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.http.checks import BATCH, MEMORY, assert_problem, everything, value_of_size
from tests.support.service import open_service
from tests.work.crew import Crew, crew_of, note, ok, recall, remember

pytestmark = pytest.mark.anyio


async def _fill(crew: Crew, task_id: str, count: int, **fields: Any) -> list[dict[str, Any]]:
    return [await remember(crew.a, task_id, f"k{number}", **fields) for number in range(count)]


async def test_a_tasks_policy_bounds_its_entries(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a", memory_policy={"max_entries": 2})
    made = await _fill(crew, task["id"], 2)
    before = await everything(crew.service)
    response = await crew.a.post(MEMORY, json=note(task["id"], "more"))
    problem = assert_problem(response, 429, "CAPACITY_EXCEEDED")
    assert (problem["current_count"], problem["max_capacity"]) == (2, 2)
    assert await everything(crew.service) == before
    # Changing what is there needs no room; another task has room of its own.
    path = f"{MEMORY}/{made[0]['id']}"
    ok(await crew.a.patch(path, json={"value": {"n": 1}}, headers={"If-Match": "1"}))
    other = await crew.task("other", assigned_agent="a")
    await _fill(crew, other["id"], 3, namespace="elsewhere")
    # Other tiers are not counted, and what has gone makes room.
    await remember(crew.a, task["id"], "e", memory_type="episodic")
    ok(await crew.a.delete(path), 204)
    await remember(crew.a, task["id"], "more")


async def test_existing_key_is_reported_before_a_full_task(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a", memory_policy={"max_entries": 1})
    await _fill(crew, task["id"], 1)
    assert_problem(await crew.a.post(MEMORY, json=note(task["id"], "k0")), 409, "ENTRY_EXISTS")


async def test_expired_entry_does_not_count(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a", memory_policy={"max_entries": 1})
    await _fill(crew, task["id"], 1, ttl="duration:PT10S")
    crew.service.clock.advance(10)
    await remember(crew.a, task["id"], "next")


async def test_a_previous_agents_entries_count(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a", memory_policy={"max_entries": 2})
    await _fill(crew, task["id"], 1)
    await crew.change(crew.chief, task["id"], assigned_agent="b")
    await remember(crew.b, task["id"])
    response = await crew.b.post(MEMORY, json=note(task["id"], "more"))
    problem = assert_problem(response, 429, "CAPACITY_EXCEEDED")
    assert (problem["current_count"], problem["max_capacity"]) == (2, 2)


async def test_a_batch_over_the_limit_leaves_nothing(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a", memory_policy={"max_entries": 2})
    before = await everything(crew.service)
    entries = [note(task["id"], f"k{number}") for number in range(3)]
    problem = assert_problem(await crew.a.post(BATCH, json={"entries": entries}), 429)
    assert (problem["index"], problem["current_count"], problem["max_capacity"]) == (2, 2, 2)
    assert await everything(crew.service) == before


async def test_no_room_at_all(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a", memory_policy={"max_entries": 0})
    problem = assert_problem(await crew.a.post(MEMORY, json=note(task["id"])), 429)
    assert (problem["current_count"], problem["max_capacity"]) == (0, 0)


async def test_a_policy_bounds_the_size_of_all_values_together(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a", memory_policy={"max_total_size_kb": 2})
    await remember(crew.a, task["id"], "first", value=value_of_size(1_024))
    over = note(task["id"], "second", value=value_of_size(1_025))
    problem = assert_problem(await crew.a.post(MEMORY, json=over), 429, "CAPACITY_EXCEEDED")
    assert problem["current_count"] == 1
    assert {"current_count", "max_capacity"} <= problem.keys()
    # Exactly full is not too full, and a sealed value counts as it was given.
    await remember(
        crew.a, task["id"], "second", value=value_of_size(1_024), sensitivity="restricted"
    )
    assert_problem(await crew.a.post(MEMORY, json=note(task["id"], "third", value={})), 429)


async def test_a_change_is_bounded_as_well(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a", memory_policy={"max_total_size_kb": 1})
    first = await remember(crew.a, task["id"], "first", value=value_of_size(500))
    await remember(crew.a, task["id"], "second", value=value_of_size(500))
    path = f"{MEMORY}/{first['id']}"
    at = {"If-Match": "1"}
    over = {"value": value_of_size(525)}
    assert_problem(await crew.a.patch(path, json=over, headers=at), 429, "CAPACITY_EXCEEDED")
    batch = {"entries": [{"id": first["id"], "version": 1, **over}]}
    assert_problem(await crew.a.post(BATCH, json=batch), 429, "CAPACITY_EXCEEDED")
    assert ok(await crew.a.get(path)) == first
    ok(await crew.a.patch(path, json={"value": value_of_size(524)}, headers=at))
    # What makes it smaller, or does not touch the value, is always allowed.
    ok(await crew.a.patch(path, json={"tags": ["t"]}, headers={"If-Match": "2"}))
    ok(await crew.a.patch(path, json={"value": {}}, headers={"If-Match": "3"}))


async def test_moving_an_entry_needs_room_where_it_goes(crew: Crew) -> None:
    free = await crew.task("free", assigned_agent="a")
    full = await crew.task("full", assigned_agent="a", memory_policy={"max_entries": 1})
    small = await crew.task("small", assigned_agent="a", memory_policy={"max_total_size_kb": 1})
    entry = await remember(crew.a, free["id"], value=value_of_size(2_000))
    await remember(crew.a, full["id"], "there")
    path = f"{MEMORY}/{entry['id']}"
    for task in (full, small):
        body = {"scope": {"task_id": task["id"]}}
        assert_problem(await crew.a.patch(path, json=body, headers={"If-Match": "1"}), 429)
    assert ok(await crew.a.get(path)) == entry


@pytest.mark.parametrize(
    ("setting", "policy", "guardrail", "tightest"),
    [
        (3, 5, 4, 3),
        (5, 3, 4, 3),
        (5, 4, 3, 3),
        (5, None, 3, 3),
        (5, 3, None, 3),
        (3, None, None, 3),
        (3, 100, 100, 3),
    ],
)
async def test_the_tightest_limit_wins(
    tmp_path: Path, setting: int, policy: int | None, guardrail: int | None, tightest: int
) -> None:
    async with open_service(tmp_path, working_capacity_per_task=setting) as service:
        crew = await crew_of(service)
        await crew.coordinate({"max_working_memory_per_task": guardrail} if guardrail else None)
        task = await crew.task(assigned_agent="a", memory_policy={"max_entries": policy})
        await _fill(crew, task["id"], tightest)
        problem = assert_problem(await crew.a.post(MEMORY, json=note(task["id"], "more")), 429)
        assert (problem["current_count"], problem["max_capacity"]) == (tightest, tightest)


async def test_new_guardrails_count_from_then_on_and_take_nothing_away(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a")
    made = await _fill(crew, task["id"], 4)
    await crew.coordinate({"max_working_memory_per_task": 2})
    problem = assert_problem(await crew.a.post(MEMORY, json=note(task["id"], "more")), 429)
    assert (problem["current_count"], problem["max_capacity"]) == (4, 2)
    path = f"{MEMORY}/{made[0]['id']}"
    ok(await crew.a.patch(path, json={"value": {"n": 1}}, headers={"If-Match": "1"}))
    assert len(await recall(crew.a, task["id"])) == 4
