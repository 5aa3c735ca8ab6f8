"""Rotation of API keys: who may, what the successor has, and when the old key ends."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx
import pytest

from memorywall.records.clock import format_instant
from memorywall.records.principal import ApiKey, Permission
from memorywall.sdk.client import AsyncClient
from memorywall.storage.port import REGISTRY
from tests.http.checks import (
    EVERY_PERMISSION,
    MEMORY,
    Everything,
    assert_problem,
    everything,
    make,
)
from tests.http.test_json_rpc import error
from tests.support.service import RunningService

pytestmark = pytest.mark.anyio

KEYS = "/api/v1/keys"
DAY = 24 * 3600


async def rotated(
    admin: httpx.AsyncClient, key: str, expected: int = 201, **fields: Any
) -> dict[str, Any]:
    """The answer to a rotation of a key over HTTP."""
    reply = await admin.post(f"{KEYS}/{_prefix(key)}/rotate", json=fields)
    assert reply.status_code == expected, reply.text
    body: dict[str, Any] = reply.json()
    return body


async def test_both_keys_work_until_the_old_one_ends(service: RunningService) -> None:
    admin = await service.agent("root", permissions=EVERY_PERMISSION)
    limits: dict[str, Any] = {"permissions": [Permission.READ], "namespaces": ["invoices"]}
    old = await service.key("ada", **limits)
    made = await make(await service.agent("ada"), namespace="invoices")
    new = await rotated(admin, old)
    assert new["key"] != old
    rights = ("agent_id", "kind", "permissions", "subjects", "namespaces", "read_only")
    replaced = new["replaces"]
    assert {name: new[name] for name in rights} == {name: replaced[name] for name in rights}
    assert (new["expires_at"], new["successor"], new["last_used_at"]) == (None, None, None)
    assert replaced["successor"] == new["prefix"]
    assert replaced["expires_at"] == format_instant(service.clock.now() + DAY * 1000)
    assert new["key"] not in (await admin.get(KEYS)).text
    holders = service.client(old), service.client(new["key"])
    service.clock.advance(DAY - 0.001)
    for holder in holders:
        assert (await holder.get(f"{MEMORY}/{made['id']}")).json() == made
        assert_problem(await holder.delete(f"{MEMORY}/{made['id']}"), 403)
    service.clock.advance(0.001)
    assert_problem(await holders[0].get(f"{MEMORY}/{made['id']}"), 401)
    assert (await holders[1].get(f"{MEMORY}/{made['id']}")).json() == made


async def test_without_an_overlap_the_old_key_is_revoked(service: RunningService) -> None:
    admin = await service.agent("root", permissions=EVERY_PERMISSION)
    old = await service.key("ada")
    holder = service.client(old)
    assert (await holder.get(MEMORY)).is_success
    new = await rotated(admin, old, overlap="PT0S")
    assert new["replaces"]["revoked_at"] == format_instant(service.clock.now())
    assert_problem(await holder.get(MEMORY), 401)
    assert (await service.client(new["key"]).get(MEMORY)).is_success


async def test_an_expiry_is_kept_and_an_overlap_does_not_prolong_it(
    service: RunningService,
) -> None:
    admin = await service.agent("root", permissions=EVERY_PERMISSION)
    soon, late = _after(service, 60), _after(service, 9 * DAY)
    old = await service.key("ada", expires_at=soon)
    new = await rotated(admin, old, overlap="P2D")
    assert (new["expires_at"], new["replaces"]["expires_at"]) == (soon, soon)
    newest = await rotated(admin, new["key"], overlap="P2D", expires_at=late)
    assert (newest["expires_at"], newest["replaces"]["expires_at"]) == (late, soon)


async def test_a_key_is_rotated_once(service: RunningService) -> None:
    """A repeat must not make a key that ends with the overlap, nor a second successor."""
    admin = await service.agent("root", permissions=EVERY_PERMISSION)
    old = await service.key("ada")
    new = await rotated(admin, old)
    before = await _stored(service)
    assert "successor" in (await rotated(admin, old, 409))["detail"]
    expiring, revoked = (await service.key("eve", expires_at=_after(service, 5)), new["key"])
    await admin.delete(f"{KEYS}/{_prefix(revoked)}")
    service.clock.advance(5)
    before = await _stored(service)
    for dead in (expiring, revoked):
        assert "create a new key" in (await rotated(admin, dead, 409))["detail"]
    assert await _stored(service) == before


async def test_nobody_rotates_what_it_may_not_create(service: RunningService) -> None:
    victim = await service.key("victim", permissions=[Permission.READ, Permission.WRITE])
    foreign = await service.key("eve", tenant="elsewhere")
    every = set(Permission)
    clerk = [Permission.TENANT_ADMIN]
    latest = _after(service, 60)
    callers = [
        await service.key("victim", permissions=[*every - {Permission.TENANT_ADMIN}]),
        await service.key("clerk", permissions=clerk),
        await service.key("clerk", permissions=[*clerk, Permission.ACT_AS, Permission.READ]),
        await service.key("deputy", permissions=[*every - {Permission.ACT_AS}]),
        await service.key("root", permissions=EVERY_PERMISSION, expires_at=latest),
    ]
    before = await _stored(service)
    for caller in map(service.client, callers):
        told = await rotated(caller, victim, 403)
        assert told["error"] == "ACCESS_DENIED"
        body = {"prefix": _prefix(victim), "overlap": "PT0S"}
        assert (await error(caller, "rotate_key", **body))["data"]["status"] == 403
    assert latest in told["detail"]
    root = service.client(await service.key("chief", permissions=EVERY_PERMISSION))
    before = await _stored(service)
    for unknown in (foreign, "mw_nothing"):
        await rotated(root, unknown, 404)
    assert await _stored(service) == before


async def test_a_chain_of_rotations_never_outlives_its_first_key(service: RunningService) -> None:
    """Who rotates its own key gets no longer life, and what a rotated key creates ends with it."""
    latest = _after(service, 60)
    key = await service.key("root", permissions=EVERY_PERMISSION, expires_at=latest)
    for _ in range(3):
        owner = service.client(key)
        await rotated(owner, key, 403, expires_at=_after(service, 61))
        new = await rotated(owner, key)
        assert (new["expires_at"], new["replaces"]["expires_at"]) == (latest, latest)
        key = new["key"]
    free = await service.key("free", permissions=EVERY_PERMISSION)
    owner = service.client(free)
    ends = (await rotated(owner, free, overlap="PT1H"))["replaces"]["expires_at"]
    asked = {"agent_id": "free", "permissions": ["memory.read"]}
    assert ends in assert_problem(await owner.post(KEYS, json=asked), 403)["detail"]
    made = await owner.post(KEYS, json={**asked, "expires_at": ends})
    assert made.status_code == 201


async def test_a_token_of_a_session_ends_with_the_key_that_issued_it(
    service: RunningService,
) -> None:
    admin = await service.agent("root", permissions=EVERY_PERMISSION)
    old = await service.key("ada")
    ada = service.client(old)
    session = (await ada.post("/api/v1/sessions", json={})).json()["id"]
    issue = f"/api/v1/sessions/{session}/token"
    early = (await ada.post(issue, json={"ttl": "P1D"})).json()
    holder = service.client(early["token"])
    assert (await holder.get(MEMORY)).is_success
    new = await rotated(admin, old, overlap="PT10M")
    ends = new["replaces"]["expires_at"]
    assert (await ada.post(issue, json={"ttl": "P1D"})).json()["expires_at"] == ends
    late = (await service.client(new["key"]).post(issue, json={"ttl": "P1D"})).json()
    service.clock.advance(600)
    assert_problem(await holder.get(MEMORY), 401)
    assert (await service.client(late["token"]).get(MEMORY)).is_success


async def test_the_successor_of_a_key_of_one_person_serves_that_person(
    service: RunningService,
) -> None:
    admin = await service.agent("root", permissions=EVERY_PERMISSION)
    old = await service.key("ada", subjects=["Jos\u00e9"])
    before = await _stored(service)
    for fields in ({}, {"user": "Bob"}):
        told = await rotated(admin, old, 422, **fields)
        assert "`user`" in told["detail"]
        assert "Bob" not in told["detail"]
    several = await service.key("ada", subjects=["ann", "bob"])
    before = await _stored(service)
    await rotated(admin, several, 422, user="ann")
    assert await _stored(service) == before
    new = await rotated(admin, old, user="Jose\u0301")
    made = await make(service.client(old))
    assert made["subjects"] == ["Jos\u00e9"]
    assert (await service.client(new["key"]).get(f"{MEMORY}/{made['id']}")).json() == made
    assert len((await rotated(admin, several))["subjects"]) == 2


async def test_a_rotation_is_an_event_of_the_agent(service: RunningService) -> None:
    admin = await service.agent("root", permissions=EVERY_PERMISSION)
    old = await service.key("ada")
    new = await rotated(admin, old, overlap="PT1H")
    reply = await service.client(new["key"]).get("/api/v1/agents/ada/events")
    [event] = [one for one in reply.json()["events"] if one["type"] == "key.rotated"]
    assert (event["agent_id"], event["actor"]) == ("ada", "root")
    assert event["data"] == {
        "prefix": _prefix(old),
        "successor": new["prefix"],
        "ends_at": new["replaces"]["expires_at"],
    }


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"overlap": "-PT1H"}, "overlap"),
        ({"overlap": "P1M"}, "overlap"),
        ({"overlap": "P1D" + "0" * 64}, "overlap"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "expires_at"),
        ({"permissions": ["memory.read"]}, "permissions"),
    ],
    ids=str,
)
async def test_what_is_no_rotation_is_refused(
    service: RunningService, fields: dict[str, Any], named: str
) -> None:
    admin = await service.agent("root", permissions=EVERY_PERMISSION)
    key = await service.key("ada")
    before = await _stored(service)
    assert named in (await rotated(admin, key, 422, **fields))["detail"]
    assert await _stored(service) == before


async def test_the_sdk_takes_every_form_of_a_duration(service: RunningService) -> None:
    root = await service.key("root", permissions=EVERY_PERMISSION)
    transport = httpx.ASGITransport(service.app)
    async with AsyncClient("http://memorywall.test", root, transport=transport) as client:
        key = await service.key("ada")
        for overlap in (timedelta(hours=2), 7200, "2h", "PT2H"):
            new = await client.keys.rotate(_prefix(key), overlap=overlap)
            assert new.replaces.expires_at == _after(service, 7200)
            key = new.key
        assert (await client.keys.rotate(_prefix(key), overlap=0)).replaces.revoked_at
        found = await service.services.store.read(
            REGISTRY, lambda to: to.identities.find_key(_prefix(key))
        )
        assert found is not None
        assert found.successor is not None


async def _stored(service: RunningService) -> tuple[Everything, list[ApiKey]]:
    keys = await service.services.store.read(REGISTRY, lambda to: to.identities.keys(None))
    return await everything(service), [replace(key, last_used_at=None) for key in keys]


def _prefix(key: str) -> str:
    return key.partition(".")[0]


def _after(service: RunningService, seconds: int) -> str:
    return format_instant(service.clock.now() + seconds * 1000)
