"""Keys that may do less than somebody could: what they are answered shows no more than they may.

Single cases of what the state machine compares at large, kept because the way to them is long.
"""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from memorywall.records.clock import format_instant
from memorywall.records.principal import Permission, PrincipalKind
from tests.oracle.wire import send, server_sent_events
from tests.support.service import RunningService, draft

pytestmark = pytest.mark.anyio

MEMORY = "/api/v1/memory"
BATCH = "/api/v1/memory/batch"
PLANS = "/api/v1/memory/namespaces/plans"
SECRET = "the stored value"
EVERYTHING = tuple(Permission)


async def made(agent: httpx.AsyncClient, **fields: Any) -> str:
    """The id of a new entry with the secret in it."""
    reply = await agent.post(MEMORY, json=draft(value={"text": SECRET}, **fields))
    assert reply.status_code == 201, reply.text
    return str(reply.json()["id"])


async def test_update_returns_no_value_to_a_write_only_key(service: RunningService) -> None:
    """RFC-0015 sections 6.4 and 9.1: to write is not to read."""
    bob = await service.agent("bob")
    blind = await service.agent("bob", permissions=[Permission.WRITE])
    entry = await made(bob)
    assert (await blind.get(f"{MEMORY}/{entry}")).status_code == 403
    changed = await blind.patch(
        f"{MEMORY}/{entry}", json={"tags": ["seen"]}, headers={"If-Match": "1"}
    )
    assert changed.status_code == 200
    assert SECRET not in changed.text


async def test_batch_returns_no_values_to_a_write_only_key(service: RunningService) -> None:
    bob = await service.agent("bob")
    blind = await service.agent("bob", permissions=[Permission.WRITE])
    entry = await made(bob)
    element = {"id": entry, "version": 1, "tags": ["seen"]}
    changed = await blind.post(BATCH, json={"entries": [element]})
    assert changed.status_code == 200
    assert SECRET not in changed.text


async def test_acting_for_an_agent_leaves_the_tenants_permissions_behind(
    service: RunningService,
) -> None:
    """What acts for another is that agent: it administers no more than the agent may."""
    founder = await service.agent("founder", permissions=EVERYTHING)
    await made(founder, memory_type="semantic", namespace="plans")
    closing = {"permissions": {"default": "none"}}
    assert (await founder.patch(PLANS, json=closing)).status_code == 200
    chief = await service.key("chief", kind=PrincipalKind.SERVICE, permissions=EVERYTHING)
    as_ada = service.client(chief, agent="ada")
    opening = {"permissions": {"default": "write"}}
    assert (await as_ada.patch(PLANS, json=opening)).status_code == 403
    assert (await as_ada.get(f"{MEMORY}/namespaces")).json()["namespaces"] == []
    assert (await as_ada.get(PLANS)).status_code == 403


async def test_a_repetition_shows_nothing_once_the_namespace_is_closed(
    service: RunningService,
) -> None:
    """RFC-0015 section 9.1: a namespace's permissions hold for every operation, repeated or not."""
    founder = await service.agent("founder", permissions=EVERYTHING)
    curator = await service.agent("curator")
    entry = await made(founder, memory_type="semantic", namespace="plans")
    grant = {"agent": "curator", "access": "write"}
    opened = {"permissions": {"allow": [{"agent": "founder", "access": "admin"}, grant]}}
    assert (await founder.patch(PLANS, json=opened)).status_code == 200
    body = {"entries": [{"id": entry, "version": 1, "tags": ["checked"]}]}
    once = {"Idempotency-Key": "first"}
    first = await curator.post(BATCH, json=body, headers=once)
    assert SECRET in first.text
    closed = {
        "permissions": {"default": "none", "allow": [{"agent": "founder", "access": "admin"}]}
    }
    assert (await founder.patch(PLANS, json=closed)).status_code == 200
    assert (await curator.get(f"{MEMORY}/{entry}")).status_code == 403
    again = await curator.post(BATCH, json=body, headers=once)
    assert SECRET not in again.text
    assert again.status_code == 403


@pytest.mark.parametrize("permissions", [[], [Permission.READ], [Permission.WRITE]])
async def test_a_repetition_under_another_key_shows_what_that_key_may_see(
    service: RunningService, permissions: list[Permission]
) -> None:
    """First replies are kept by principal; what may be seen and done is said by the key."""
    bob = await service.agent("bob")
    entry = await made(bob)
    body = {"entries": [{"id": entry, "version": 1, "tags": ["checked"]}]}
    once = {"Idempotency-Key": "first"}
    assert SECRET in (await bob.post(BATCH, json=body, headers=once)).text
    narrow = await service.agent("bob", permissions=permissions)
    again = await narrow.post(BATCH, json=body, headers=once)
    assert Permission.READ in permissions or SECRET not in again.text
    if Permission.WRITE not in permissions:
        assert again.status_code == 403


class Scoped:
    """Ada's memory in two namespaces, of a tier of each kind, and a key that is limited to one."""

    def __init__(self, whole: httpx.AsyncClient, narrow: httpx.AsyncClient) -> None:
        self.whole = whole
        self.narrow = narrow
        self.inside: dict[str, str] = {}
        self.outside: dict[str, str] = {}

    async def fill(self) -> None:
        """Creates the entries; those outside have the secret as their value."""
        for tier in SCOPED_TIERS:
            fields = {"memory_type": tier, "key": f"k-{tier}"}
            inside = draft(namespace="plans", value={"text": "open"}, **fields)
            reply = await self.narrow.post(MEMORY, json=inside)
            assert reply.status_code == 201, reply.text
            self.inside[tier] = reply.json()["id"]
            self.outside[tier] = await made(self.whole, namespace="ledger", **fields)


SCOPED_TIERS = ("working", "session", "episodic", "semantic", "procedural")


@pytest.fixture
async def scoped(service: RunningService) -> Scoped:
    whole = await service.agent("ada", permissions=EVERYTHING)
    narrow = await service.agent("ada", permissions=EVERYTHING, namespaces=["plans", "notes"])
    world = Scoped(whole, narrow)
    await world.fill()
    return world


async def test_a_key_of_some_namespaces_reads_and_changes_nothing_outside(scoped: Scoped) -> None:
    narrow = scoped.narrow
    for tier, entry in scoped.outside.items():
        path, match = f"{MEMORY}/{entry}", {"If-Match": "1"}
        batch = {"entries": [{"id": entry, "version": 1, "tags": ["x"]}]}
        named = {"namespace": "ledger", "key": f"k-{tier}"}
        for reply in (
            await narrow.get(path),
            await narrow.get(path, params={"version": "1"}),
            await narrow.patch(path, json={"tags": ["x"]}, headers=match),
            await narrow.patch(path, json={"tags": ["x"]}, headers={"If-Match": "9"}),
            await narrow.delete(path),
            await narrow.post(BATCH, json=batch),
            await narrow.post(MEMORY, json=draft(memory_type=tier, **named)),
            await narrow.put(MEMORY, json=draft(memory_type=tier, **named), headers=match),
            await narrow.get(f"{path}/attachments"),
        ):
            assert reply.status_code == 403, (tier, reply.request.method, reply.text)
            assert SECRET not in reply.text
        found = await narrow.get(f"{MEMORY}/by-name", params=named)
        assert found.status_code == 404 or found.json().get("entry") is None
        assert SECRET not in found.text
        assert (await scoped.whole.get(path)).json()["version"] == 1


async def test_a_key_of_some_namespaces_works_inside(scoped: Scoped) -> None:
    for entry in scoped.inside.values():
        path = f"{MEMORY}/{entry}"
        assert (await scoped.narrow.get(path)).status_code == 200
        changed = await scoped.narrow.patch(path, json={"tags": ["x"]}, headers={"If-Match": "1"})
        assert changed.status_code == 200
        assert (await scoped.narrow.delete(path)).status_code == 204


async def test_lists_of_a_key_of_some_namespaces_stay_inside(
    service: RunningService, scoped: Scoped
) -> None:
    narrow, inside = scoped.narrow, set(scoped.inside.values())
    for conditions in ({}, {"tags_any": "x,y"}, {"namespace": "plans"}, {"namespace": "*"}):
        page = (await narrow.get(MEMORY, params=conditions)).json()
        found = {entry["id"] for entry in page["entries"]}
        assert found == (set() if "tags_any" in conditions else inside)
        assert page["total"] == len(found)
        exported = await narrow.get(f"{MEMORY}/export", params=conditions)
        assert {json.loads(line)["id"] for line in exported.text.splitlines()} == found
    for conditions in ({"namespace": "ledger"}, {"namespace": "ledger", "agent_id": "ada"}):
        assert (await narrow.get(MEMORY, params=conditions)).json()["total"] == 0
    later = {"as_of": format_instant(service.clock.now()), "agent_id": "ada"}
    assert SECRET not in (await narrow.get(MEMORY, params=later)).text
    own = (await narrow.get("/api/v1/agents/ada/memory")).json()
    assert {entry["id"] for entry in own} <= inside
    seen = (await narrow.get(f"{MEMORY}/namespaces")).json()["namespaces"]
    assert [one["namespace"] for one in seen] == ["plans"]
    assert (await narrow.get(f"{MEMORY}/namespaces/ledger")).status_code == 403
    gone = await narrow.delete(BATCH, params={"agent_id": "ada", "key": "k-episodic"})
    assert gone.json() == {"deleted": 1}
    kept = await scoped.whole.get(f"{MEMORY}/{scoped.outside['episodic']}")
    assert kept.status_code == 200


@pytest.mark.parametrize("text", ["stored", "open", "stored open value"])
async def test_a_search_with_a_key_of_some_namespaces_stays_inside(
    scoped: Scoped, text: str
) -> None:
    found = await scoped.narrow.post(f"{MEMORY}/search", json={"query": text, "limit": 50})
    assert found.status_code == 200, found.text
    assert SECRET not in found.text
    ids = {hit["entry"]["id"] for hit in found.json()["results"]}
    assert ids == (set(scoped.inside.values()) if "open" in text else set())
    # The statistics are those of what the key reads: as if nothing else existed.
    for entry in scoped.outside.values():
        await scoped.whole.delete(f"{MEMORY}/{entry}")
    alone = await scoped.narrow.post(f"{MEMORY}/search", json={"query": text, "limit": 50})
    assert [hit["score"] for hit in alone.json()["results"]] == [
        hit["score"] for hit in found.json()["results"]
    ]


async def test_events_for_a_key_of_some_namespaces_stay_inside(
    service: RunningService, scoped: Scoped
) -> None:
    path = "/api/v1/agents/ada/events"
    every = (await scoped.whole.get(path, params={"limit": "1000"})).json()
    wanted = [one for one in every["events"] if one["data"].get("namespace") == "plans"]
    assert 0 < len(wanted) < len(every["events"])
    page = (await scoped.narrow.get(path, params={"limit": "1000"})).json()
    assert page == {"events": wanted, "next": every["next"]}
    headers = {**scoped.narrow.headers, "Accept": "text/event-stream"}
    live = await send(service.app, "GET", path, headers=headers)
    assert server_sent_events(live.text) == wanted
    collected, after = [], 0
    while (page := (await scoped.narrow.get(path, params=_one_after(after))).json())["events"]:
        collected += page["events"]
        after = page["next"]
    assert collected == wanted


def _one_after(after: int) -> dict[str, str]:
    return {"limit": "1", "after": str(after)}


async def test_a_key_of_some_namespaces_does_no_work_and_administers_nothing(
    service: RunningService, scoped: Scoped
) -> None:
    """Intents, tasks, totals of an agent and limits of the tenant are in no namespace."""
    intent = (await scoped.whole.post("/api/v1/intents", json={"title": "Close"})).json()["id"]
    narrow = scoped.narrow
    for reply in (
        await narrow.get(f"/api/v1/intents/{intent}"),
        await narrow.post("/api/v1/intents", json={"title": "Another"}),
        await narrow.post("/api/v1/tasks", json={"intent_id": intent, "name": "Collect"}),
        await narrow.get("/api/v1/agents/ada/memory/summary"),
        await narrow.put("/api/v1/agents/ada/memory/limits", json={"episodic_capacity": 1}),
        await narrow.get("/api/v1/keys"),
        await narrow.post("/api/v1/keys", json={"agent_id": "ada"}),
        await narrow.get("/api/v1/jobs"),
        await narrow.get("/api/v1/groups"),
        await narrow.put("/api/v1/groups/red", json={}),
        await narrow.get("/api/v1/status"),
        await narrow.get("/api/v1/quota"),
        await narrow.patch(
            f"{MEMORY}/namespaces/ledger", json={"permissions": {"default": "none"}}
        ),
    ):
        assert reply.status_code == 403, (reply.request.url, reply.text)
    assert (await narrow.get("/api/v1/intents")).status_code == 403
    chief = await service.key("chief", permissions=EVERYTHING, namespaces=["plans"])
    acting = service.client(chief, agent="ada")
    assert (await acting.get(f"{MEMORY}/{scoped.inside['working']}")).status_code == 200
    assert (await acting.get(f"{MEMORY}/{scoped.outside['working']}")).status_code == 403


async def test_a_repetition_with_a_key_of_other_namespaces_shows_nothing(
    service: RunningService, scoped: Scoped
) -> None:
    once = {"Idempotency-Key": "first"}
    body = draft("once", namespace="ledger", value={"text": SECRET})
    assert (await scoped.whole.post(MEMORY, json=body, headers=once)).status_code == 201
    again = await scoped.narrow.post(MEMORY, json=body, headers=once)
    assert again.status_code == 403
    assert SECRET not in again.text


async def test_a_key_of_a_namespace_serves_people_in_it(service: RunningService) -> None:
    """The namespace of a bound request is below that of its subject, also for sealed entries."""
    desk = await service.agent("desk", namespaces=["prefs"], subjects=["ann"])
    free = await service.agent("desk")
    ann = {"X-Subject": "ann"}
    for sensitivity in ("public", "restricted"):
        for client, namespace in ((desk, "prefs"), (free, "health")):
            fields = {"namespace": namespace, "sensitivity": sensitivity}
            body = draft(sensitivity, value={"text": SECRET}, **fields)
            made_one = await client.post(MEMORY, json=body, headers=ann)
            assert made_one.status_code == 201, made_one.text
            if client is free:
                path = f"{MEMORY}/{made_one.json()['id']}"
                assert (await desk.get(path, headers=ann)).status_code == 403
    body = draft("other", namespace="health")
    assert (await desk.post(MEMORY, json=body, headers=ann)).status_code == 403
    page = (await desk.get(MEMORY, params={"agent_id": "desk"}, headers=ann)).json()
    assert sorted(entry["key"] for entry in page["entries"]) == ["public", "restricted"]


async def test_a_read_only_key_of_a_namespace_reads_there_and_no_more(
    service: RunningService, scoped: Scoped
) -> None:
    limits = {"namespaces": ["plans"], "read_only": True}
    reader = await service.agent("ada", permissions=EVERYTHING, **limits)
    entry = f"{MEMORY}/{scoped.inside['semantic']}"
    assert (await reader.get(entry)).status_code == 200
    assert (await reader.get(f"{MEMORY}/{scoped.outside['semantic']}")).status_code == 403
    for reply in (
        await reader.patch(entry, json={"tags": []}, headers={"If-Match": "1"}),
        await reader.delete(entry),
        await reader.post(MEMORY, json=draft("new", namespace="plans")),
        await reader.patch(f"{MEMORY}/namespaces/plans", json={"permissions": {"default": "none"}}),
    ):
        assert reply.status_code == 403, reply.text
