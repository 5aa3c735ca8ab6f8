"""Keys, permissions, agents and tenants: RFC-0015 sections 6.4 and 9.1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from memorywall.assembly import open_memory
from memorywall.records.principal import Permission, PrincipalKind
from memorywall.service.administration.tenants import create_key, revoke_key
from tests.http.checks import (
    ADMINISTRATOR,
    BATCH,
    EVERY_PERMISSION,
    MARKER,
    MEMORY,
    NAMESPACES,
    assert_problem,
    everything,
    keys_of,
    make,
)
from tests.support.service import RunningService, draft

pytestmark = pytest.mark.anyio

PROTECTED = [
    ("POST", MEMORY),
    ("GET", MEMORY),
    ("POST", BATCH),
    ("DELETE", BATCH),
    ("GET", f"{MEMORY}/export"),
    ("GET", NAMESPACES),
    ("GET", f"{NAMESPACES}/facts"),
    ("PATCH", f"{NAMESPACES}/facts"),
    ("GET", f"{MEMORY}/mem_1"),
    ("PATCH", f"{MEMORY}/mem_1"),
    ("DELETE", f"{MEMORY}/mem_1"),
    ("GET", "/api/v1/agents/ada/memory/summary"),
    ("GET", "/api/v1/agents/ada/memory"),
    ("GET", "/api/v1/agents/ada/events"),
    ("GET", "/api/v1/agents/me"),
]


@pytest.mark.parametrize(("method", "path"), PROTECTED, ids=lambda part: str(part))
async def test_every_operation_asks_for_a_key_before_anything_else(
    service: RunningService, method: str, path: str
) -> None:
    for client in (service.client(), service.client("mw_unknown.secret")):
        response = await client.request(method, path, content=b"{broken", params={"bogus": "1"})
        assert_problem(response, 401, "UNAUTHENTICATED")
        assert response.headers["www-authenticate"] == "Bearer"


async def test_both_headers_carry_a_key_alike(service: RunningService) -> None:
    key = await service.key("ada")
    made = await make(service.client(key))
    for headers in (
        {"X-API-Key": key},
        {"x-api-key": key},
        {"Authorization": f"Bearer {key}"},
        {"Authorization": f"bearer {key}"},
    ):
        response = await service.client().get(f"{MEMORY}/{made['id']}", headers=headers)
        assert response.status_code == 200, headers
        assert response.json() == made


@pytest.mark.parametrize(
    "spoil",
    [
        lambda key: "",
        lambda key: key[:-1],
        lambda key: key + "x",
        lambda key: key.swapcase(),
        lambda key: key.partition(".")[0],
        lambda key: key.partition(".")[0] + ".",
        lambda key: "." + key.partition(".")[2],
        lambda key: key.partition(".")[2],
        lambda key: key.replace(".", ".."),
        lambda key: key + "\u202e",
        lambda key: "x" * 100_000,
        lambda key: "' OR 1=1 --",
        lambda key: "%",
        lambda key: f"{key}, {key}",
    ],
    ids=[
        "empty", "shorter", "longer", "other-case", "prefix-only", "prefix-and-dot",
        "no-prefix", "secret-only", "two-dots", "bidi", "huge", "sql", "like", "twice",
    ],
)  # fmt: skip
async def test_malformed_key_is_refused(service: RunningService, spoil: Any) -> None:
    key = await service.key("ada")
    bad = spoil(key).encode()
    replies = set()
    for headers in ([(b"x-api-key", bad)], [(b"authorization", b"Bearer " + bad)]):
        response = await service.client().get(MEMORY, headers=headers)
        assert_problem(response, 401, "UNAUTHENTICATED")
        assert key.partition(".")[2] not in response.text
        replies.add(response.text)
    for scheme in ("Basic", "Token", ""):
        headers = [(b"authorization", f"{scheme} {key}".strip().encode())]
        assert_problem(await service.client().get(MEMORY, headers=headers), 401)
    assert len(replies) == 1


async def test_unknown_and_revoked_keys_get_the_same_response(service: RunningService) -> None:
    key = await service.key("ada")
    assert await revoke_key(service.services, key.partition(".")[0])
    revoked = assert_problem(await service.client(key).get(MEMORY), 401)
    unknown = assert_problem(await service.client("mw_aaaaaaaa.bbbb").get(MEMORY), 401)
    assert revoked == unknown


async def test_keys_made_and_revoked_beside_the_server_count_at_once(
    service: RunningService, tmp_path: Path
) -> None:
    async with open_memory(
        service.services.settings, exclusive=False, clock=service.clock
    ) as beside:
        key, _ = await create_key(
            beside, "default", "new", PrincipalKind.AGENT, [Permission.READ, Permission.WRITE]
        )
        client = service.client(key)
        await make(client)
        assert (await client.get(MEMORY)).status_code == 200
        assert await revoke_key(beside, key.partition(".")[0])
        assert_problem(await client.get(MEMORY), 401, "UNAUTHENTICATED")
        response = await client.post(MEMORY, json=draft("late"))
        assert_problem(response, 401, "UNAUTHENTICATED")
    assert [entry.key for entry in (await everything(service)).entries] == ["progress"]


async def test_a_header_that_claims_another_agent_is_refused(service: RunningService) -> None:
    me, other = await service.key("ada"), await service.agent("other", permissions=ADMINISTRATOR)
    theirs = await make(other, value={"text": MARKER})
    assert (await service.client(me, agent="ada").get(MEMORY)).status_code == 200
    assert (await service.client(me, agent="").get(MEMORY)).status_code == 200
    before = await everything(service)
    for claimed in ("other", "ADA", "ada ,other", "nobody", "system"):
        client = service.client(me, agent=claimed)
        for response in (
            await client.get(f"{MEMORY}/{theirs['id']}"),
            await client.get(MEMORY),
            await client.post(MEMORY, json=draft("x")),
            await client.delete(f"{MEMORY}/{theirs['id']}"),
        ):
            assert_problem(response, 403, "ACCESS_DENIED")
            assert MARKER not in response.text
    assert await everything(service) == before


async def test_a_key_with_act_as_speaks_for_any_agent_of_its_tenant(
    service: RunningService,
) -> None:
    me = await service.agent("ada")
    mine = await make(me)
    runner = await service.key("runner", permissions=[*ADMINISTRATOR, Permission.ACT_AS])
    speaking = service.client(runner, agent="ada")
    assert (await speaking.get(f"{MEMORY}/{mine['id']}")).json() == mine
    made = await make(speaking, "by-runner", agent_id="ada")
    assert (made["agent_id"], made["provenance"]["principal"]) == ("ada", "runner")
    assert (await me.get(f"{MEMORY}/{made['id']}")).json() == made
    itself = service.client(runner)
    assert_problem(await itself.get(f"{MEMORY}/{mine['id']}"), 403, "ACCESS_DENIED")
    foreign = await service.key("runner", tenant="elsewhere", permissions=EVERY_PERMISSION)
    outside = service.client(foreign, agent="ada")
    assert_problem(await outside.get(f"{MEMORY}/{mine['id']}"), 404, "ENTRY_NOT_FOUND")
    assert await keys_of(outside) == []


async def test_impersonation_gives_no_tenant_permissions(service: RunningService) -> None:
    founder = await service.agent("founder", permissions=ADMINISTRATOR)
    await make(founder, memory_type="semantic", namespace="facts")
    before = await everything(service)
    runner = await service.key("runner", permissions=EVERY_PERMISSION)
    change = {"permissions": {"default": "none"}}
    response = await service.client(runner, agent="ada").patch(f"{NAMESPACES}/facts", json=change)
    assert_problem(response, 403, "ACCESS_DENIED")
    assert await everything(service) == before
    assert (await service.client(runner).patch(f"{NAMESPACES}/facts", json=change)).is_success


async def test_agent_id_grants_nothing(service: RunningService) -> None:
    other = await service.agent("other")
    theirs = await make(other, value={"text": MARKER})
    me = await service.agent("ada", permissions=ADMINISTRATOR)
    before = await everything(service)
    for response in (
        await me.post(MEMORY, json=draft("x", agent_id="other")),
        await me.post(MEMORY, json=draft("x", agent_id="")),
        await me.post(BATCH, json={"entries": [draft("x", agent_id="other")]}),
    ):
        assert_problem(response, 403, "ACCESS_DENIED")
    found = (await me.get(MEMORY, params={"agent_id": "other"})).json()
    assert found["entries"] == []
    assert found["total"] == 0
    assert MARKER not in (await me.get("/api/v1/agents/other/memory")).text
    assert await everything(service) == before
    assert (await other.get(f"{MEMORY}/{theirs['id']}")).status_code == 200


async def _attempts(client: httpx.AsyncClient, entry_id: str) -> list[httpx.Response]:
    path = f"{MEMORY}/{entry_id}"
    element = {"id": entry_id, "version": 1, "value": {}}
    return [
        await client.get(path),
        await client.patch(path, json={"value": {}}, headers={"If-Match": "1"}),
        await client.patch(path, json={"value": {}}, headers={"If-Match": "9"}),
        await client.delete(path),
        await client.delete(path, headers={"If-Match": "9"}),
        await client.post(BATCH, json={"entries": [element]}),
    ]


@pytest.mark.parametrize("tier", ["working", "session", "episodic", "semantic", "procedural"])
async def test_another_tenants_entry_is_not_there(service: RunningService, tier: str) -> None:
    owner = await service.agent("ada")
    made = await make(owner, memory_type=tier, value={"text": MARKER}, tags=["x"])
    foreign = await service.agent("ada", tenant="elsewhere", permissions=EVERY_PERMISSION)
    before = await everything(service)
    unknown = [assert_problem(one, 404) for one in await _attempts(foreign, "mem_0000000000000000")]
    for response, like in zip(await _attempts(foreign, made["id"]), unknown, strict=True):
        assert assert_problem(response, 404, "ENTRY_NOT_FOUND") == like
        assert MARKER not in response.text
    for query in ({}, {"tags": "x"}, {"tags_any": "x"}, {"key": "progress"}):
        assert await keys_of(foreign, **query) == []
    assert (await foreign.get("/api/v1/agents/ada/memory")).json() == []
    assert (await foreign.get(f"{MEMORY}/export")).content == b""
    assert (await foreign.get(NAMESPACES)).json()["total"] == 0
    assert await everything(service) == before


@pytest.mark.parametrize("tier", ["working", "session", "episodic"])
async def test_another_agents_entry_is_refused_and_left_out(
    service: RunningService, tier: str
) -> None:
    owner = await service.agent("owner")
    made = await make(
        owner, memory_type=tier, value={"text": MARKER}, tags=["x"], scope={"task_id": "t"}
    )
    other = await service.agent(
        "other", kind=PrincipalKind.USER, permissions=[*ADMINISTRATOR, Permission.TENANT_ADMIN]
    )
    before = await everything(service)
    for response in await _attempts(other, made["id"]):
        document = assert_problem(response, 403, "ACCESS_DENIED")
        assert not {"current", "current_version"} & document.keys()
        assert MARKER not in response.text
    for query in (
        {},
        {"tags": "x"},
        {"tags_any": "x"},
        {"scope.task_id": "t"},
        {"agent_id": "owner", "memory_type": tier},
    ):
        assert await keys_of(other, **query) == []
    assert (await other.get(f"{MEMORY}/export")).content == b""
    assert await everything(service) == before


@pytest.mark.parametrize(
    ("permissions", "reads", "writes"),
    [((), False, False), ((Permission.READ,), True, False), ((Permission.WRITE,), False, True)],
    ids=["nothing", "read", "write"],
)
@pytest.mark.parametrize("tier", ["working", "episodic", "semantic"])
async def test_the_owner_too_needs_the_keys_permission(
    service: RunningService,
    tier: str,
    permissions: tuple[Permission, ...],
    reads: bool,
    writes: bool,
) -> None:
    made = await make(await service.agent("ada"), memory_type=tier, value={"text": MARKER})
    client = await service.agent("ada", permissions=permissions)
    path = f"{MEMORY}/{made['id']}"
    got = await client.get(path)
    assert got.status_code == (200 if reads else 403)
    assert (MARKER in got.text) is reads
    exported = await client.get(f"{MEMORY}/export")
    assert (MARKER in exported.text) is reads
    for response, status in (
        (await client.post(MEMORY, json=draft("new", memory_type=tier)), 201),
        (await client.patch(path, json={"value": {}}, headers={"If-Match": "1"}), 200),
        (await client.delete(path), 204),
    ):
        if writes:
            assert response.status_code == status, response.text
        else:
            assert_problem(response, 403, "ACCESS_DENIED")


async def test_key_returns_its_principal(service: RunningService) -> None:
    key = await service.key("runner", kind=PrincipalKind.SERVICE, permissions=EVERY_PERMISSION)
    itself = (await service.client(key).get("/api/v1/agents/me")).json()
    assert sorted(itself.pop("permissions")) == sorted(one.value for one in Permission)
    assert itself == {"agent_id": "runner", "tenant": "default", "kind": "service"}
    speaking = (await service.client(key, agent="ada").get("/api/v1/agents/me")).json()
    assert (speaking["agent_id"], speaking["kind"]) == ("ada", "agent")
    assert "tenant.admin" not in speaking["permissions"]
    nothing = await service.agent("nothing", permissions=[])
    assert (await nothing.get("/api/v1/agents/me")).json()["permissions"] == []
