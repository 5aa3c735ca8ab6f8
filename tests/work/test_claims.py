"""Claims of keys of shared state (the claim pattern)."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from tests.http.checks import MEMORY, assert_problem, events_of
from tests.support.rounds import expire_leases, sweep
from tests.support.service import RunningService
from tests.work.crew import CLAIMS, ok, under

pytestmark = pytest.mark.anyio


async def _claim(client: httpx.AsyncClient, key: str = "ticket", **body: Any) -> dict[str, Any]:
    made: dict[str, Any] = ok(await client.post(CLAIMS, json={"key": key, **body}), 201)
    return made


async def _listed(client: httpx.AsyncClient, **query: Any) -> list[str]:
    """The keys of the claims a query finds."""
    return [one["key"] for one in ok(await client.get(CLAIMS, params=query))["claims"]]


async def test_claim_stores_its_parameters(service: RunningService) -> None:
    a, b = await service.agent("a"), await service.agent("b")
    claim = await _claim(a, ttl_seconds=30, purpose="to answer it")
    assert claim["id"].startswith("clm_")
    at_first = "2026-02-02T02:40:00.000Z"
    assert claim == {
        "id": claim["id"],
        "key": "ticket",
        "scope": "global",
        "agent_id": "a",
        "fencing_token": claim["fencing_token"],
        "purpose": "to answer it",
        "acquired_at": at_first,
        "renewed_at": at_first,
        "expires_at": "2026-02-02T02:40:30.000Z",
    }
    by_default = await _claim(a, "other")
    assert by_default["expires_at"] == "2026-02-02T02:45:00.000Z"
    assert "purpose" not in by_default
    for client in (a, b):
        assert ok(await client.get(f"{CLAIMS}/{claim['id']}")) == claim
        assert await _listed(client, scope="global") == ["ticket", "other"]
    assert_problem(await a.get(f"{CLAIMS}/clm_none"), 404)
    foreign = await service.agent("a", tenant="other")
    assert_problem(await foreign.get(f"{CLAIMS}/{claim['id']}"), 404)
    assert await _listed(foreign, scope="global") == []
    await _claim(foreign)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"key": ""},
        {"key": "k", "ttl_seconds": 0},
        {"key": "k", "ttl_seconds": 86_401},
        {"key": "k", "agent_id": "b"},
        {"key": "k", "scope": "everywhere"},
        {"key": "k", "scope": "team:"},
        {"key": "k", "scope": "team:a/b"},
        {"key": "k", "purpose": "x" * 257},
    ],
)
async def test_claim_with_invalid_parameters_is_refused(
    service: RunningService, body: dict[str, Any]
) -> None:
    a = await service.agent("a")
    assert_problem(await a.post(CLAIMS, json=body), 422)
    assert await _listed(a) == []


async def test_claimed_key_cannot_be_claimed(service: RunningService) -> None:
    a, b = await service.agent("a"), await service.agent("b")
    claim = await _claim(a, ttl_seconds=30)
    for client in (a, b):
        problem = assert_problem(await client.post(CLAIMS, json={"key": "ticket"}), 409)
        assert problem["error"] == "LEASE_HELD"
        assert problem["existing_lease"] == claim
    service.clock.advance(29.999)
    assert_problem(await b.post(CLAIMS, json={"key": "ticket"}), 409, "LEASE_HELD")
    service.clock.advance(0.001)
    assert await _listed(a) == []
    second = await _claim(b)
    assert second["fencing_token"] > claim["fencing_token"]


async def test_of_many_at_once_one_gets_it(service: RunningService) -> None:
    clients = [await service.agent(f"agent-{number}") for number in range(16)]
    for turn in range(3):
        replies = await asyncio.gather(
            *(client.post(CLAIMS, json={"key": f"k{turn}"}) for client in clients)
        )
        assert sorted(reply.status_code for reply in replies) == [201] + [409] * 15
        (won,) = [reply.json() for reply in replies if reply.status_code == 201]
        held = {reply.json()["existing_lease"]["id"] for reply in replies if reply.is_error}
        assert held == {won["id"]}


async def test_a_claim_is_renewed_by_its_holder_while_it_lasts(service: RunningService) -> None:
    a, b = await service.agent("a"), await service.agent("b")
    claim = await _claim(a, ttl_seconds=30)
    path = f"{CLAIMS}/{claim['id']}"
    service.clock.advance(20)
    renewed = ok(await a.patch(path, json={"ttl_seconds": 30}))
    assert renewed == claim | {
        "renewed_at": "2026-02-02T02:40:20.000Z",
        "expires_at": "2026-02-02T02:40:50.000Z",
    }
    assert_problem(await b.patch(path, json={"ttl_seconds": 30}), 403, "ACCESS_DENIED")
    assert_problem(await a.patch(path, json={"ttl_seconds": 0}), 422)
    service.clock.advance(30)
    assert_problem(await a.patch(path, json={"ttl_seconds": 30}), 409, "FENCED")
    await expire_leases(service.services)
    assert_problem(await a.patch(path, json={"ttl_seconds": 30}), 404)


async def test_a_claim_is_given_back_by_its_holder(service: RunningService) -> None:
    a, b = await service.agent("a"), await service.agent("b")
    claim = await _claim(a)
    path = f"{CLAIMS}/{claim['id']}"
    assert_problem(await b.delete(path), 403, "ACCESS_DENIED")
    ok(await a.delete(path), 204)
    assert_problem(await a.delete(path), 404)
    assert_problem(await a.patch(path, json={}), 404)
    second = await _claim(b)
    assert_problem(await a.delete(path), 404)
    assert await _listed(b) == ["ticket"]
    assert second["id"] != claim["id"]


async def test_the_holders_stream_tells_of_claims_and_not_of_renewals(
    service: RunningService,
) -> None:
    a, b = await service.agent("a"), await service.agent("b")
    first = await _claim(a, ttl_seconds=30)
    ok(await a.patch(f"{CLAIMS}/{first['id']}", json={"ttl_seconds": 30}))
    ok(await a.delete(f"{CLAIMS}/{first['id']}"), 204)
    second = await _claim(a, ttl_seconds=30)
    service.clock.advance(30)
    third = await _claim(b, ttl_seconds=30)
    assert await expire_leases(service.services) == 0
    service.clock.advance(30)
    assert await expire_leases(service.services) == 1

    async def told(client: httpx.AsyncClient, agent: str) -> list[tuple[str, str, str]]:
        return [
            (one["type"], one["data"]["claim_id"], one["actor"])
            for one in await events_of(client, agent)
        ]

    assert await told(a, "a") == [
        ("claim.acquired", first["id"], "a"),
        ("claim.released", first["id"], "a"),
        ("claim.acquired", second["id"], "a"),
        ("claim.expired", second["id"], "system"),
    ]
    assert await told(b, "b") == [
        ("claim.acquired", third["id"], "b"),
        ("claim.expired", third["id"], "system"),
    ]


async def test_claims_are_listed_by_scope_and_agent(service: RunningService) -> None:
    a, b = await service.agent("a"), await service.agent("b")
    await _claim(a, "of a")
    await _claim(b, "of b")
    await _claim(a, "short", ttl_seconds=10)
    await _claim(a, "own", scope="agent")
    await _claim(a, "in team", scope="team:blue")
    service.clock.advance(10)
    assert await _listed(a) == ["of a", "own", "in team"]
    assert await _listed(a, scope="global") == ["of a", "of b"]
    assert await _listed(a, scope="global", agent_id="b") == ["of b"]
    assert await _listed(a, scope="agent") == ["own"]
    assert await _listed(a, scope="team:blue") == ["in team"]
    assert await _listed(b, agent_id="a") == ["of a"]
    assert await _listed(b, scope="team:blue") == []
    for wrong in ({"scope": "nowhere"}, {"limit": 3}):
        response = await a.get(CLAIMS, params=wrong)
        assert response.status_code in (400, 422), response.text


async def test_claims_in_a_closed_scope_are_for_its_members(service: RunningService) -> None:
    a, b = await service.agent("a"), await service.agent("b")
    claim = await _claim(a, scope="team:blue")
    assert claim["scope"] == "team:blue"
    path = f"{CLAIMS}/{claim['id']}"
    refused = await b.post(CLAIMS, json={"key": "ticket", "scope": "team:blue"})
    # Not even that it is held is told to who has no business there.
    assert "existing_lease" not in assert_problem(refused, 403, "ACCESS_DENIED")
    assert_problem(await b.get(path), 403, "ACCESS_DENIED")
    own = await _claim(a, scope="agent")
    theirs = await _claim(b, scope="agent")
    assert own["scope"] == theirs["scope"] == "agent"
    assert_problem(await b.get(f"{CLAIMS}/{own['id']}"), 403, "ACCESS_DENIED")
    response = await b.post(CLAIMS, json={"key": "ticket", "scope": "agent:a"})
    assert response.status_code in (403, 422), response.text


async def _write(
    client: httpx.AsyncClient, token: int | None, key: str = "ticket", scope: str = "global"
) -> httpx.Response:
    """Creates the entry of a key, or changes it."""
    namespace = f"shared/{scope}"
    query = {"memory_type": "shared", "namespace": namespace, "key": key}
    found = ok(await client.get(MEMORY, params=query))["entries"]
    if not found:
        body = {"memory_type": "shared", "namespace": namespace, "key": key, "value": {"n": 1}}
        return await client.post(MEMORY, json=body, headers=under(token))
    headers = under(token) | {"If-Match": str(found[0]["version"])}
    path = f"{MEMORY}/{found[0]['id']}"
    return await client.patch(path, json={"value": {"n": 2}}, headers=headers)


async def test_only_the_holder_writes_a_claimed_key(service: RunningService) -> None:
    a, b = await service.agent("a"), await service.agent("b")
    claim = await _claim(a)
    token = claim["fencing_token"]
    other = (await _claim(b, "other"))["fencing_token"]
    for client, wrong in ((a, None), (b, None), (b, token), (b, other), (a, token + 100)):
        assert_problem(await _write(client, wrong), 409, "FENCED")
    for _ in range(2):
        assert (await _write(a, token)).is_success
    for client, wrong in ((a, None), (b, None), (b, other), (b, token)):
        assert_problem(await _write(client, wrong), 409, "FENCED")
    # Another key, and the same key elsewhere, are nobody's.
    assert (await _write(b, None, "free")).is_success
    assert (await _write(b, None, scope="agent/b")).is_success
    ok(await a.delete(f"{CLAIMS}/{claim['id']}"), 204)
    assert_problem(await _write(a, token), 409, "FENCED")
    assert (await _write(b, None)).is_success


async def test_only_the_holder_deletes_a_claimed_entry(service: RunningService) -> None:
    a, b = await service.agent("a"), await service.agent("b")
    entry = ok(await _write(b, None), 201)
    token = (await _claim(a))["fencing_token"]
    path = f"{MEMORY}/{entry['id']}"
    query = {"memory_type": "shared", "namespace": "shared/global"}
    for client in (a, b):
        assert_problem(await client.delete(path), 409, "FENCED")
        assert_problem(await client.delete(f"{MEMORY}/batch", params=query), 409, "FENCED")
        batch = {"entries": [{"id": entry["id"], "version": 1, "tags": ["t"]}]}
        assert_problem(await client.post(f"{MEMORY}/batch", json=batch), 409, "FENCED")
    assert ok(await b.get(path)) == entry
    ok(await a.delete(path, headers=under(token)), 204)


async def test_expired_claim_gives_no_ownership_before_and_after_the_sweep(
    service: RunningService,
) -> None:
    a, b = await service.agent("a"), await service.agent("b")
    token = (await _claim(a, ttl_seconds=30))["fencing_token"]
    service.clock.advance(30)
    assert_problem(await _write(a, token), 409, "FENCED")
    assert (await _write(b, None)).is_success
    await expire_leases(service.services)
    await sweep(service.services)
    assert_problem(await _write(a, token), 409, "FENCED")
