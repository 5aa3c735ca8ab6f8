"""Leases over a scope of an intent (RFC-0003)."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.http.checks import assert_problem
from tests.work.crew import INTENTS, Crew, ok

pytestmark = pytest.mark.anyio


async def _open(crew: Crew) -> str:
    """Lets everybody in, and returns where the leases are."""
    ok(await crew.chief.put(f"{crew.intent_path}/acl", json={"default_policy": "open"}))
    return f"{crew.intent_path}/leases"


async def _lease(client: httpx.AsyncClient, path: str, **body: Any) -> dict[str, Any]:
    made: dict[str, Any] = ok(await client.post(path, json={"scope": "research", **body}), 201)
    return made


async def test_lease_stores_its_parameters(crew: Crew) -> None:
    path = await _open(crew)
    lease = await _lease(crew.a, path, duration_seconds=60)
    assert lease["id"].startswith("lse_")
    assert lease == {
        "id": lease["id"],
        "intent_id": crew.intent["id"],
        "agent_id": "a",
        "scope": "research",
        "status": "active",
        "fencing_token": lease["fencing_token"],
        "created_at": "2026-02-02T02:40:00.000Z",
        "expires_at": "2026-02-02T02:41:00.000Z",
    }
    by_default = await _lease(crew.b, path, scope="writing")
    assert by_default["expires_at"] == "2026-02-02T02:45:00.000Z"
    assert ok(await crew.outsider.get(path)) == {"leases": [lease, by_default]}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"scope": ""},
        {"scope": "s", "duration_seconds": 0},
        {"scope": "s", "duration_seconds": 86_401},
        {"scope": "s", "duration_seconds": 1.5},
        {"scope": "s", "agent_id": "b"},
    ],
)
async def test_lease_with_invalid_parameters_is_refused(crew: Crew, body: dict[str, Any]) -> None:
    path = await _open(crew)
    assert_problem(await crew.a.post(path, json=body), 422)
    assert ok(await crew.a.get(path)) == {"leases": []}


async def test_a_scope_has_one_holder_until_its_time_is_over(crew: Crew) -> None:
    path = await _open(crew)
    first = await _lease(crew.a, path, duration_seconds=30)
    for client in (crew.a, crew.b):
        problem = assert_problem(
            await client.post(path, json={"scope": "research"}), 409, "LEASE_HELD"
        )
        assert problem["existing_lease"] == first
    crew.service.clock.advance(29.999)
    assert_problem(await crew.b.post(path, json={"scope": "research"}), 409, "LEASE_HELD")
    crew.service.clock.advance(0.001)
    assert ok(await crew.a.get(path)) == {"leases": []}
    second = await _lease(crew.b, path)
    assert second["fencing_token"] > first["fencing_token"]
    assert second["id"] != first["id"]
    renewal = await crew.a.patch(f"{path}/{first['id']}", json={"duration_seconds": 60})
    assert renewal.status_code in (404, 409), renewal.text


async def test_a_lease_is_renewed_by_its_holder_while_it_lasts(crew: Crew) -> None:
    path = await _open(crew)
    lease = await _lease(crew.a, path, duration_seconds=30)
    one = f"{path}/{lease['id']}"
    crew.service.clock.advance(20)
    renewed = ok(await crew.a.patch(one, json={"duration_seconds": 30}))
    assert renewed == lease | {"expires_at": "2026-02-02T02:40:50.000Z"}
    assert_problem(await crew.b.patch(one, json={}), 403, "ACCESS_DENIED")
    assert_problem(await crew.b.delete(one), 403, "ACCESS_DENIED")
    crew.service.clock.advance(30)
    assert_problem(await crew.a.patch(one, json={}), 409, "FENCED")


async def test_a_lease_given_back_is_free(crew: Crew) -> None:
    path = await _open(crew)
    lease = await _lease(crew.a, path)
    ok(await crew.a.delete(f"{path}/{lease['id']}"), 204)
    assert_problem(await crew.a.delete(f"{path}/{lease['id']}"), 404)
    assert_problem(await crew.a.patch(f"{path}/{lease['id']}", json={}), 404)
    assert ok(await crew.a.get(path)) == {"leases": []}
    await _lease(crew.b, path)
    assert [one["type"] for one in await crew.log()][-3:] == [
        "lease_acquired",
        "lease_released",
        "lease_acquired",
    ]


async def test_a_lease_is_of_one_intent_and_kind(crew: Crew) -> None:
    path = await _open(crew)
    lease = await _lease(crew.a, path)
    other = ok(await crew.a.post(INTENTS, json={"title": "other"}), 201)
    elsewhere = f"{INTENTS}/{other['id']}/leases"
    await _lease(crew.a, elsewhere)
    for response in (
        await crew.a.patch(f"{elsewhere}/{lease['id']}", json={}),
        await crew.a.delete(f"{elsewhere}/{lease['id']}"),
    ):
        assert_problem(response, 404)
    task = await crew.task(assigned_agent="a")
    taken = await crew.take(crew.a, task["id"])
    coordinator = await crew.coordinate()
    for lease_id in (taken.lease["id"], coordinator["id"]):
        assert_problem(await crew.a.delete(f"{path}/{lease_id}"), 404)
        assert_problem(await crew.chief.delete(f"{path}/{lease_id}"), 404)
    assert ok(await crew.a.get(path))["leases"] == [lease]


async def test_leases_are_for_those_who_take_part(crew: Crew) -> None:
    path = f"{crew.intent_path}/leases"
    assert_problem(await crew.outsider.get(path), 403)
    assert_problem(await crew.outsider.post(path, json={"scope": "s"}), 403)
    ok(await crew.chief.post(f"{crew.intent_path}/acl/entries", json={"principal_id": "a"}), 201)
    assert ok(await crew.a.get(path)) == {"leases": []}
    assert_problem(await crew.a.post(path, json={"scope": "s"}), 403)
    assert_problem(await crew.a.get(f"{INTENTS}/int_none/leases"), 404)
