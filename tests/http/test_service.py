"""Summary, bare list, discovery, health, unknown paths and methods."""

from __future__ import annotations

import re
from typing import Any

import pytest

from memorywall.records.errors import StorageFullError
from memorywall.records.principal import Permission
from memorywall.version import __version__
from memorywall.wire.operations import OPERATIONS
from tests.http.checks import (
    ADMINISTRATOR,
    MARKER,
    MEMORY,
    NAMESPACES,
    assert_problem,
    make,
    value_of_size,
)
from tests.support.backend import is_on_file
from tests.support.service import RunningService, draft, open_service

pytestmark = pytest.mark.anyio


async def test_the_summary_has_the_rfcs_fields_and_the_right_numbers(
    service: RunningService,
) -> None:
    agent = await service.agent("ada", permissions=ADMINISTRATOR)
    empty = {
        "agent_id": "ada",
        "working": {"entry_count": 0, "total_size_kb": 0, "tasks_with_memory": []},
        "episodic": {
            "entry_count": 0,
            "capacity": 1_000,
            "pinned_count": 0,
            "total_size_kb": 0,
            "oldest_entry": None,
            "newest_entry": None,
        },
        "semantic_namespaces_accessible": [],
    }
    assert (await agent.get("/api/v1/agents/ada/memory/summary")).json() == empty
    await make(agent, "w1", scope={"task_id": "t2"}, value=value_of_size(1_024))
    await make(agent, "w2", scope={"task_id": "t1"}, value=value_of_size(1_024))
    await make(agent, "w3", scope={"task_id": "t1"}, sensitivity="restricted",
               value=value_of_size(1_024))  # fmt: skip
    await make(agent, "w4", value=value_of_size(20))
    await make(agent, "session", memory_type="session", scope={"task_id": "t9"})
    await make(agent, "fact", memory_type="semantic", namespace="facts")
    await make(agent, "way", memory_type="procedural", namespace="ways")
    service.clock.advance(60)
    await make(agent, "e1", memory_type="episodic", pinned=True, value=value_of_size(2_000))
    service.clock.advance(60)
    last = await make(agent, "e2", memory_type="episodic", value=value_of_size(48))
    await make(agent, "e2", memory_type="episodic", namespace="other", value=value_of_size(1_000))
    await make(await service.agent("other"), "theirs", memory_type="episodic", pinned=True)
    service.clock.advance(60)
    touched = await agent.patch(
        f"{MEMORY}/{last['id']}", json={"tags": ["x"]}, headers={"If-Match": "1"}
    )
    assert touched.is_success
    assert (await agent.get("/api/v1/agents/ada/memory/summary")).json() == {
        "agent_id": "ada",
        "working": {"entry_count": 4, "total_size_kb": 4, "tasks_with_memory": ["t1", "t2"]},
        "episodic": {
            "entry_count": 3,
            "capacity": 1_000,
            "pinned_count": 1,
            "total_size_kb": 3,
            "oldest_entry": "2026-02-02T02:41:00.000Z",
            "newest_entry": "2026-02-02T02:42:00.000Z",
        },
        "semantic_namespaces_accessible": ["facts", "ways"],
    }


async def test_the_summary_of_another_is_refused(service: RunningService) -> None:
    owner = await service.agent("owner")
    await make(owner)
    other = await service.agent("other")
    response = await other.get("/api/v1/agents/owner/memory/summary")
    assert_problem(response, 403, "ACCESS_DENIED")
    writer = await service.agent("owner", permissions=[Permission.WRITE])
    assert_problem(await writer.get("/api/v1/agents/owner/memory/summary"), 403, "ACCESS_DENIED")


async def test_the_summary_names_only_namespaces_the_agent_may_read(
    service: RunningService,
) -> None:
    founder = await service.agent("founder", permissions=ADMINISTRATOR)
    for name in ("open", "closed"):
        await make(founder, memory_type="semantic", namespace=name)
    change = {"permissions": {"default": "none"}}
    assert (await founder.patch(f"{NAMESPACES}/closed", json=change)).is_success
    other = await service.agent("other")
    summary = (await other.get("/api/v1/agents/other/memory/summary")).json()
    assert summary["semantic_namespaces_accessible"] == ["open"]


async def test_an_agents_list_is_bare_and_filtered(service: RunningService) -> None:
    agent = await service.agent("ada")
    assert (await agent.get("/api/v1/agents/ada/memory")).json() == []
    first = await make(agent, "k0", tags=["a", "b"])
    second = await make(agent, "k1", tags=["a"], namespace="other", memory_type="episodic")
    third = await make(agent, "k2", memory_type="semantic")
    path = "/api/v1/agents/ada/memory"
    for query, expected in (
        ({}, [third, second, first]),
        ({"limit": "2"}, [third, second]),
        ({"limit": "2", "offset": "2"}, [first]),
        ({"namespace": "other"}, [second]),
        ({"namespace": "o*"}, [second]),
        ({"memory_type": "working"}, [first]),
        ({"tags": "a,b"}, [first]),
        ({"tags": "a", "memory_type": "episodic"}, [second]),
    ):
        response = await agent.get(path, params=query)
        assert response.json() == expected, query
    other = await service.agent("other")
    listed = await other.get(path)
    if listed.status_code == 200:
        assert [entry["id"] for entry in listed.json()] == [third["id"]]
    else:
        assert_problem(listed, 403, "ACCESS_DENIED")
    private = await other.get(path, params={"memory_type": "working"})
    assert first["id"] not in private.text
    assert (await agent.get(path, params={"limit": "1001"})).status_code == 400


async def test_capabilities_list_the_features(tmp_path: object) -> None:
    async with open_service(
        tmp_path, episodic_capacity=7, working_capacity_per_task=9  # type: ignore[arg-type]
    ) as service:  # fmt: skip
        response = await service.client().get("/api/v1/capabilities")
        assert response.status_code == 200
        document = response.json()
    assert (document["name"], document["version"]) == ("memorywall", __version__)
    assert document["protocol_version"] == "0.17"
    assert document["memory_types"] == [
        "working", "session", "episodic", "semantic", "procedural", "shared"
    ]  # fmt: skip
    assert document["eviction_policies"] == ["lru", "lfu", "oldest", "utility"]
    assert document["limits"] == {
        "value_bytes": 65_536,
        "page_entries": 1_000,
        "batch_entries": 1_000,
        "query_characters": 2_000,
        "search_hits": 100,
        "episodic_capacity": 7,
        "working_capacity_per_task": 9,
    }


# A route of each capability that has routes of its own.
_ROUTES = {
    "memory": "/api/v1/memory/{entry_id}",
    "memory.batch": "/api/v1/memory/batch",
    "memory.namespaces": "/api/v1/memory/namespaces",
    "memory.events": "/api/v1/agents/{agent_id}/events",
    "memory.export": "/api/v1/memory/export",
    "memory.search": "/api/v1/memory/search",
    "memory.reshape": "/api/v1/memory/reshape",
    "intents": "/api/v1/intents/{intent_id}",
    "tasks": "/api/v1/tasks/{task_id}",
    "coordinators": "/api/v1/coordinators/{coordinator_id}",
    "leases": "/api/v1/intents/{intent_id}/leases",
    "claims": "/api/v1/claims/{claim_id}",
    "access": "/api/v1/intents/{intent_id}/acl",
    "attachments": "/api/v1/intents/{intent_id}/attachments",
}


async def test_what_is_told_to_be_there_is_there(service: RunningService) -> None:
    document = (await service.client().get("/api/v1/capabilities")).json()
    told = document["capabilities"]
    assert len(set(told)) == len(told)
    assert set(told) >= _ROUTES.keys() | {"memory.archive", "memory.shared"}
    assert set(_ROUTES.values()) <= {operation.path for operation in OPERATIONS}


async def test_every_rfc_that_a_route_comes_from_is_told(service: RunningService) -> None:
    document = (await service.client().get("/api/v1/capabilities")).json()
    sources = " ".join(operation.source for operation in OPERATIONS)
    assert document["rfcs"] == sorted(set(re.findall(r"RFC-\d{4}", sources)))


async def test_discovery_and_capabilities_tell_the_same(service: RunningService) -> None:
    client = service.client()
    discovery = (await client.get("/.well-known/openintent.json")).json()
    capabilities = (await client.get("/api/v1/capabilities")).json()
    for name in ("name", "version", "protocol_version", "rfcs", "capabilities"):
        assert discovery[name] == capabilities[name], name


async def test_discovery_health_and_readiness_need_no_key(service: RunningService) -> None:
    client = service.client()
    discovery = await client.get("/.well-known/openintent.json")
    assert discovery.status_code == 200
    document = discovery.json()
    assert document["api_base"] == "/api/v1"
    for name in ("openapi", "documentation"):
        assert (await client.get(document[name])).status_code == 200
    health = await client.get("/health")
    assert (health.status_code, health.json()) == (200, {"status": "ok"})
    ready = await client.get("/ready")
    assert ready.status_code == 200
    assert ready.json() == {"status": "ready", "embedding": {"model": None, "backlog": 0}}
    for response in (discovery, health, ready):
        assert response.headers["content-type"] == "application/json"


async def test_the_server_is_not_ready_while_writes_find_no_room(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = await service.agent("root", permissions=[*Permission])
    key = await service.key("ada")
    store, room = service.services.store, service.services.room
    monkeypatch.setattr("memorywall.service.requests.storage_room._LOOK_AGAIN", 0)

    async def refuse(*arguments: Any, **named: Any) -> Any:
        raise StorageFullError("the disk is full; nothing was stored, reads go on")

    with monkeypatch.context() as full:
        full.setattr(store, "check_room", refuse)
        assert (await admin.get("/ready")).is_success
        with monkeypatch.context() as every_write:
            every_write.setattr(store, "write", refuse)
            assert_problem(await admin.post(MEMORY, json=draft()), 507)
        # A small write finds room again, and a check as large as other requests does not.
        await make(service.client(key))
        for _ in range(2):
            told = assert_problem(await service.client().get("/ready"), 503, "UNAVAILABLE")
            assert "the disk is full" in told["detail"]
            status = await admin.get("/api/v1/status")
            assert (status.status_code, status.json()["status"]) == (200, "full")
    assert (await service.client().get("/ready")).json()["status"] == "ready"
    assert (await admin.get("/api/v1/status")).json()["status"] == "ready"
    assert await room.find_reason(store) is None


async def test_an_administrator_sees_the_state_of_the_tenant(service: RunningService) -> None:
    admin = await service.agent("root", permissions=[*Permission])
    agent = await service.agent("ada")
    await make(agent, "one", memory_type="episodic", value={"a": 1})
    await make(agent, "two", memory_type="episodic", value={"a": 1})
    await make(admin, "fact", memory_type="semantic", namespace="facts", value={})
    elsewhere = await service.agent("ada", tenant="other")
    await make(elsewhere, "theirs")
    response = await admin.get("/api/v1/status")
    assert response.status_code == 200
    told = response.json()
    assert (told["status"], told["version"], told["tenant"]) == ("ready", __version__, "default")
    assert told["store"] == {
        "engine": "SQLite" if is_on_file() else "PostgreSQL",
        "version": told["store"]["version"],
        "schema": told["store"]["schema"],
    }
    assert told["store"]["schema"] > 0
    counts = {one["memory_type"]: (one["entries"], one["bytes"]) for one in told["tiers"]}
    assert {tier: count for tier, count in counts.items() if count[0]} == {
        "episodic": (2, 14),
        "semantic": (1, 2),
    }
    assert [one["name"] for one in told["jobs"]] == [
        "embed",
        "end_leases",
        "end_sessions",
        "expire",
        "judge",
        "migrate_facts",
        "prune",
        "reseal",
        "seal",
        "segments",
    ]
    assert told["embedding"] == {"model": None, "backlog": 0}
    assert_problem(await agent.get("/api/v1/status"), 403, "ACCESS_DENIED")


async def test_the_page_of_documents_loads_nothing_from_elsewhere(service: RunningService) -> None:
    client = service.client()
    page = await client.get("/docs")
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    for asset in ("", "/docs.js", "/docs.css"):
        text = (await client.get("/docs" + asset)).text
        assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
        assert "https://" not in text


async def test_the_address_of_the_server_leads_to_the_api_page(service: RunningService) -> None:
    response = await service.client().get("http://memorywall.test/")
    assert (response.status_code, response.headers["location"]) == (307, "/docs")


@pytest.mark.parametrize(
    "path",
    [
        "/api", "/api/v1", "/api/v2/memory", "/api/v1/memory/", "/api/v1/memory/a/b",
        "/api/v1/Memory", "/api/v1/agents", "/api/v1/agents/someone", "/api/v1/agents//memory",
        "/docs/x.js", f"/{MARKER}", "/health/", "//health", "/api/v1/intents/", "/api/v1/intent",
        "/api/v1/intents/int_1/x", "/api/v1/intents/int_1/leases/lse_1/x", "/api/v1/tasks/task_1/x",
        "/api/v1/tasks/task_1/lease/x", "/api/v1/claims/clm_1/x", "/api/v1/coordinators/coord_1/x",
        "/api/v1/intents/int_1/attachments/att_1/x", "/api/v1/agents/ada/memory/a/b/c",
    ],
)  # fmt: skip
async def test_unknown_path_returns_a_problem_document(service: RunningService, path: str) -> None:
    agent = await service.agent("ada")
    for method in ("GET", "POST", "DELETE", "PATCH", "PUT"):
        response = await agent.request(method, f"http://memorywall.test{path}")
        assert_problem(response, 404)
        assert MARKER not in response.text


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PATCH", "/api/v1/memory", {"GET", "POST", "PUT"}),
        ("DELETE", "/api/v1/memory", {"GET", "POST", "PUT"}),
        ("POST", "/api/v1/memory/mem_1", {"GET", "PATCH", "DELETE"}),
        ("PUT", "/api/v1/memory/mem_1", {"GET", "PATCH", "DELETE"}),
        ("GET", "/api/v1/memory/batch", {"POST", "DELETE"}),
        ("PATCH", "/api/v1/memory/batch", {"POST", "DELETE"}),
        ("POST", "/api/v1/memory/namespaces", {"GET"}),
        ("DELETE", "/api/v1/memory/namespaces", {"GET"}),
        ("POST", "/api/v1/memory/namespaces/a", {"GET", "PATCH"}),
        ("DELETE", "/api/v1/memory/namespaces/a/b", {"GET", "PATCH"}),
        ("POST", "/api/v1/agents/ada/memory", {"GET"}),
        ("POST", "/api/v1/agents/ada/memory/summary", {"GET"}),
        ("DELETE", "/api/v1/agents/ada/events", {"GET"}),
        ("GET", "/api/v1/agents/ada/memory/limits", {"PUT"}),
        ("DELETE", "/api/v1/agents/ada/memory/a/b", {"GET", "PUT"}),
        ("PATCH", "/api/v1/intents", {"GET", "POST"}),
        ("DELETE", "/api/v1/intents/int_1", {"GET"}),
        ("GET", "/api/v1/intents/int_1/state", {"POST"}),
        ("DELETE", "/api/v1/intents/int_1/acl", {"GET", "PUT"}),
        ("POST", "/api/v1/intents/int_1/leases/lse_1", {"PATCH", "DELETE"}),
        ("POST", "/api/v1/intents/int_1/attachments/att_1/content", {"GET", "PUT"}),
        ("GET", "/api/v1/tasks/next", {"POST"}),
        ("GET", "/api/v1/tasks/task_1/lease", {"PATCH", "DELETE"}),
        ("GET", "/api/v1/coordinators", {"POST"}),
        ("PUT", "/api/v1/claims/clm_1", {"GET", "PATCH", "DELETE"}),
        ("POST", "/api/v1/capabilities", {"GET"}),
        ("POST", "/health", {"GET"}),
        ("POST", "/metrics", {"GET"}),
        ("GET", "/api/v1/memory/search", {"POST"}),
        ("DELETE", "/api/v1/memory/reshape", {"POST"}),
        ("POST", "/openapi.json", {"GET"}),
        ("BREW", "/health", {"GET"}),
        ("OPTIONS", "/api/v1/memory", {"GET", "POST", "PUT"}),
    ],
)
async def test_unknown_method_is_reported_with_the_known_ones(
    service: RunningService, method: str, path: str, allowed: set[str]
) -> None:
    agent = await service.agent("ada")
    response = await agent.request(method, path)
    assert_problem(response, 405)
    offered = {one.strip() for one in response.headers["allow"].split(",")}
    assert offered - {"HEAD"} == allowed


async def test_a_head_is_answered_like_a_get(service: RunningService) -> None:
    agent = await service.agent("ada")
    made = await make(agent)
    response = await agent.head(f"{MEMORY}/{made['id']}")
    assert response.status_code == 200
    assert response.headers["etag"] == '"1"'
    assert (await agent.head(f"{MEMORY}/mem_0")).status_code == 404


@pytest.mark.parametrize(
    "name",
    [
        "me",
        "memory",
        "events",
        "summary",
        "batch",
        "export",
        "namespaces",
        "agents",
        "v1",
        "limits",
        "next",
    ],
)
async def test_an_agent_may_be_called_like_a_word_of_a_path(
    service: RunningService, name: str
) -> None:
    agent = await service.agent(name)
    made = await make(agent)
    assert (await agent.get(f"/api/v1/agents/{name}/memory")).json() == [made]
    summary = await agent.get(f"/api/v1/agents/{name}/memory/summary")
    assert summary.json()["agent_id"] == name
    events = (await agent.get(f"/api/v1/agents/{name}/events")).json()["events"]
    assert [event["agent_id"] for event in events] == [name]


async def test_metrics_count_refused_requests_without_naming_the_caller(
    service: RunningService,
) -> None:
    reader = await service.agent("ada", permissions=(Permission.READ,))
    refused = await reader.post(
        MEMORY,
        json={"namespace": "n", "key": "k", "value": {"a": 1}, "memory_type": "working"},
    )
    assert refused.status_code == 403
    bob = await service.agent("bob")
    made = (await make(bob, subjects=["ana"])).get("id")
    hidden = await bob.get(f"{MEMORY}/{made}", headers={"X-Subject": "linus"})
    absent = await bob.get(f"{MEMORY}/mem_0", headers={"X-Subject": "linus"})
    assert (hidden.status_code, absent.status_code) == (404, 404)
    assert hidden.json()["detail"] == absent.json()["detail"]
    stranger = await service.client("mw_abcdefgh.none").get(f"{MEMORY}/{made}")
    assert stranger.status_code == 401
    text = (await service.client().get("/metrics")).text
    for code, operation in (
        ("ACCESS_DENIED", "create_entry"),
        ("ENTRY_NOT_FOUND", "get_entry"),
        ("UNAUTHENTICATED", "get_entry"),
    ):
        labels = f'code="{code}",operation="{operation}"'
        assert f"memorywall_refused_requests_total{{{labels}}} 1.0" in text
    assert "ada" not in text
