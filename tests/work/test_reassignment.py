"""Section 8 of RFC-0015, step by step: a task goes from one agent to the next."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.http.checks import BATCH, MEMORY, assert_problem
from tests.support.rounds import expire_leases
from tests.support.service import draft
from tests.work.crew import COORDINATORS, TASKS, Crew, note, ok, recall, remember, under

pytestmark = pytest.mark.anyio


async def _read_only(
    client: httpx.AsyncClient, entry: dict[str, Any], token: int | None = None
) -> None:
    """Asserts that a client can get an entry and change it in no way."""
    path, headers = f"{MEMORY}/{entry['id']}", under(token)
    assert ok(await client.get(path)) == entry
    change = {"value": {"stolen": True}}
    responses = [
        await client.patch(path, json=change, headers=headers | {"If-Match": "1"}),
        await client.delete(path, headers=headers),
        await client.post(
            BATCH,
            json={"entries": [{"id": entry["id"], "version": 1, **change}]},
            headers=headers,
        ),
    ]
    for response in responses:
        assert_problem(response, 403, "ACCESS_DENIED")
    query = {"scope.task_id": entry["scope"]["task_id"], "key": entry["key"]}
    deleted = ok(await client.delete(BATCH, params=query, headers=headers))
    assert deleted["deleted"] == 0
    assert ok(await client.get(path)) == entry


async def test_the_flow_of_section_8(crew: Crew) -> None:
    # A coordinator that is nobody else, and a task taken up by A, which writes down its progress.
    ok(
        await crew.chief.post(
            COORDINATORS,
            json={
                "agent_id": "chief",
                "intent_id": crew.intent["id"],
                "heartbeat_interval_seconds": 600,
            },
        ),
        201,
    )
    task, first = await crew.working("a", seconds=30)
    task_id = task["id"]
    old = await remember(
        crew.a, task_id, "progress", first.token, value={"completed": 23}, tags=["batch"]
    )
    assert old["scope"] == {"task_id": task_id, "intent_id": crew.intent["id"]}
    assert await recall(crew.chief, task_id) == [("a", "progress")]
    assert await recall(crew.b, task_id) == []

    # A dies. Its lease lapses, and the task is there to be seen as nobody's work.
    crew.service.clock.advance(31)
    assert await expire_leases(crew.service.services) == 1
    waiting = await crew.now(task_id)
    assert (waiting["status"], waiting["assigned_agent"]) == ("ready", "a")

    # The coordinator gives it to B, which reads what A left and goes on from there.
    await crew.change(crew.chief, task_id, assigned_agent="b")
    taken = ok(await crew.b.post(f"{TASKS}/next", json={"lease_seconds": 600}))
    token = taken["lease"]["fencing_token"]
    assert taken["task"]["id"] == task_id
    assert token > first.token
    query = {"scope.task_id": task_id, "memory_type": "working"}
    (found,) = ok(await crew.b.get(MEMORY, params=query))["entries"]
    assert found == old
    await _read_only(crew.b, old, token)
    body = note(
        task_id,
        "progress",
        value={**found["value"], "completed": 24, "resumed_from": found["id"]},
        tags=["batch", "resumed"],
        derived_from=[{"id": found["id"], "version": found["version"]}],
    )
    resumed = ok(await crew.b.post(MEMORY, json=body, headers=under(token)), 201)
    assert (resumed["agent_id"], resumed["created_by"]) == ("b", "b")
    assert resumed["namespace"] == old["namespace"]

    # A comes back from the dead. What it wrote is its own to read, and there is no more.
    await _read_only(crew.a, old)
    assert await recall(crew.a, task_id) == [("a", "progress")]
    for headers in ({}, under(first.token)):
        response = await crew.a.post(MEMORY, json=note(task_id, "late"), headers=headers)
        assert response.status_code in (403, 409), response.text
    assert_problem(await crew.a.get(f"{MEMORY}/{resumed['id']}"), 403, "ACCESS_DENIED")

    # B finishes; the log says who wrote what, and the memory of both is in the archive.
    await crew.change(crew.b, task_id, token=token, status="running")
    done = await crew.change(crew.b, task_id, token=token, status="completed", output={"ok": 1})
    assert [one["agent_id"] for one in done["assignments"]] == ["a", "b"]
    written = [
        (one["agent_id"], one["actor"], one["data"]["entry_id"])
        for one in await crew.log(event_type="memory.created")
    ]
    assert written == [("a", "a", old["id"]), ("b", "b", resumed["id"])]
    (archive,) = await crew.log(event_type="memory.archived")
    assert {one["agent_id"] for one in archive["data"]["snapshot"]} == {"a", "b"}
    for client in (crew.a, crew.b, crew.chief):
        assert await recall(client, task_id) == []
    assert await crew.told(task_id) == [
        "task.created",
        "task.claimed",
        "lease_acquired",
        "task.started",
        "memory.created",
        "lease_released",
        "task.ready",
        "task.delegated",
        "task.claimed",
        "lease_acquired",
        "memory.created",
        "task.started",
        "memory.archived",
        "task.completed",
    ]


async def test_the_log_names_both_agents_of_a_reassignment(crew: Crew) -> None:
    task, _ = await crew.working("a")
    await crew.change(crew.chief, task["id"], assigned_agent="b")
    told = next(one for one in await crew.log() if one["type"] == "task.delegated")
    assert told["actor"] == "chief"
    assert (told["data"]["previous_agent"], told["data"]["assigned_agent"]) == ("a", "b")


async def test_only_memory_of_that_task_goes_over(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a")
    other = await crew.task("other", assigned_agent="a")
    await remember(crew.a, task["id"], "this")
    apart = [
        await remember(crew.a, other["id"], "that"),
        await remember(crew.a, task["id"], "episode", memory_type="episodic"),
        await remember(crew.a, task["id"], "turn", memory_type="session"),
        ok(await crew.a.post(MEMORY, json=draft("loose")), 201),
        ok(
            await crew.a.post(
                MEMORY, json=draft("of intent", scope={"intent_id": crew.intent["id"]})
            ),
            201,
        ),
    ]
    await crew.change(crew.chief, task["id"], assigned_agent="b")
    assert await recall(crew.b, task["id"]) == [("a", "this")]
    found = ok(await crew.b.get(MEMORY, params={"agent_id": "a"}))
    assert [one["key"] for one in found["entries"]] == ["this"]
    for entry in apart:
        assert_problem(await crew.b.get(f"{MEMORY}/{entry['id']}"), 403, "ACCESS_DENIED")
    assert_problem(await crew.outsider.get(f"{MEMORY}/{apart[0]['id']}"), 403)


async def test_a_third_agent_sees_both_and_the_second_nothing_more(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a")
    await remember(crew.a, task["id"])
    await crew.change(crew.chief, task["id"], assigned_agent="b")
    await remember(crew.b, task["id"])
    assert await recall(crew.b, task["id"]) == [("a", "progress"), ("b", "progress")]
    await crew.change(crew.chief, task["id"], assigned_agent="outsider")
    assert await recall(crew.outsider, task["id"]) == [("a", "progress"), ("b", "progress")]
    assert await recall(crew.b, task["id"]) == [("b", "progress")]
    assert await recall(crew.a, task["id"]) == [("a", "progress")]


async def test_a_task_given_back_to_its_first_agent_is_its_own_again(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a")
    entry = await remember(crew.a, task["id"])
    for agent in ("b", "a"):
        await crew.change(crew.chief, task["id"], assigned_agent=agent)
    path = f"{MEMORY}/{entry['id']}"
    ok(await crew.a.patch(path, json={"value": {"n": 1}}, headers={"If-Match": "1"}))
    assert await recall(crew.b, task["id"]) == []


async def test_an_entry_cannot_be_moved_out_of_a_task_that_went_to_another(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a")
    other = await crew.task("other", assigned_agent="a")
    entry = await remember(crew.a, task["id"])
    await crew.change(crew.chief, task["id"], assigned_agent="b")
    path = f"{MEMORY}/{entry['id']}"
    for scope in ({}, {"task_id": other["id"]}):
        response = await crew.a.patch(path, json={"scope": scope}, headers={"If-Match": "1"})
        assert_problem(response, 403, "ACCESS_DENIED")


async def test_agent_cannot_write_memory_of_another_agents_task(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a")
    await crew.task("other", assigned_agent="b")
    for client in (crew.b, crew.chief, crew.outsider):
        response = await client.post(MEMORY, json=note(task["id"]))
        assert_problem(response, 403, "ACCESS_DENIED")
    wrong = note(task["id"], scope={"task_id": task["id"], "intent_id": "int_other"})
    assert_problem(await crew.a.post(MEMORY, json=wrong), 422)


async def test_nobody_writes_to_the_log_of_an_intent_by_way_of_its_memory(crew: Crew) -> None:
    log = await crew.log()
    scope = {"intent_id": crew.intent["id"]}
    loose = ok(await crew.outsider.post(MEMORY, json=draft("loose")), 201)
    path = f"{MEMORY}/{loose['id']}"
    responses = [
        await crew.outsider.post(MEMORY, json=draft(scope=scope)),
        await crew.outsider.post(MEMORY, json=draft(scope=scope, memory_type="episodic")),
        await crew.outsider.patch(path, json={"scope": scope}, headers={"If-Match": "1"}),
    ]
    for response in responses:
        assert_problem(response, 403, "ACCESS_DENIED")
    assert await crew.log() == log


async def test_the_coordinator_reads_progress_only_while_it_coordinates(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a")
    entry = await remember(crew.a, task["id"])
    # Having made the intent is not coordinating it.
    assert await recall(crew.chief, task["id"]) == []
    await crew.coordinate(heartbeat_interval_seconds=10)
    await _read_only(crew.chief, entry)
    crew.service.clock.advance(30)
    assert await recall(crew.chief, task["id"]) == []
    assert_problem(await crew.chief.get(f"{MEMORY}/{entry['id']}"), 403, "ACCESS_DENIED")


async def test_coordinator_reads_episodes_of_agents_with_an_accepted_task(crew: Crew) -> None:
    await crew.coordinate()
    body = draft("episode", memory_type="episodic")
    entry = ok(await crew.a.post(MEMORY, json=body), 201)
    path, query = f"{MEMORY}/{entry['id']}", {"agent_id": "a", "memory_type": "episodic"}
    task = await crew.task(assigned_agent="a")

    async def seen() -> tuple[bool, int]:
        return (
            (await crew.chief.get(path)).is_success,
            ok(await crew.chief.get(MEMORY, params=query))["total"],
        )

    assert await seen() == (False, 0)
    await crew.take(crew.a, task["id"], seconds=600)
    assert await seen() == (True, 1)
    assert_problem(await crew.b.get(path), 403)
    assert_problem(await crew.chief.delete(path), 403, "ACCESS_DENIED")
    await crew.change(crew.chief, task["id"], assigned_agent="b")
    assert await seen() == (False, 0)
