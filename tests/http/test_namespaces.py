"""Namespaces of shared memory and their permissions: RFC-0015 sections 2.3 and 6.4."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx
import pytest

from memorywall.records.principal import Permission
from tests.http.checks import (
    ADMINISTRATOR,
    MARKER,
    MEMORY,
    NAMESPACES,
    assert_problem,
    everything,
    keys_of,
    make,
)
from tests.support.service import RunningService, draft, open_service

pytestmark = pytest.mark.anyio

BORN = "2026-02-02T02:40:00.000Z"


async def _found(
    service: RunningService, name: str = "facts", agent: str = "founder"
) -> tuple[httpx.AsyncClient, dict[str, Any]]:
    """A founder with an entry in a namespace, and the entry."""
    founder = await service.agent(agent, permissions=ADMINISTRATOR)
    entry = await make(founder, memory_type="semantic", namespace=name, value={"text": MARKER})
    return founder, entry


async def _allow(founder: httpx.AsyncClient, default: str, **grants: str) -> dict[str, Any]:
    permissions = {
        "default": default,
        "allow": [{"agent": "founder", "access": "admin"}]
        + [{"agent": agent, "access": access} for agent, access in grants.items()],
    }
    response = await founder.patch(f"{NAMESPACES}/facts", json={"permissions": permissions})
    assert response.status_code == 200, response.text
    namespace: dict[str, Any] = response.json()
    return namespace


@pytest.mark.parametrize(
    "name", ["facts", "billing.invoices", "a/b/c.d", "über raum", "batch", "?"]
)
async def test_the_first_write_founds_a_namespace(service: RunningService, name: str) -> None:
    founder, _ = await _found(service, name)
    expected = {
        "namespace": name,
        "access": "admin",
        "permissions": {"default": "read", "allow": [{"agent": "founder", "access": "admin"}]},
        "version": 1,
        "created_at": BORN,
        "updated_at": BORN,
    }
    for path in (quote(name, safe=""), quote(name, safe="/")):
        response = await founder.get(f"{NAMESPACES}/{path}")
        assert response.status_code == 200, response.text
        assert response.json() == expected
        assert response.headers["etag"] == '"1"'
    listed = (await founder.get(NAMESPACES)).json()
    assert listed == {"namespaces": [{"namespace": name, "access": "admin"}], "total": 1}
    other = await service.agent("other")
    assert (await other.get(f"{NAMESPACES}/{quote(name)}")).json() == {**expected, "access": "read"}


async def test_agents_memory_founds_no_namespace(service: RunningService) -> None:
    agent = await service.agent("billing")
    for tier in ("working", "session", "episodic"):
        await make(agent, memory_type=tier)
    assert (await agent.get(NAMESPACES)).json() == {"namespaces": [], "total": 0}
    assert_problem(await agent.get(f"{NAMESPACES}/invoices"), 404)


@pytest.mark.parametrize("default", ["none", "read", "write", "admin"])
@pytest.mark.parametrize("grant", [None, "none", "read", "write", "admin"])
async def test_a_level_of_access_is_what_it_says(
    service: RunningService, default: str, grant: str | None
) -> None:
    founder, entry = await _found(service)
    await _allow(founder, default, **({} if grant is None else {"other": grant}))
    other = await service.agent("other", permissions=ADMINISTRATOR)
    level = ["none", "read", "write", "admin"].index(grant or default)
    path = f"{MEMORY}/{entry['id']}"
    # Reading: get, query, total, the list of namespaces, the summary.
    got = await other.get(path)
    assert got.status_code == (200 if level >= 1 else 403)
    assert await keys_of(other, namespace="facts") == (["progress"] if level >= 1 else [])
    assert (await other.get(NAMESPACES)).json()["total"] == (1 if level >= 1 else 0)
    summary = (await other.get("/api/v1/agents/other/memory/summary")).json()
    assert summary["semantic_namespaces_accessible"] == (["facts"] if level >= 1 else [])
    assert (await other.get(f"{NAMESPACES}/facts")).status_code == (200 if level >= 1 else 403)
    if level == 0:
        assert MARKER not in assert_problem(got, 403, "ACCESS_DENIED")["detail"]
    # Writing: create, change, delete.
    made = await other.post(MEMORY, json=draft("new", memory_type="semantic", namespace="facts"))
    assert made.status_code == (201 if level >= 2 else 403), made.text
    changed = await other.patch(path, json={"value": {}}, headers={"If-Match": "1"})
    assert changed.status_code == (200 if level >= 2 else 403)
    assert (await other.delete(path)).status_code == (204 if level >= 2 else 403)
    # Administering.
    change = {"permissions": {"default": "read"}}
    governed = await other.patch(f"{NAMESPACES}/facts", json=change)
    assert governed.status_code == (200 if level >= 3 else 403)


async def test_lower_grant_denies_an_agent_access_that_others_have(service: RunningService) -> None:
    founder, entry = await _found(service)
    await _allow(founder, "read", shunned="none")
    shunned, other = await service.agent("shunned"), await service.agent("other")
    assert (await other.get(f"{MEMORY}/{entry['id']}")).status_code == 200
    denied = await shunned.get(f"{MEMORY}/{entry['id']}")
    assert_problem(denied, 403, "ACCESS_DENIED")
    assert MARKER not in denied.text


@pytest.mark.parametrize(
    ("permission", "method", "change"),
    [
        (Permission.READ, "GET", None),
        (Permission.WRITE, "PATCH", {"value": {}}),
        (Permission.WRITE, "DELETE", None),
    ],
    ids=["read", "write", "delete"],
)
async def test_a_grant_does_not_stand_in_for_the_keys_permission(
    service: RunningService, permission: Permission, method: str, change: dict[str, Any] | None
) -> None:
    founder, entry = await _found(service)
    await _allow(founder, "read", other="admin")
    lacking = [one for one in ADMINISTRATOR if one is not permission]
    other = await service.agent("other", permissions=lacking)
    response = await other.request(
        method, f"{MEMORY}/{entry['id']}", json=change, headers={"If-Match": "1"}
    )
    document = assert_problem(response, 403, "ACCESS_DENIED")
    assert permission.value in document["detail"]
    assert MARKER not in response.text


async def test_changing_permissions_needs_memory_admin_even_for_the_creator(
    service: RunningService,
) -> None:
    founder = await service.agent("founder")
    await make(founder, memory_type="semantic", namespace="facts")
    before = await everything(service)
    change = {"permissions": {"default": "none"}}
    response = await founder.patch(f"{NAMESPACES}/facts", json=change)
    assert "memory.admin" in assert_problem(response, 403, "ACCESS_DENIED")["detail"]
    assert await everything(service) == before


async def test_an_administrator_of_the_tenant_governs_but_does_not_read(
    service: RunningService,
) -> None:
    founder, entry = await _found(service)
    await _allow(founder, "none")
    governor = await service.agent(
        "governor", permissions=[Permission.READ, Permission.TENANT_ADMIN]
    )
    assert_problem(await governor.get(f"{MEMORY}/{entry['id']}"), 403, "ACCESS_DENIED")
    listed = (await governor.get(NAMESPACES)).json()["namespaces"]
    assert listed == [{"namespace": "facts", "access": "none"}]
    seen = await governor.get(f"{NAMESPACES}/facts")
    assert seen.json()["permissions"]["default"] == "none"
    change = {"permissions": {"default": "read"}}
    response = await governor.patch(f"{NAMESPACES}/facts", json=change)
    assert response.status_code == 200, response.text
    elsewhere = await service.agent(
        "governor", tenant="elsewhere", permissions=[Permission.TENANT_ADMIN, Permission.READ]
    )
    assert_problem(await elsewhere.get(f"{NAMESPACES}/facts"), 404)
    assert (await elsewhere.get(NAMESPACES)).json()["total"] == 0


async def test_a_change_replaces_the_default_the_grants_or_both(service: RunningService) -> None:
    founder, _ = await _found(service)
    service.clock.advance(1)
    both = await _allow(founder, "none", curator="write")
    assert both == {
        "namespace": "facts",
        "access": "admin",
        "permissions": {
            "default": "none",
            "allow": [
                {"agent": "founder", "access": "admin"},
                {"agent": "curator", "access": "write"},
            ],
        },
        "version": 2,
        "created_at": BORN,
        "updated_at": "2026-02-02T02:40:01.000Z",
    }
    path = f"{NAMESPACES}/facts"
    only_default = await founder.patch(path, json={"permissions": {"default": "read"}})
    assert only_default.json()["permissions"] == {**both["permissions"], "default": "read"}
    grants = [{"agent": "founder", "access": "admin"}]
    only_grants = await founder.patch(path, json={"permissions": {"allow": grants}})
    assert only_grants.json()["permissions"] == {"default": "read", "allow": grants}
    assert only_grants.json()["version"] == 4
    assert (await founder.get(path)).json() == only_grants.json()


async def test_if_match_is_checked_when_sent(service: RunningService) -> None:
    founder, _ = await _found(service)
    path, change = f"{NAMESPACES}/facts", {"permissions": {"default": "none"}}
    late = await founder.patch(path, json=change, headers={"If-Match": "2"})
    assert assert_problem(late, 409, "VERSION_MISMATCH")["current_version"] == 1
    star = await founder.patch(path, json=change, headers={"If-Match": "*"})
    assert_problem(star, 428, "PRECONDITION_REQUIRED")
    good = await founder.patch(path, json=change, headers={"If-Match": 'W/"1"'})
    assert good.json()["version"] == 2
    new = await founder.patch(f"{NAMESPACES}/new", json=change, headers={"If-Match": "1"})
    assert_problem(new, 409, "VERSION_MISMATCH")


async def test_permissions_can_come_before_the_first_entry(service: RunningService) -> None:
    founder = await service.agent("founder", permissions=ADMINISTRATOR)
    made = await _allow(founder, "none", curator="write")
    assert made["version"] == 1
    curator = await service.agent("curator")
    await make(curator, memory_type="semantic", namespace="facts")
    other = await service.agent("other")
    refused = await other.post(MEMORY, json=draft("x", memory_type="semantic", namespace="facts"))
    assert_problem(refused, 403, "ACCESS_DENIED")


async def test_a_tenant_may_start_its_namespaces_closed(tmp_path: Any) -> None:
    async with open_service(tmp_path, namespace_default="none") as service:
        founder, entry = await _found(service)
        namespace = (await founder.get(f"{NAMESPACES}/facts")).json()
        assert namespace["permissions"]["default"] == "none"
        other = await service.agent("other")
        assert_problem(await other.get(f"{MEMORY}/{entry['id']}"), 403, "ACCESS_DENIED")


async def test_the_list_is_sorted_and_leaves_out_what_is_hidden(service: RunningService) -> None:
    founder = await service.agent("founder", permissions=ADMINISTRATOR)
    for name in ("zebra", "alpha", "hidden"):
        await make(founder, memory_type="semantic", namespace=name)
    closed = {"permissions": {"default": "none"}}
    assert (await founder.patch(f"{NAMESPACES}/hidden", json=closed)).is_success
    other = await service.agent("other")
    assert (await other.get(NAMESPACES)).json() == {
        "namespaces": [
            {"namespace": "alpha", "access": "read"},
            {"namespace": "zebra", "access": "read"},
        ],
        "total": 2,
    }
    hidden = await other.get(f"{NAMESPACES}/hidden")
    assert_problem(hidden, 403, "ACCESS_DENIED")
    assert "founder" not in hidden.text


@pytest.mark.parametrize(
    "body",
    [
        {}, {"permissions": {}}, {"permissions": None}, {"permissions": {"default": "all"}},
        {"permissions": {"default": None}}, {"permissions": {"allow": [{"agent": "a"}]}},
        {"permissions": {"allow": [{"agent": "a", "access": "own"}]}},
        {"permissions": {"allow": [{"agent": "a", "access": "read", "until": 1}]}},
        {"permissions": {"allow": [{"agent": "a/b", "access": "read"}]}},
        {"permissions": {"allow": [{"agent": "", "access": "read"}]}},
        {"permissions": {"allow": [{"agent": "a\u200b", "access": "read"}]}},
        {"permissions": {"allow": [{"agent": "a", "access": "read"}] * 2}},
        {"permissions": {"allow": [{"agent": f"a{n}", "access": "read"} for n in range(1_001)]}},
        {"permissions": {"default": "read", "deny": []}}, {"default": "read"},
        {"permissions": {"default": "read"}, "namespace": "other"},
    ],
    ids=lambda body: str(body)[:48],
)  # fmt: skip
async def test_permissions_that_make_no_sense_are_refused(
    service: RunningService, body: dict[str, Any]
) -> None:
    founder, _ = await _found(service)
    before = await everything(service)
    response = await founder.patch(f"{NAMESPACES}/facts", json=body)
    assert_problem(response, 422, "VALIDATION_ERROR")
    assert await everything(service) == before
