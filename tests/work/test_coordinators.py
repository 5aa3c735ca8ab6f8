"""Coordinators: one at a time, by lease, and the guardrails they leave (RFC-0013)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.http.checks import MEMORY, assert_problem
from tests.support.rounds import expire_leases
from tests.work.crew import COORDINATORS, INTENTS, Crew, note, ok, recall, remember

pytestmark = pytest.mark.anyio


def _body(crew: Crew, agent: str = "b", **fields: Any) -> dict[str, Any]:
    return {"agent_id": agent, "intent_id": crew.intent["id"], **fields}


async def test_coordinator_stores_its_parameters(crew: Crew) -> None:
    guardrails = {
        "max_working_memory_per_task": 100,
        "max_episodic_memory_per_agent": 1_000,
        "allowed_semantic_namespaces": ["company_policies", "domain_knowledge"],
        "denied_semantic_namespaces": ["internal_config"],
        "memory_archive_required": True,
        "max_budget_usd": 2.5,
        "requires_plan_review": True,
        "escalation": {"after": 3},
    }
    body = _body(crew, guardrails=guardrails, supervisor_id="boss", metadata={"model": "x"})
    made = ok(await crew.chief.post(COORDINATORS, json=body), 201)
    assert made["id"].startswith("coord_")
    at_first = "2026-02-02T02:40:00.000Z"
    assert made == body | {
        "id": made["id"],
        "role": "coordinator",
        "coordinator_type": "llm",
        "scope": "intent",
        "status": "active",
        "heartbeat_interval_seconds": 60,
        "last_heartbeat": at_first,
        "granted_at": at_first,
        "expires_at": "2026-02-02T02:43:00.000Z",
        "fencing_token": made["fencing_token"],
        "version": 1,
    }
    path = f"{COORDINATORS}/{made['id']}"
    for client in (crew.chief, crew.b):
        assert ok(await client.get(path)) == made
        assert ok(await client.get(f"{crew.intent_path}/coordinators")) == [made]
    assert_problem(await crew.outsider.get(path), 403, "ACCESS_DENIED")
    assert_problem(await crew.outsider.get(f"{crew.intent_path}/coordinators"), 403)
    assert_problem(await crew.chief.get(f"{COORDINATORS}/coord_none"), 404)
    foreign = await crew.service.agent("chief", tenant="other")
    assert_problem(await foreign.get(path), 404)


async def test_only_administrators_of_the_intent_appoint(crew: Crew) -> None:
    await crew.task(assigned_agent="a")
    line = {"principal_id": "b", "permission": "write"}
    ok(await crew.chief.post(f"{crew.intent_path}/acl/entries", json=line), 201)
    for client in (crew.a, crew.b, crew.outsider):
        response = await client.post(COORDINATORS, json=_body(crew, "b"))
        assert_problem(response, 403, "ACCESS_DENIED")
    assert ok(await crew.chief.get(f"{crew.intent_path}/coordinators")) == []


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"intent_id": "int_none"}, 404),
        ({"agent_id": ""}, 422),
        ({"heartbeat_interval_seconds": 0}, 422),
        ({"expires_at": "2026-02-02T02:40:00Z"}, 422),
        ({"expires_at": "soon"}, 422),
        ({"scope": "portfolio"}, 422),
        ({"id": "coord_mine"}, 422),
    ],
)
async def test_coordinator_with_invalid_parameters_is_refused(
    crew: Crew, fields: dict[str, Any], status: int
) -> None:
    response = await crew.chief.post(COORDINATORS, json=_body(crew) | fields)
    assert_problem(response, status)
    assert ok(await crew.chief.get(f"{crew.intent_path}/coordinators")) == []


async def test_heartbeats_keep_a_coordinator_in_authority(crew: Crew) -> None:
    made = ok(
        await crew.chief.post(COORDINATORS, json=_body(crew, heartbeat_interval_seconds=10)), 201
    )
    beat = f"{COORDINATORS}/{made['id']}/heartbeat"
    for count in range(1, 6):
        crew.service.clock.advance(29)
        living = ok(await crew.b.post(beat))
        assert living["version"] == 1 + count
        assert living["last_heartbeat"] > made["last_heartbeat"]
        assert living["fencing_token"] == made["fencing_token"]
        ok(await crew.b.get(crew.intent_path))
    assert_problem(await crew.chief.post(beat), 403, "ACCESS_DENIED")
    crew.service.clock.advance(30)
    assert_problem(await crew.b.post(beat), 409, "FENCED")
    assert_problem(await crew.b.get(crew.intent_path), 403)
    (past,) = ok(await crew.chief.get(f"{crew.intent_path}/coordinators"))
    assert past["status"] == "unresponsive"


async def test_no_heartbeat_outlasts_the_end_that_was_set(crew: Crew) -> None:
    body = _body(crew, heartbeat_interval_seconds=10, expires_at="2026-02-02T02:40:40Z")
    made = ok(await crew.chief.post(COORDINATORS, json=body), 201)
    assert made["expires_at"] == "2026-02-02T02:40:30.000Z"
    beat = f"{COORDINATORS}/{made['id']}/heartbeat"
    crew.service.clock.advance(25)
    assert ok(await crew.b.post(beat))["expires_at"] == "2026-02-02T02:40:40.000Z"
    crew.service.clock.advance(14)
    assert ok(await crew.b.post(beat))["expires_at"] == "2026-02-02T02:40:40.000Z"
    crew.service.clock.advance(1)
    assert_problem(await crew.b.post(beat), 409, "FENCED")


async def test_there_is_one_coordinator_at_a_time(crew: Crew) -> None:
    first = ok(await crew.chief.post(COORDINATORS, json=_body(crew, "a")), 201)
    for agent in ("a", "b", "chief"):
        response = await crew.chief.post(COORDINATORS, json=_body(crew, agent))
        held = assert_problem(response, 409, "LEASE_HELD")["existing_lease"]
        assert (held["id"], held["agent_id"]) == (first["id"], "a")
    crew.service.clock.advance(180)
    second = ok(await crew.chief.post(COORDINATORS, json=_body(crew, "b")), 201)
    assert second["fencing_token"] > first["fencing_token"]
    # However lately the first one's time was over, there is no way back.
    late = await crew.a.post(f"{COORDINATORS}/{first['id']}/heartbeat")
    assert_problem(late, 409, "FENCED")
    listed = ok(await crew.chief.get(f"{crew.intent_path}/coordinators"))
    assert [(one["agent_id"], one["status"]) for one in listed] == [
        ("a", "unresponsive"),
        ("b", "active"),
    ]
    other = ok(await crew.chief.post(INTENTS, json={"title": "other"}), 201)
    ok(await crew.chief.post(COORDINATORS, json=_body(crew) | {"intent_id": other["id"]}), 201)


async def test_a_coordinator_can_resign(crew: Crew) -> None:
    made = ok(await crew.chief.post(COORDINATORS, json=_body(crew)), 201)
    path = f"{COORDINATORS}/{made['id']}"
    for client in (crew.chief, crew.a):
        assert_problem(await client.delete(path), 403, "ACCESS_DENIED")
    ok(await crew.b.delete(path), 204)
    assert_problem(await crew.b.delete(path), 409, "FENCED")
    assert_problem(await crew.b.post(f"{path}/heartbeat"), 409, "FENCED")
    assert_problem(await crew.b.get(crew.intent_path), 403)
    assert ok(await crew.chief.get(path))["status"] == "completed"
    assert await expire_leases(crew.service.services) == 0
    ok(await crew.chief.post(COORDINATORS, json=_body(crew)), 201)
    kinds = [one["type"] for one in await crew.log()]
    assert kinds.count("lease_acquired") == 2
    assert kinds.count("lease_released") == 1


async def _most(crew: Crew, task_id: str) -> int | None:
    """How many entries the task takes by its guardrails, seen from outside; None for no bound."""
    response = await crew.a.post(MEMORY, json=note(task_id, "one more"))
    if response.status_code == 201:
        ok(await crew.a.delete(f"{MEMORY}/{response.json()['id']}"), 204)
        return None
    bound: int = assert_problem(response, 429)["max_capacity"]
    return bound


async def test_guardrails_stay_until_another_coordinator_sets_others(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a")
    for number in range(3):
        await remember(crew.a, task["id"], f"k{number}")
    assert await _most(crew, task["id"]) is None
    first = ok(
        await crew.chief.post(
            COORDINATORS, json=_body(crew, guardrails={"max_working_memory_per_task": 2})
        ),
        201,
    )
    assert await _most(crew, task["id"]) == 2
    ok(await crew.b.delete(f"{COORDINATORS}/{first['id']}"), 204)
    assert await _most(crew, task["id"]) == 2
    second = ok(await crew.chief.post(COORDINATORS, json=_body(crew)), 201)
    assert "guardrails" not in second
    assert await _most(crew, task["id"]) == 2
    crew.service.clock.advance(181)
    await expire_leases(crew.service.services)
    assert await _most(crew, task["id"]) == 2
    guardrails = {"max_working_memory_per_task": 3}
    ok(await crew.chief.post(COORDINATORS, json=_body(crew, guardrails=guardrails)), 201)
    assert await _most(crew, task["id"]) == 3
    crew.service.clock.advance(181)
    ok(await crew.chief.post(COORDINATORS, json=_body(crew, guardrails={})), 201)
    assert await _most(crew, task["id"]) is None
    told = await crew.log(event_type="coordinator.guardrails_updated")
    assert len(told) == 3


async def test_the_next_coordinator_reads_and_the_last_one_does_not(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a")
    await remember(crew.a, task["id"])
    ok(await crew.chief.post(COORDINATORS, json=_body(crew, "b")), 201)
    assert await recall(crew.b, task["id"]) == [("a", "progress")]
    crew.service.clock.advance(180)
    ok(await crew.chief.post(COORDINATORS, json=_body(crew, "outsider")), 201)
    assert await recall(crew.b, task["id"]) == []
    assert await recall(crew.outsider, task["id"]) == [("a", "progress")]
    # Coordinating is reading: not even it writes another agent's memory.
    assert_problem(await crew.outsider.post(MEMORY, json=note(task["id"])), 403)


async def test_a_coordinator_of_another_intent_sees_nothing(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a")
    entry = await remember(crew.a, task["id"])
    other = ok(await crew.b.post(INTENTS, json={"title": "other"}), 201)
    ok(await crew.b.post(COORDINATORS, json=_body(crew, "b") | {"intent_id": other["id"]}), 201)
    assert await recall(crew.b, task["id"]) == []
    assert_problem(await crew.b.get(f"{MEMORY}/{entry['id']}"), 403)
