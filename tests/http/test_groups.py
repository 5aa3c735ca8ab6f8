"""Groups of principals: their administration, and what ends with a membership.

`tests/oracle/test_groups.py` compares what groups open with rules that are written independently.
"""

from __future__ import annotations

from typing import Any

import anyio
import httpx
import pytest

from memorywall.records.principal import DEFAULT_PERMISSIONS, Permission
from memorywall.service.erasure.entry_erasure import forget
from tests.http.checks import MEMORY, NAMESPACES, assert_problem, keys_of, make
from tests.support.service import RunningService, draft

pytestmark = pytest.mark.anyio

GROUPS = "/api/v1/groups"
RED = f"{GROUPS}/red"
BORN = "2026-02-02T02:40:00.000Z"
RIGHTS = (*DEFAULT_PERMISSIONS, Permission.ADMIN)


@pytest.fixture
async def chief(service: RunningService) -> httpx.AsyncClient:
    """An administrator of the tenant, who has made the group red."""
    chief = await service.agent("chief", permissions=(*RIGHTS, Permission.TENANT_ADMIN))
    assert (await chief.put(RED, json={"kind": "class"})).status_code == 200
    return chief


async def join(chief: httpx.AsyncClient, *names: str) -> None:
    for name in names:
        assert (await chief.put(f"{RED}/members/{name}")).status_code == 200


async def leave(chief: httpx.AsyncClient, name: str) -> None:
    assert (await chief.delete(f"{RED}/members/{name}")).status_code == 204


async def allow(
    chief: httpx.AsyncClient, namespace: str, default: str = "none", **grant: Any
) -> httpx.Response:
    lines = [{"agent": "chief", "access": "admin"}, {"agent": "group:red", **grant}]
    permissions = {"permissions": {"default": default, "allow": lines}}
    return await chief.patch(f"{NAMESPACES}/{namespace}", json=permissions)


async def test_a_group_that_does_not_exist_is_granted_nothing(
    service: RunningService, chief: httpx.AsyncClient
) -> None:
    line = {"agent": "group:blue", "access": "read"}
    permissions = {"permissions": {"default": "none", "allow": [line]}}
    refused = await chief.patch(f"{NAMESPACES}/policies", json=permissions)
    assert "a group that does not exist" in assert_problem(refused, 422)["detail"]
    assert (await chief.get(f"{NAMESPACES}/policies")).status_code == 404
    made = await chief.post("/api/v1/intents", json={"title": "t"})
    acl = f"/api/v1/intents/{made.json()['id']}/acl"
    grant = {"principal_id": "group:blue", "permission": "read"}
    refused = await chief.post(f"{acl}/entries", json=grant)
    assert "a group that does not exist" in assert_problem(refused, 422)["detail"]
    refused = await chief.put(acl, json={"default_policy": "closed", "entries": [grant]})
    assert "a group that does not exist" in assert_problem(refused, 422)["detail"]
    # A grant that outlives its group may stay, so that a list which was read can be sent again.
    await chief.put(f"{GROUPS}/blue", json={})
    assert (await chief.patch(f"{NAMESPACES}/policies", json=permissions)).status_code == 200
    await chief.delete(f"{GROUPS}/blue")
    assert (await chief.patch(f"{NAMESPACES}/policies", json=permissions)).status_code == 200


async def test_group_is_created_shown_listed_and_deleted(chief: httpx.AsyncClient) -> None:
    brief = {"name": "red", "kind": "class", "created_by": "chief", "created_at": BORN}
    assert (await chief.get(RED)).json() == {**brief, "members": []}
    await join(chief, "bob", "ada", "bob")
    member = {"principal_id": "ada", "added_by": "chief", "added_at": BORN}
    assert (await chief.get(RED)).json()["members"] == [member, {**member, "principal_id": "bob"}]
    assert (await chief.put(f"{GROUPS}/blue", json={})).json()["kind"] == "team"
    assert (await chief.get(GROUPS)).json() == {
        "groups": [{**brief, "name": "blue", "kind": "team"}, brief],
        "total": 2,
    }
    changed = (await chief.put(RED, json={"kind": "team"})).json()
    assert (changed["kind"], len(changed["members"])) == ("team", 2)
    assert (await chief.delete(RED)).status_code == 204
    for method, path in (("GET", RED), ("DELETE", RED), ("PUT", f"{RED}/members/ada")):
        assert_problem(await chief.request(method, path), 404)
    assert (await chief.put(RED, json={})).json()["members"] == []


async def test_only_administrators_of_the_tenant_change_groups(
    service: RunningService, chief: httpx.AsyncClient
) -> None:
    ada, eve = [await service.agent(name, permissions=RIGHTS) for name in ("ada", "eve")]
    await join(chief, "ada")
    for client in (ada, eve):
        assert_problem(await client.put(f"{GROUPS}/new", json={}), 403)
        assert_problem(await client.put(f"{RED}/members/eve"), 403)
        assert_problem(await client.delete(f"{RED}/members/ada"), 403)
        assert_problem(await client.delete(RED), 403)
    assert (await ada.get(RED)).json()["name"] == "red"
    assert [one["name"] for one in (await ada.get(GROUPS)).json()["groups"]] == ["red"]
    assert_problem(await eve.get(RED), 403)
    assert (await eve.get(GROUPS)).json() == {"groups": [], "total": 0}
    other = await service.agent("ada", "other", permissions=tuple(Permission))
    assert_problem(await other.get(RED), 404)
    assert (await other.get(GROUPS)).json()["total"] == 0
    bound = {"X-Subject": "ann"}
    assert_problem(await chief.put(f"{RED}/members/eve", headers=bound), 403)


async def test_no_principal_has_the_name_of_a_group(
    service: RunningService, chief: httpx.AsyncClient
) -> None:
    for path in (f"{RED}/members/group:blue", f"{GROUPS}/group:blue"):
        assert_problem(await chief.put(path, json={}), 422)
    desk = service.client(
        await service.key("desk", permissions=(Permission.READ, Permission.ACT_AS)), "group:red"
    )
    assert_problem(await desk.get(MEMORY), 422)
    bad = {"permissions": {"allow": [{"agent": "group:", "access": "read"}]}}
    assert_problem(await chief.patch(f"{NAMESPACES}/facts", json=bad), 422)
    line = {"principal_id": "ada", "principal_type": "group"}
    intent = (await chief.post("/api/v1/intents", json={"title": "x"})).json()["id"]
    assert_problem(await chief.post(f"/api/v1/intents/{intent}/acl/entries", json=line), 422)
    named = await chief.post(
        f"/api/v1/intents/{intent}/acl/entries", json={"principal_id": "group:red"}
    )
    assert named.json()["principal_type"] == "group"


async def test_a_membership_ends_with_the_next_request(
    service: RunningService, chief: httpx.AsyncClient
) -> None:
    ada = await service.agent("ada")
    fact = await make(chief, "fact", memory_type="semantic", namespace="facts")
    assert (await allow(chief, "facts", access="write")).status_code == 200
    assert_problem(await ada.get(f"{MEMORY}/{fact['id']}"), 403)
    await join(chief, "ada")
    assert (await ada.get(f"{NAMESPACES}/facts")).json()["access"] == "write"
    await make(ada, "own", memory_type="semantic", namespace="facts")
    assert await keys_of(ada) == ["own", "fact"]
    shared = await make(chief, "s", memory_type="shared", namespace="shared/team/red")
    assert (await allow(chief, "shared/team/red", access="write")).status_code == 200
    assert (await ada.get(f"{MEMORY}/{shared['id']}")).status_code == 200
    await leave(chief, "ada")
    assert_problem(await ada.get(f"{MEMORY}/{fact['id']}"), 403)
    assert_problem(await ada.get(f"{MEMORY}/{shared['id']}"), 403)
    assert await keys_of(ada) == []
    body = draft("other", memory_type="semantic", namespace="facts")
    assert_problem(await ada.post(MEMORY, json=body), 403)


async def test_a_group_can_be_denied_what_all_others_may_read(
    service: RunningService, chief: httpx.AsyncClient
) -> None:
    ada = await service.agent("ada")
    fact = await make(chief, "fact", memory_type="semantic", namespace="facts")
    assert (await allow(chief, "facts", "read", access="none")).status_code == 200
    assert (await ada.get(f"{MEMORY}/{fact['id']}")).status_code == 200
    await join(chief, "ada")
    assert_problem(await ada.get(f"{MEMORY}/{fact['id']}"), 403)
    assert await keys_of(ada) == []


async def test_episodic_memory_is_open_only_where_an_administrator_says_so(
    service: RunningService, chief: httpx.AsyncClient
) -> None:
    """Memory wall 11.8.2, rule 3."""
    ada, bob = await service.agent("ada", permissions=RIGHTS), await service.agent("bob")
    past = await make(ada, "past", memory_type="episodic", namespace="diary")
    await make(ada, "private", memory_type="episodic", namespace="elsewhere")
    await make(ada, "now", memory_type="working", namespace="diary")
    await join(chief, "ada", "bob")
    assert (await allow(chief, "diary", access="read")).status_code == 200
    assert_problem(await bob.get(f"{MEMORY}/{past['id']}"), 403)
    assert await keys_of(bob) == []
    assert_problem(await allow(ada, "founded", access="read", episodic=True), 403)
    assert_problem(await allow(chief, "diary", access="none", episodic=True), 422)
    assert (await allow(chief, "diary", access="read", episodic=True)).status_code == 200
    assert (await bob.get(f"{MEMORY}/{past['id']}")).status_code == 200
    everything = {"memory_type": "episodic", "agent_id": "ada"}
    assert await keys_of(bob, **everything) == ["past"]
    named = await bob.get(f"{MEMORY}/by-name", params={"namespace": "diary", "key": "past"})
    assert named.json()["entry"]["id"] == past["id"]
    changed = await bob.patch(
        f"{MEMORY}/{past['id']}", json={"tags": ["seen"]}, headers={"If-Match": "1"}
    )
    assert_problem(changed, 403)
    await leave(chief, "ada")
    assert_problem(await bob.get(f"{MEMORY}/{past['id']}"), 403)


async def test_an_administrator_of_a_namespace_keeps_and_closes_what_is_open(
    service: RunningService, chief: httpx.AsyncClient
) -> None:
    ada = await service.agent("ada", permissions=RIGHTS)
    lines = [
        {"agent": "ada", "access": "admin"},
        {"agent": "group:red", "access": "read", "episodic": True},
    ]
    path = f"{NAMESPACES}/diary"
    assert (await chief.patch(path, json={"permissions": {"allow": lines}})).status_code == 200
    shown = await ada.patch(path, json={"permissions": {"default": "none", "allow": lines}})
    assert shown.json()["permissions"]["allow"] == lines
    assert (await ada.patch(path, json={"permissions": {"allow": lines[:1]}})).status_code == 200
    assert_problem(await ada.patch(path, json={"permissions": {"allow": lines}}), 403)


async def test_an_open_event_stream_ends_with_the_membership(
    service: RunningService, chief: httpx.AsyncClient
) -> None:
    ada = await service.agent("ada")
    intent = (await chief.post("/api/v1/intents", json={"title": "x"})).json()["id"]
    path = f"/api/v1/intents/{intent}"
    grant = {"principal_id": "group:red"}
    assert (await chief.post(f"{path}/acl/entries", json=grant)).status_code == 201
    assert_problem(await ada.get(f"{path}/events"), 403)
    await join(chief, "ada")
    assert (await ada.get(f"{path}/events")).status_code == 200
    lines: list[str] = []

    async def follow() -> None:
        headers = {"Accept": "text/event-stream"}
        async with ada.stream("GET", f"{path}/subscribe", headers=headers) as response:
            assert response.status_code == 200
            lines.extend([line async for line in response.aiter_lines()])

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow)
            await anyio.wait_all_tasks_blocked()
            await leave(chief, "ada")
            event = {"event_type": "comment", "payload": {"text": "secret"}}
            assert (await chief.post(f"{path}/events", json=event)).is_success
    assert "secret" not in "".join(lines)


async def test_changes_are_events_in_the_stream_of_the_member(
    service: RunningService, chief: httpx.AsyncClient
) -> None:
    ada = await service.agent("ada")
    await join(chief, "ada", "ada")
    await chief.put(RED, json={"kind": "team"})
    await chief.put(RED, json={"kind": "team"})
    await chief.delete(RED)
    stream = (await ada.get("/api/v1/agents/ada/events")).json()["events"]
    seen = [(one["type"], one["actor"], one["data"]) for one in stream]
    assert seen == [
        ("group.member_added", "chief", {"group": "red"}),
        ("group.member_removed", "chief", {"group": "red"}),
    ]
    log = await service.services.store.read("default", lambda to: to.events.list("", 0, 9))
    assert [(one.type, one.data) for one in log if one.type.startswith("group.")] == [
        ("group.created", b'{"group":"red","kind":"class"}'),
        ("group.updated", b'{"group":"red","kind":"team"}'),
        ("group.deleted", b'{"group":"red","kind":"team"}'),
    ]


async def test_a_forgotten_agent_is_in_no_group(
    service: RunningService, chief: httpx.AsyncClient
) -> None:
    await chief.put(f"{GROUPS}/blue", json={})
    await chief.put(f"{GROUPS}/blue/members/ada")
    await join(chief, "ada", "bob")
    assert (await forget(service.services, "default", "ada")).groups == 2
    members = (await chief.get(RED)).json()["members"]
    assert [one["principal_id"] for one in members] == ["bob"]
    assert (await forget(service.services, "default", "ada")).groups == 0


async def test_changes_show_opened_episodic_memory_until_membership_ends(
    service: RunningService, chief: httpx.AsyncClient
) -> None:
    ada, bob = await service.agent("ada", permissions=RIGHTS), await service.agent("bob")
    await join(chief, "ada", "bob")
    await make(ada, "private", memory_type="episodic", namespace="elsewhere")
    await make(ada, "past", memory_type="episodic", namespace="diary")
    assert (await allow(chief, "diary", access="read", episodic=True)).status_code == 200

    async def seen() -> list[str]:
        page = (await bob.get(f"{MEMORY}/changes", params={"after": 0})).json()
        return [change["data"]["key"] for change in page["events"] if "key" in change["data"]]

    assert await seen() == ["past"]
    await leave(chief, "bob")
    assert await seen() == []
