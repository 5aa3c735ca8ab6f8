"""Shared state: scopes, versions, limits and where it comes from."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from memorywall.records.principal import DEFAULT_PERMISSIONS, Permission, PrincipalKind
from tests.http.checks import (
    ADMINISTRATOR,
    BATCH,
    MEMORY,
    NAMESPACES,
    assert_problem,
    everything,
    make,
)
from tests.support.service import RunningService, draft
from tests.work.crew import Crew, ok, remember

pytestmark = pytest.mark.anyio

GLOBAL = "shared/global"
TEAM = "shared/team/blue"
MOST = 1_000


def _shared(key: str = "decision", namespace: str = GLOBAL, **fields: Any) -> dict[str, Any]:
    return draft(key, **{"memory_type": "shared", "namespace": namespace, **fields})


async def _put(client: httpx.AsyncClient, *names: str, **fields: Any) -> dict[str, Any]:
    entry: dict[str, Any] = ok(await client.post(MEMORY, json=_shared(*names, **fields)), 201)
    return entry


async def test_every_principal_reads_and_writes_the_global_scope(service: RunningService) -> None:
    a, b = await service.agent("a"), await service.agent("b")
    entry = await _put(a)
    assert (entry["agent_id"], entry["memory_type"]) == ("a", "shared")
    path = f"{MEMORY}/{entry['id']}"
    assert ok(await b.get(path)) == entry
    changed = ok(await b.patch(path, json={"value": {"n": 1}}, headers={"If-Match": "1"}))
    assert (changed["version"], changed["curated_by"]) == (2, "b")
    assert changed["provenance"]["principal"] == "b"
    late = await a.patch(path, json={"value": {"n": 2}}, headers={"If-Match": "1"})
    assert assert_problem(late, 409, "VERSION_MISMATCH")["current"] == changed
    taken = assert_problem(await b.post(MEMORY, json=_shared()), 409, "ENTRY_EXISTS")
    assert taken["current"] == changed
    for client in (a, b):
        found = ok(await client.get(MEMORY, params={"memory_type": "shared"}))["entries"]
        assert found == [changed]
    foreign = await service.agent("a", tenant="other")
    assert_problem(await foreign.get(path), 404)
    await _put(foreign)
    ok(await b.delete(path), 204)


async def test_only_a_tenant_administrator_restricts_the_global_scope(
    service: RunningService,
) -> None:
    a = await service.agent("a", permissions=ADMINISTRATOR)
    path = f"{NAMESPACES}/{GLOBAL}"
    narrow = {"permissions": {"default": "read"}}
    assert_problem(await a.patch(path, json=narrow), 403, "ACCESS_DENIED")
    entry = await _put(a)
    assert_problem(await a.patch(path, json=narrow), 403, "ACCESS_DENIED")
    permissions = [*DEFAULT_PERMISSIONS, Permission.TENANT_ADMIN]
    root = await service.agent("root", kind=PrincipalKind.USER, permissions=permissions)
    ok(await root.patch(path, json=narrow))
    assert ok(await a.get(f"{MEMORY}/{entry['id']}")) == entry
    assert_problem(await a.post(MEMORY, json=_shared("more")), 403, "ACCESS_DENIED")
    assert_problem(await a.delete(f"{MEMORY}/{entry['id']}"), 403, "ACCESS_DENIED")


async def test_team_scope_is_closed_until_its_creator_adds_grants(service: RunningService) -> None:
    founder = await service.agent("founder", permissions=ADMINISTRATOR)
    member, other = await service.agent("member"), await service.agent("other")
    entry = await _put(founder, "plan", TEAM)
    path = f"{MEMORY}/{entry['id']}"
    for client in (member, other):
        assert_problem(await client.get(path), 403, "ACCESS_DENIED")
        assert_problem(await client.post(MEMORY, json=_shared("x", TEAM)), 403, "ACCESS_DENIED")
    allow = [{"agent": "founder", "access": "admin"}, {"agent": "member", "access": "write"}]
    body = {"permissions": {"allow": allow}}
    assert_problem(await member.patch(f"{NAMESPACES}/{TEAM}", json=body), 403)
    ok(await founder.patch(f"{NAMESPACES}/{TEAM}", json=body))
    assert ok(await member.get(path)) == entry
    await _put(member, "x", TEAM)
    ok(await member.patch(path, json={"value": {"n": 1}}, headers={"If-Match": "1"}))
    assert_problem(await other.get(path), 403, "ACCESS_DENIED")
    for client, keys in ((member, ["plan", "x"]), (other, [])):
        query = {"memory_type": "shared", "namespace": "shared/*"}
        found = ok(await client.get(MEMORY, params=query))["entries"]
        assert sorted(one["key"] for one in found) == keys
    refused = assert_problem(await other.post(MEMORY, json=_shared("plan", TEAM)), 403)
    assert "current" not in refused


async def test_an_agents_scope_is_its_own(service: RunningService) -> None:
    a, b = await service.agent("a"), await service.agent("b", permissions=ADMINISTRATOR)
    for name in ("shared/agent/b", "shared/agent/nobody"):
        assert_problem(await a.post(MEMORY, json=_shared(namespace=name)), 403, "ACCESS_DENIED")
    entry = await _put(b, "mine", "shared/agent/b")
    path = f"{MEMORY}/{entry['id']}"
    assert_problem(await a.get(path), 403, "ACCESS_DENIED")
    ok(await b.patch(path, json={"value": {}}, headers={"If-Match": "1"}))
    body = {"permissions": {"default": "write"}}
    assert_problem(await b.patch(f"{NAMESPACES}/shared/agent/b", json=body), 422)
    assert ok(await a.get(MEMORY, params={"memory_type": "shared"}))["total"] == 0


@pytest.mark.parametrize(
    "namespace",
    [
        "notes",
        "shared",
        "shared/",
        "shared/everyone",
        "shared/team",
        "shared/team/",
        "shared/team/a/b",
        "shared/agent/",
        "shared/agent/a/b",
        "Shared/global",
        "shared/globals",
        "shared/global/x",
    ],
)
async def test_invalid_scope_is_refused(service: RunningService, namespace: str) -> None:
    a = await service.agent("a", permissions=ADMINISTRATOR)
    assert_problem(await a.post(MEMORY, json=_shared(namespace=namespace)), 422)
    assert (await everything(service)).namespaces == ()


@pytest.mark.parametrize("tier", ["semantic", "procedural"])
async def test_other_shared_tiers_keep_out_of_the_scopes(
    service: RunningService, tier: str
) -> None:
    a = await service.agent("a")
    for namespace in (GLOBAL, "shared/agent/a", "shared/other"):
        body = draft(namespace=namespace, memory_type=tier)
        assert_problem(await a.post(MEMORY, json=body), 422)
    assert (await everything(service)).entries == ()


async def test_scope_has_a_limit_of_entries(service: RunningService) -> None:
    a = await service.agent("a")
    for start in range(0, MOST, 250):
        entries = [_shared(f"k{number}") for number in range(start, start + 250)]
        ok(await a.post(BATCH, json={"entries": entries}))
    response = await a.post(MEMORY, json=_shared("more"))
    problem = assert_problem(response, 429, "CAPACITY_EXCEEDED")
    assert (problem["current_count"], problem["max_capacity"]) == (MOST, MOST)
    await _put(a, "more", "shared/agent/a")
    query = {"memory_type": "shared", "namespace": GLOBAL, "key": "k0"}
    (first,) = ok(await a.get(MEMORY, params=query))["entries"]
    path = f"{MEMORY}/{first['id']}"
    ok(await a.patch(path, json={"value": {"n": 1}}, headers={"If-Match": "1"}))
    ok(await a.delete(path), 204)
    await _put(a, "more", ttl="duration:PT10S")
    assert_problem(await a.post(MEMORY, json=_shared("again")), 429)
    service.clock.advance(10)
    await _put(a, "again")


async def test_guardrails_over_knowledge_do_not_bar_shared_state(crew: Crew) -> None:
    await crew.coordinate({"allowed_semantic_namespaces": []})
    await crew.take(crew.a, (await crew.task(assigned_agent="a"))["id"], seconds=600)
    entry = await _put(crew.a)
    assert ok(await crew.a.get(f"{MEMORY}/{entry['id']}")) == entry


async def test_what_was_read_before_is_kept(service: RunningService) -> None:
    a, b = await service.agent("a"), await service.agent("b")
    first = await _put(a, "first")
    own = await make(b, "note", memory_type="episodic")
    ok(await a.patch(f"{MEMORY}/{first['id']}", json={"tags": ["t"]}, headers={"If-Match": "1"}))
    sources = [
        {"id": first["id"], "version": 1},
        {"id": first["id"], "version": 2},
        {"id": own["id"], "version": 1},
    ]
    entry = await _put(b, "second", derived_from=[*sources, sources[0]])
    assert entry["provenance"]["derived_from"] == sources
    path = f"{MEMORY}/{entry['id']}"
    assert ok(await a.get(path))["provenance"]["derived_from"] == sources
    change = {"value": {"n": 2}, "derived_from": sources[:1]}
    changed = ok(await a.patch(path, json=change, headers={"If-Match": "1"}))
    assert changed["provenance"]["derived_from"] == sources[:1]
    # A write that names no sources keeps those of the entry; nothing takes the last one away.
    bare = ok(await a.patch(path, json={"value": {}}, headers={"If-Match": "2"}))
    assert bare["provenance"]["derived_from"] == sources[:1]
    none = {"value": {"n": 3}, "derived_from": []}
    refused = await a.patch(path, json=none, headers={"If-Match": "3"})
    assert "`derived_from`" in assert_problem(refused, 422)["detail"]


async def test_each_element_of_a_batch_tells_its_sources(service: RunningService) -> None:
    a = await service.agent("a")
    first = await _put(a, "first")
    old = await _put(a, "old")
    sources = [{"id": first["id"], "version": 1}]
    new = _shared("new", derived_from=sources)
    change = {"id": old["id"], "version": 1, "value": {"n": 1}, "derived_from": sources}
    written = ok(await a.post(BATCH, json={"entries": [new, change, _shared("bare")]}))["entries"]
    assert [one["provenance"].get("derived_from") for one in written] == [sources, sources, None]
    wrong = _shared("wrong", derived_from=[{"id": first["id"], "version": 2}])
    problem = assert_problem(await a.post(BATCH, json={"entries": [_shared("x"), wrong]}), 422)
    assert problem["index"] == 1


async def test_unreadable_or_missing_source_is_refused(crew: Crew) -> None:
    own = await make(crew.a, "gone")
    ok(await crew.a.delete(f"{MEMORY}/{own['id']}"), 204)
    brief = await make(crew.a, "brief", ttl="duration:PT10S")
    crew.service.clock.advance(10)
    task = await crew.task(assigned_agent="b")
    theirs = await remember(crew.b, task["id"])
    known = await make(crew.a, "known")
    wrong: list[dict[str, Any]] = [
        {"id": own["id"], "version": 1},
        {"id": brief["id"], "version": 1},
        {"id": "mem_none", "version": 1},
        {"id": theirs["id"], "version": 1},
        {"id": known["id"], "version": 2},
    ]
    before = await everything(crew.service)
    details = set()
    for source in wrong:
        body = _shared(derived_from=[{"id": known["id"], "version": 1}, source])
        problem = assert_problem(await crew.a.post(MEMORY, json=body), 422, "VALIDATION_ERROR")
        details.add(problem["detail"])
        change = {"derived_from": [source], "value": {}}
        path = f"{MEMORY}/{known['id']}"
        refused = await crew.a.patch(path, json=change, headers={"If-Match": "1"})
        details.add(assert_problem(refused, 422)["detail"])
    # The same words for what is walled off as for what is not there.
    assert len(details) == 1
    assert await everything(crew.service) == before


async def test_sources_have_a_form_and_a_number(service: RunningService) -> None:
    a = await service.agent("a")
    entries = [_shared(f"k{number}") for number in range(65)]
    made = ok(await a.post(BATCH, json={"entries": entries}))["entries"]
    sources: list[dict[str, Any]] = [{"id": one["id"], "version": 1} for one in made]
    assert_problem(await a.post(MEMORY, json=_shared(derived_from=sources)), 422)
    for wrong in ({"id": made[0]["id"]}, {"id": made[0]["id"], "version": 0}, made[0]["id"]):
        assert_problem(await a.post(MEMORY, json=_shared(derived_from=[wrong])), 422)
    kept = await _put(a, derived_from=sources[:64])
    assert kept["provenance"]["derived_from"] == sources[:64]
