"""Intents, their state and who may do what with them (RFC-0001, RFC-0011)."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.http.checks import assert_problem
from tests.support.service import RunningService
from tests.work.crew import COORDINATORS, INTENTS, TASKS, Crew, at, ok, under

pytestmark = pytest.mark.anyio

STATUSES = [
    "draft",
    "active",
    "blocked",
    "suspended_awaiting_input",
    "completed",
    "abandoned",
]


async def test_intent_stores_its_parameters(service: RunningService) -> None:
    maker = await service.agent("maker")
    parent = ok(await maker.post(INTENTS, json={"title": "above"}), 201)
    need = ok(await maker.post(INTENTS, json={"title": "before"}), 201)
    body = {
        "title": "Pay",
        "description": "All of them",
        "constraints": {"budget": 3},
        "state": {"phase": "start"},
        "created_by": "maker",
        "parent_intent_id": parent["id"],
        "depends_on": [need["id"]],
    }
    response = await maker.post(INTENTS, json=body)
    made = ok(response, 201)
    assert made["id"].startswith("int_")
    assert response.headers["etag"] == '"1"'
    assert made == body | {
        "id": made["id"],
        "version": 1,
        "status": "active",
        "confidence": 0,
        "created_at": "2026-02-02T02:40:00.000Z",
        "updated_at": "2026-02-02T02:40:00.000Z",
    }
    assert ok(await maker.get(f"{INTENTS}/{made['id']}")) == made


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"title": ""}, 422),
        ({"title": "x" * 513}, 422),
        ({"title": "t", "id": "int_of_mine"}, 422),
        ({"title": "t", "created_by": "a"}, 403),
        ({"title": "t", "parent_intent_id": "int_none"}, 404),
        ({"title": "t", "depends_on": ["int_none"]}, 404),
        ({"title": "t", "state": {"text": "x" * 65_536}}, 413),
    ],
)
async def test_intent_with_invalid_parameters_is_refused(
    crew: Crew, body: dict[str, Any], status: int
) -> None:
    assert_problem(await crew.chief.post(INTENTS, json=body), status)
    assert ok(await crew.chief.get(INTENTS))["total"] == 1


async def test_unreadable_parent_of_an_intent_is_refused(crew: Crew) -> None:
    for field in ({"parent_intent_id": crew.intent["id"]}, {"depends_on": [crew.intent["id"]]}):
        assert_problem(await crew.a.post(INTENTS, json={"title": "t", **field}), 403)


async def test_a_repeated_creation_makes_one_intent(crew: Crew) -> None:
    again = {"Idempotency-Key": "once"}
    first = ok(await crew.a.post(INTENTS, json={"title": "t"}, headers=again), 201)
    assert ok(await crew.a.post(INTENTS, json={"title": "t"}, headers=again), 201) == first
    assert ok(await crew.a.get(INTENTS))["total"] == 1


async def test_state_is_changed_all_or_nothing_at_its_version(crew: Crew) -> None:
    path = f"{crew.intent_path}/state"
    patches = [
        {"op": "set", "path": "phase", "value": "first"},
        {"op": "set", "path": "gone", "value": 1},
        {"op": "remove", "path": "gone"},
        {"op": "remove", "path": "never was"},
    ]
    crew.service.clock.advance(1)
    changed = ok(await crew.chief.post(path, json={"patches": patches}, headers=at(1)))
    assert changed["state"] == {"phase": "first"}
    assert changed["version"] == 2
    assert changed["updated_at"] > changed["created_at"]
    late = await crew.chief.post(path, json={"patches": patches}, headers=at(1))
    assert assert_problem(late, 409, "VERSION_MISMATCH")["current_version"] == 2
    assert_problem(await crew.chief.post(path, json={"patches": patches}), 428)
    bad = [{"op": "set", "path": "phase", "value": 2}, {"op": "move", "path": "phase"}]
    assert_problem(await crew.chief.post(path, json={"patches": bad}, headers=at(2)), 422)
    large = [{"op": "set", "path": "text", "value": "x" * 65_536}]
    assert_problem(await crew.chief.post(path, json={"patches": large}, headers=at(2)), 413)
    assert ok(await crew.chief.get(crew.intent_path)) == changed


@pytest.mark.parametrize("status", STATUSES)
async def test_every_status_can_be_set(crew: Crew, status: str) -> None:
    path = f"{crew.intent_path}/status"
    body = {"status": status, "reason": "because"}
    changed = ok(await crew.chief.post(path, json=body, headers=at(1)))
    assert (changed["status"], changed["version"]) == (status, 2)
    told = (await crew.log(event_type="status_changed"))[-1]
    assert told["data"] == {"from": "active", "to": status, "reason": "because"}
    assert_problem(await crew.chief.post(path, json=body, headers=at(1)), 409, "VERSION_MISMATCH")
    assert_problem(await crew.chief.post(path, json={"status": "odd"}, headers=at(2)), 422)
    found = ok(await crew.chief.get(INTENTS, params={"status": status}))
    assert [one["id"] for one in found["intents"]] == [crew.intent["id"]]


async def test_the_list_has_pages_newest_first_of_what_one_may_read(crew: Crew) -> None:
    for number in range(4):
        crew.service.clock.advance(1)
        ok(await crew.a.post(INTENTS, json={"title": f"t{number}"}), 201)
    page = ok(await crew.a.get(INTENTS, params={"limit": 3, "offset": 1}))
    assert [one["title"] for one in page["intents"]] == ["t2", "t1", "t0"]
    assert (page["total"], page["limit"], page["offset"]) == (4, 3, 1)
    assert ok(await crew.outsider.get(INTENTS))["total"] == 0
    await crew.task(assigned_agent="a")
    mine = ok(await crew.a.get(INTENTS))
    assert mine["intents"][-1]["id"] == crew.intent["id"]
    assert mine["total"] == 5


async def _access(crew: Crew, client: httpx.AsyncClient) -> tuple[bool, bool, bool]:
    """Whether a client can read, write and administer the intent."""
    readable = await client.get(crew.intent_path)
    written = await client.post(f"{crew.intent_path}/events", json={"event_type": "note"})
    body = {"principal_id": "nobody"}
    administered = await client.post(f"{crew.intent_path}/acl/entries", json=body)
    for response in (readable, written, administered):
        assert response.status_code in (200, 201) or assert_problem(response, 403, "ACCESS_DENIED")
    return readable.is_success, written.is_success, administered.is_success


async def test_new_intent_is_accessible_only_to_its_creator(crew: Crew) -> None:
    access = ok(await crew.chief.get(f"{crew.intent_path}/acl"))
    assert access == {"intent_id": crew.intent["id"], "default_policy": "closed", "entries": []}
    assert await _access(crew, crew.chief) == (True, True, True)
    assert await _access(crew, crew.a) == (False, False, False)
    assert_problem(await crew.a.get(f"{INTENTS}/int_none"), 404)
    foreign = await crew.service.agent("chief", tenant="other")
    assert_problem(await foreign.get(crew.intent_path), 404)


@pytest.mark.parametrize(
    ("permission", "levels"),
    [
        ("read", (True, False, False)),
        ("write", (True, True, False)),
        ("admin", (True, True, True)),
    ],
)
async def test_a_line_of_the_access_list_gives_its_level_until_it_ends(
    crew: Crew, permission: str, levels: tuple[bool, bool, bool]
) -> None:
    path = f"{crew.intent_path}/acl/entries"
    body = {
        "principal_id": "a",
        "permission": permission,
        "reason": "helps",
        "expires_at": "2026-02-02T02:41:00Z",
    }
    line = ok(await crew.chief.post(path, json=body), 201)
    assert line["id"].startswith("acl_")
    assert line == body | {
        "id": line["id"],
        "principal_type": "agent",
        "granted_by": "chief",
        "granted_at": "2026-02-02T02:40:00.000Z",
        "expires_at": "2026-02-02T02:41:00.000Z",
    }
    assert await _access(crew, crew.a) == levels
    assert ok(await crew.a.get(INTENTS))["total"] == 1
    crew.service.clock.advance(60)
    assert await _access(crew, crew.a) == (False, False, False)
    assert ok(await crew.a.get(INTENTS))["total"] == 0
    forever = ok(await crew.chief.post(path, json=body | {"expires_at": None}), 201)
    assert await _access(crew, crew.a) == levels
    ok(await crew.chief.delete(f"{path}/{forever['id']}"), 204)
    assert_problem(await crew.chief.delete(f"{path}/{forever['id']}"), 404)
    assert await _access(crew, crew.a) == (False, False, False)


async def test_the_whole_access_list_is_replaced(crew: Crew) -> None:
    path = f"{crew.intent_path}/acl"
    ok(await crew.chief.post(f"{path}/entries", json={"principal_id": "a"}), 201)
    body = {"default_policy": "open", "entries": [{"principal_id": "b", "permission": "admin"}]}
    ok(await crew.chief.put(path, json=body))
    assert await _access(crew, crew.a) == (True, True, False)
    assert await _access(crew, crew.b) == (True, True, True)
    assert ok(await crew.outsider.get(INTENTS))["total"] == 1
    assert_problem(await crew.a.put(path, json=body), 403)
    # Whoever made an intent cannot be shut out of it.
    ok(await crew.b.put(path, json={"default_policy": "closed", "entries": []}))
    assert await _access(crew, crew.b) == (False, False, False)
    assert await _access(crew, crew.chief) == (True, True, True)
    named = [one["data"] for one in await crew.log(event_type="access_revoked")]
    assert {"a", "b"} <= {one["principal_id"] for one in named}
    for wrong in ({"principal_id": ""}, {"principal_id": "a", "permission": "own"}):
        assert_problem(await crew.chief.put(path, json={"entries": [wrong]}), 422)


async def test_work_gives_a_part_in_the_intent(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a")
    assert await _access(crew, crew.a) == (True, True, False)
    await crew.change(crew.chief, task["id"], status="cancelled")
    assert await _access(crew, crew.a) == (True, False, False)
    body = {"agent_id": "b", "intent_id": crew.intent["id"], "heartbeat_interval_seconds": 10}
    ok(await crew.chief.post(COORDINATORS, json=body), 201)
    assert await _access(crew, crew.b) == (True, True, True)
    crew.service.clock.advance(31)
    assert await _access(crew, crew.b) == (False, False, False)


async def test_reader_changes_nothing(crew: Crew) -> None:
    ok(await crew.chief.post(f"{crew.intent_path}/acl/entries", json={"principal_id": "a"}), 201)
    patches = {"patches": [{"op": "set", "path": "x", "value": 1}]}
    before = await crew.log()
    for response in (
        await crew.a.post(f"{crew.intent_path}/state", json=patches, headers=at(1)),
        await crew.a.post(f"{crew.intent_path}/status", json={"status": "draft"}, headers=at(1)),
        await crew.a.post(f"{crew.intent_path}/leases", json={"scope": "s"}),
        await crew.a.post(TASKS, json={"intent_id": crew.intent["id"], "name": "n"}),
        await crew.a.put(f"{crew.intent_path}/acl", json={"default_policy": "open"}),
    ):
        assert_problem(response, 403, "ACCESS_DENIED")
    assert await crew.log() == before
    assert ok(await crew.a.get(crew.intent_path)) == crew.intent


async def test_a_write_to_an_intent_under_a_lease_that_is_over_is_refused(crew: Crew) -> None:
    lease = ok(
        await crew.chief.post(
            f"{crew.intent_path}/leases", json={"scope": "s", "duration_seconds": 10}
        ),
        201,
    )
    crew.service.clock.advance(11)
    stale = under(lease["fencing_token"])
    patches = {"patches": [{"op": "set", "path": "x", "value": 1}]}
    state = f"{crew.intent_path}/state"
    assert_problem(await crew.chief.post(state, json=patches, headers=at(1) | stale), 409, "FENCED")
    status = f"{crew.intent_path}/status"
    body: dict[str, Any] = {"status": "draft"}
    assert_problem(await crew.chief.post(status, json=body, headers=at(1) | stale), 409, "FENCED")
    events = f"{crew.intent_path}/events"
    body = {"event_type": "note"}
    assert_problem(await crew.chief.post(events, json=body, headers=stale), 409, "FENCED")
    assert ok(await crew.chief.get(crew.intent_path)) == crew.intent
