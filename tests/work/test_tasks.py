"""Tasks: what they are made of, what they wait for, who may do what with them (RFC-0012)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.http.checks import assert_problem
from tests.work.crew import COORDINATORS, INTENTS, TASKS, Crew, ok

pytestmark = pytest.mark.anyio

DEEPEST = 32


async def test_task_stores_its_parameters(crew: Crew) -> None:
    body = {
        "intent_id": crew.intent["id"],
        "name": "pay",
        "description": "All of them",
        "assigned_agent": "a",
        "capabilities_required": ["billing"],
        "input": {"month": 2},
        "priority": "high",
        "max_attempts": 5,
        "metadata": {"colour": "red"},
        "memory_policy": {
            "archive_on_completion": False,
            "inherit_from_parent": False,
            "max_entries": 7,
            "max_total_size_kb": 9,
        },
        "timeout_seconds": 60,
        "plan_id": "plan_1",
    }
    response = await crew.chief.post(TASKS, json=body)
    made = ok(response, 201)
    assert made["id"].startswith("task_")
    assert response.headers["etag"] == '"1"'
    at_first = "2026-02-02T02:40:00.000Z"
    assert made == body | {
        "id": made["id"],
        "version": 1,
        "state": "ready",
        "status": "ready",
        "attempt": 1,
        "depends_on": [],
        "assignments": [{"agent_id": "a", "assigned_by": "chief", "assigned_at": at_first}],
        "created_by": "chief",
        "created_at": at_first,
        "updated_at": at_first,
    }
    assert ok(await crew.a.get(f"{TASKS}/{made['id']}")) == made
    assert_problem(await crew.outsider.get(f"{TASKS}/{made['id']}"), 403, "ACCESS_DENIED")
    assert_problem(await crew.a.get(f"{TASKS}/task_none"), 404)
    foreign = await crew.service.agent("chief", tenant="other")
    assert_problem(await foreign.get(f"{TASKS}/{made['id']}"), 404)


async def test_a_task_has_defaults(crew: Crew) -> None:
    task = await crew.task()
    assert task["memory_policy"] == {
        "archive_on_completion": True,
        "inherit_from_parent": False,
    } | {key: None for key in ("max_entries", "max_total_size_kb") if key in task["memory_policy"]}
    assert (task["input"], task["metadata"], task["assignments"]) == ({}, {}, [])
    assert "assigned_agent" not in task


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"name": ""}, 422),
        ({"id": "task_of_mine"}, 422),
        ({"status": "claimed"}, 422),
        ({"intent_id": "int_none"}, 404),
        ({"parent_task_id": "task_none"}, 404),
        ({"depends_on": ["task_none"]}, 404),
        ({"assigned_agent": "a/b"}, 422),
        ({"max_attempts": 0}, 422),
        ({"memory_policy": {"max_entries": -1}}, 422),
        ({"memory_policy": {"keep": True}}, 422),
        ({"input": {"text": "x" * 65_536}}, 413),
        ({"capabilities_required": [f"c{number}" for number in range(65)]}, 422),
    ],
)
async def test_task_with_invalid_parameters_is_refused(
    crew: Crew, fields: dict[str, Any], status: int
) -> None:
    body = {"intent_id": crew.intent["id"], "name": "n", **fields}
    assert_problem(await crew.chief.post(TASKS, json=body), status)
    assert ok(await crew.chief.get(f"{crew.intent_path}/tasks")) == []


async def test_a_repeated_creation_makes_one_task(crew: Crew) -> None:
    body = {"intent_id": crew.intent["id"], "name": "n"}
    again = {"Idempotency-Key": "once"}
    first = ok(await crew.chief.post(TASKS, json=body, headers=again), 201)
    assert ok(await crew.chief.post(TASKS, json=body, headers=again), 201) == first
    assert ok(await crew.chief.get(f"{crew.intent_path}/tasks")) == [first]


async def test_a_task_waits_for_all_it_depends_on(crew: Crew) -> None:
    first, second = await crew.task("first"), await crew.task("second")
    third = await crew.task("third", depends_on=[first["id"], second["id"], first["id"]])
    assert third["depends_on"] == [first["id"], second["id"]]
    fourth = await crew.task("fourth", depends_on=[third["id"]])
    assert (third["status"], fourth["status"]) == ("pending", "pending")
    for step in ("claimed", "completed"):
        await crew.change(crew.chief, first["id"], status=step)
    assert (await crew.now(third["id"]))["status"] == "pending"
    for step in ("claimed", "failed", "ready", "claimed"):
        await crew.change(crew.chief, second["id"], status=step)
        assert (await crew.now(third["id"]))["status"] == "pending"
    await crew.change(crew.chief, second["id"], status="completed")
    assert (await crew.now(third["id"]))["status"] == "ready"
    assert (await crew.now(fourth["id"]))["status"] == "pending"
    late = await crew.task("late", depends_on=[first["id"], second["id"]])
    assert late["status"] == "ready"


async def test_pending_task_cannot_be_claimed(crew: Crew) -> None:
    first = await crew.task("first", assigned_agent="b")
    task = await crew.task("second", depends_on=[first["id"]], assigned_agent="a")
    response = await crew.a.post(f"{TASKS}/{task['id']}/claim", json={})
    assert_problem(response, 409, "INVALID_TRANSITION")
    ok(await crew.a.post(f"{TASKS}/next", json={}), 204)


async def test_blocking_a_waiting_task_is_no_way_round_its_dependencies(crew: Crew) -> None:
    first = await crew.task("first")
    task = await crew.task("second", depends_on=[first["id"]])
    await crew.change(crew.chief, task["id"], status="blocked")
    response = await crew.try_change(crew.chief, task["id"], status="ready")
    assert_problem(response, 409, "INVALID_TRANSITION")
    assert (await crew.now(task["id"]))["status"] == "blocked"


async def test_dependencies_and_parents_are_of_the_same_intent(crew: Crew) -> None:
    other = ok(await crew.chief.post(INTENTS, json={"title": "other"}), 201)
    task = await crew.task()
    for field in ({"parent_task_id": task["id"]}, {"depends_on": [task["id"]]}):
        body = {"intent_id": other["id"], "name": "n", **field}
        assert_problem(await crew.chief.post(TASKS, json=body), 404)


async def test_tasks_can_be_nested_so_deep_and_no_deeper(crew: Crew) -> None:
    above = (await crew.task())["id"]
    for _ in range(DEEPEST - 1):
        made = await crew.task(parent_task_id=above)
        assert made["parent_task_id"] == above
        above = made["id"]
    body = {"intent_id": crew.intent["id"], "name": "n", "parent_task_id": above}
    problem = assert_problem(await crew.chief.post(TASKS, json=body), 429, "CAPACITY_EXCEEDED")
    assert problem["max_capacity"] == DEEPEST


async def test_a_task_keeps_who_worked_on_it(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a")
    crew.service.clock.advance(1)
    await crew.take(crew.a, task["id"])
    crew.service.clock.advance(1)
    await crew.change(crew.chief, task["id"], assigned_agent="b")
    crew.service.clock.advance(1)
    await crew.change(crew.chief, task["id"], assigned_agent=None)
    crew.service.clock.advance(1)
    taken = await crew.take(crew.a, await _let_in(crew, task["id"]))
    second = "2026-02-02T02:40:0{}.000Z".format
    assert taken.task["assigned_agent"] == "a"
    assert taken.task["assignments"] == [
        {
            "agent_id": "a",
            "assigned_by": "chief",
            "assigned_at": second(0),
            "accepted_at": second(1),
            "ended_at": second(2),
        },
        {
            "agent_id": "b",
            "assigned_by": "chief",
            "assigned_at": second(2),
            "ended_at": second(3),
        },
        {
            "agent_id": "a",
            "assigned_by": "a",
            "assigned_at": second(4),
            "accepted_at": second(4),
        },
    ]


async def _let_in(crew: Crew, task_id: str) -> str:
    """Lets `a` take part in the intent."""
    body = {"principal_id": "a", "permission": "write"}
    ok(await crew.chief.post(f"{crew.intent_path}/acl/entries", json=body), 201)
    return task_id


async def test_being_assigned_or_moved_by_others_is_not_accepting(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a")
    moved = await crew.change(crew.chief, task["id"], status="claimed")
    assert "accepted_at" not in moved["assignments"][-1]
    started = await crew.change(crew.a, task["id"], status="running")
    assert started["assignments"][-1]["accepted_at"]


async def test_only_coordinators_and_administrators_reassign(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a")
    await crew.task("other", assigned_agent="b")
    for client in (crew.a, crew.b, crew.outsider):
        response = await client.patch(
            f"{TASKS}/{task['id']}", json={"assigned_agent": "b"}, headers={"If-Match": "1"}
        )
        assert_problem(response, 403, "ACCESS_DENIED")
    body = {"agent_id": "b", "intent_id": crew.intent["id"]}
    ok(await crew.chief.post(COORDINATORS, json=body), 201)
    assert (await crew.change(crew.b, task["id"], assigned_agent="b"))["assigned_agent"] == "b"
    line = {"principal_id": "outsider", "permission": "admin"}
    ok(await crew.chief.post(f"{crew.intent_path}/acl/entries", json=line), 201)
    assert (await crew.change(crew.outsider, task["id"], assigned_agent="a"))[
        "assigned_agent"
    ] == "a"


async def test_task_of_another_agent_is_not_changed(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a")
    await crew.task("other", assigned_agent="b")
    changes: list[dict[str, Any]] = [{"status": "claimed"}, {"output": {"x": 1}}, {"metadata": {}}]
    for fields in changes:
        for client in (crew.b, crew.outsider):
            assert_problem(await crew.try_change(client, task["id"], **fields), 403)
    for client in (crew.b, crew.outsider):
        assert_problem(await client.post(f"{TASKS}/{task['id']}/claim", json={}), 403)
    assert await crew.now(task["id"]) == task


async def test_only_writers_of_an_intent_claim_unassigned_tasks(crew: Crew) -> None:
    task = await crew.task()
    line = {"principal_id": "b", "permission": "read"}
    ok(await crew.chief.post(f"{crew.intent_path}/acl/entries", json=line), 201)
    for client in (crew.b, crew.outsider):
        assert_problem(await client.post(f"{TASKS}/{task['id']}/claim", json={}), 403)
        ok(await client.post(f"{TASKS}/next", json={}), 204)
    assert await crew.now(task["id"]) == task
    taken = await crew.take(crew.a, await _let_in(crew, task["id"]))
    assert (taken.task["status"], taken.task["assigned_agent"]) == ("claimed", "a")


async def test_result_can_be_reported_while_the_task_runs(crew: Crew) -> None:
    task, taken = await crew.working()
    fields: dict[str, Any] = {"output": {"half": 1}, "metadata": {"seen": 3}, "error": "slow"}
    changed = await crew.change(crew.a, task["id"], token=taken.token, **fields)
    assert fields.items() <= changed.items()
    assert changed["status"] == "running"
    cleared = await crew.change(crew.a, task["id"], token=taken.token, output=None, error=None)
    assert cleared.keys().isdisjoint({"output", "error"})
    large = await crew.try_change(
        crew.a, task["id"], token=taken.token, output={"text": "x" * 65_536}
    )
    assert_problem(large, 413)
    blocked = await crew.change(
        crew.a, task["id"], token=taken.token, status="blocked", blocked_reason="no key"
    )
    assert blocked["blocked_reason"] == "no key"


async def test_a_task_that_was_completed_stays_as_it_is(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a")
    for step in ("claimed", "completed"):
        task = await crew.change(crew.a, task["id"], status=step)
    assert_problem(await crew.try_change(crew.a, task["id"], output={"late": 1}), 403)
    assert await crew.now(task["id"]) == task
