"""Keys that are limited to namespaces: changes, groups and schemas."""

from __future__ import annotations

import pytest

from tests.oracle.test_narrow_keys import EVERYTHING, MEMORY, Scoped, made
from tests.oracle.wire import send, server_sent_events
from tests.support.service import RunningService

pytestmark = pytest.mark.anyio


@pytest.fixture
async def scoped(service: RunningService) -> Scoped:
    whole = await service.agent("ada", permissions=EVERYTHING)
    world = Scoped(whole, await service.agent("ada", permissions=EVERYTHING, namespaces=["plans"]))
    await world.fill()
    return world


async def test_changes_for_a_key_of_some_namespaces_stay_inside(
    service: RunningService, scoped: Scoped
) -> None:
    path = f"{MEMORY}/changes"
    every = (await scoped.whole.get(path, params={"after": 0, "limit": 500})).json()
    wanted = [one for one in every["events"] if one["data"].get("namespace") == "plans"]
    assert 0 < len(wanted) < len(every["events"])
    page = (await scoped.narrow.get(path, params={"after": 0, "limit": 500})).json()
    assert page == {"events": wanted, "next": every["next"], "more": False}
    headers = {**scoped.narrow.headers, "Accept": "text/event-stream"}
    headers["Last-Event-ID"] = "0"
    live = await send(service.app, "GET", path, headers=headers)
    told = live.text.removesuffix(f"id: {every['next']}\n\n")
    assert server_sent_events(told) == wanted
    for name in ("ledger", "absent"):
        shared = {"after": 0, "namespace": name, "memory_type": "semantic"}
        assert (await scoped.narrow.get(path, params=shared)).status_code == 403
    own = {"after": 0, "namespace": "ledger", "memory_type": "episodic"}
    assert (await scoped.narrow.get(path, params=own)).json()["events"] == []


async def test_an_archive_for_a_key_of_some_namespaces_names_what_is_inside(
    service: RunningService,
) -> None:
    whole = await service.agent("ada", permissions=EVERYTHING)
    narrow = await service.agent("ada", namespaces=["plans"])
    intent = (await whole.post("/api/v1/intents", json={"title": "Close"})).json()["id"]
    body = {"intent_id": intent, "name": "Collect"}
    task = (await whole.post("/api/v1/tasks", json=body)).json()["id"]
    entries = [
        await made(whole, namespace=name, key="k", scope={"task_id": task, "intent_id": intent})
        for name in ("plans", "ledger")
    ]
    ended = await whole.patch(
        f"/api/v1/tasks/{task}", json={"status": "cancelled"}, headers={"If-Match": "1"}
    )
    assert ended.status_code == 200, ended.text
    for reader, expected in ((whole, entries), (narrow, entries[:1])):
        page = (await reader.get(f"{MEMORY}/changes", params={"after": 0})).json()
        (archive,) = [one for one in page["events"] if "entries_archived" in one["data"]]
        assert [one["entry_id"] for one in archive["data"]["entries"]] == expected
        assert archive["data"]["entries_archived"] == len(expected)


async def test_a_group_opens_only_the_namespaces_of_a_key(
    service: RunningService, scoped: Scoped
) -> None:
    for name in ("ada", "bob"):
        await scoped.whole.put("/api/v1/groups/red", json={})
        await scoped.whole.put(f"/api/v1/groups/red/members/{name}")
    line = {"agent": "group:red", "access": "read", "episodic": True}
    for name in ("plans", "ledger"):
        opened = {"permissions": {"allow": [line]}}
        reply = await scoped.whole.patch(f"{MEMORY}/namespaces/{name}", json=opened)
        assert reply.status_code == 200, reply.text
    inside, outside = scoped.inside["episodic"], scoped.outside["episodic"]
    wanted = {"agent_id": "ada", "memory_type": "episodic"}
    for namespaces, expected in (((), {inside, outside}), (("plans",), {inside})):
        bob = await service.agent("bob", namespaces=namespaces)
        page = (await bob.get(MEMORY, params=wanted)).json()
        assert {one["id"] for one in page["entries"]} == expected
        changes = (
            await bob.get(f"{MEMORY}/changes", params={"after": 0, "memory_type": "episodic"})
        ).json()
        assert {one["data"]["entry_id"] for one in changes["events"]} == expected
        for entry in (inside, outside):
            status = 200 if entry in expected else 403
            assert (await bob.get(f"{MEMORY}/{entry}")).status_code == status


async def test_schemas_for_a_key_of_some_namespaces(scoped: Scoped) -> None:
    schemas, new = "/api/v1/memory/schemas", {"version": "1.0.0", "schema": {"type": "object"}}
    for name, status in (("plans", 200), ("ledger", 403)):
        path = f"{schemas}/note/{name}"
        assert (await scoped.narrow.put(path, json=new)).status_code == status
        assert (await scoped.whole.put(path, json=new)).status_code == 200
        for reply in (
            await scoped.narrow.get(path),
            await scoped.narrow.get(schemas, params={"namespace": name}),
        ):
            assert reply.status_code == status, reply.text
