"""What guardrails and an administrator bound: episodic memory, shared knowledge, pins (6.6, 7)."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from memorywall.records.principal import DEFAULT_PERMISSIONS, Permission, PrincipalKind
from tests.http.checks import (
    ADMINISTRATOR,
    EVERY_PERMISSION,
    MEMORY,
    NAMESPACES,
    assert_problem,
    make,
)
from tests.support.service import RunningService, draft
from tests.work.crew import COORDINATORS, INTENTS, Crew, ok

pytestmark = pytest.mark.anyio


async def _episodic(crew: Crew) -> list[str]:
    query = {"agent_id": "a", "memory_type": "episodic"}
    return sorted(one["key"] for one in ok(await crew.a.get(MEMORY, params=query))["entries"])


async def _remember(crew: Crew, *keys: str, **fields: Any) -> None:
    for key in keys:
        crew.service.clock.advance(1)
        await make(crew.a, key, memory_type="episodic", **fields)


async def test_episodic_memory_is_bounded_while_the_agent_works_under_guardrails(
    crew: Crew,
) -> None:
    await crew.coordinate({"max_episodic_memory_per_agent": 3})
    await _remember(crew, *"abcd")
    task = await crew.task(assigned_agent="a")
    # Being assigned binds nobody: others must not be able to make an agent forget.
    await _remember(crew, "e")
    assert await _episodic(crew) == list("abcde")
    await crew.take(crew.a, task["id"], seconds=600)
    await _remember(crew, "f")
    assert await _episodic(crew) == list("def")
    summary = ok(await crew.a.get("/api/v1/agents/a/memory/summary"))["episodic"]
    assert (summary["entry_count"], summary["capacity"]) == (3, 3)
    await crew.change(crew.chief, task["id"], status="completed")
    await _remember(crew, "g")
    assert await _episodic(crew) == list("defg")


async def test_the_tightest_bound_of_episodic_memory_wins(crew: Crew) -> None:
    administrator = await _administrator(crew.service)
    path = "/api/v1/agents/a/memory/limits"
    await crew.coordinate({"max_episodic_memory_per_agent": 3})
    await crew.take(crew.a, (await crew.task(assigned_agent="a"))["id"], seconds=600)
    for own, capacity in ((2, 2), (10, 3), (None, 3)):
        ok(await administrator.put(path, json={"episodic_capacity": own}))
        summary = ok(await crew.a.get("/api/v1/agents/a/memory/summary"))["episodic"]
        assert summary["capacity"] == capacity


async def test_guardrails_that_allow_no_episodic_memory_refuse_it(crew: Crew) -> None:
    await _remember(crew, "before")
    await crew.coordinate({"max_episodic_memory_per_agent": 0})
    await crew.take(crew.a, (await crew.task(assigned_agent="a"))["id"], seconds=600)
    response = await crew.a.post(MEMORY, json=draft("more", memory_type="episodic"))
    problem = assert_problem(response, 429, "CAPACITY_EXCEEDED")
    assert (problem["current_count"], problem["max_capacity"]) == (1, 0)
    assert await _episodic(crew) == ["before"]


async def _trap(crew: Crew, guardrails: dict[str, Any]) -> None:
    """Whoever likes can make an intent and name another agent its coordinator, unasked."""
    trap = ok(await crew.outsider.post(INTENTS, json={"title": "trap"}), 201)
    body = {"agent_id": "a", "intent_id": trap["id"], "guardrails": guardrails}
    ok(await crew.outsider.post(COORDINATORS, json=body), 201)


async def test_nobody_forgets_for_an_intent_it_was_only_put_in_charge_of(crew: Crew) -> None:
    await _remember(crew, *"abc")
    await _trap(crew, {"max_episodic_memory_per_agent": 1})
    await _remember(crew, "d")
    assert await _episodic(crew) == list("abcd")


async def test_nobody_is_shut_out_by_an_intent_it_was_only_put_in_charge_of(crew: Crew) -> None:
    await _found(crew.chief, "policies")
    await _trap(crew, {"denied_semantic_namespaces": ["*"]})
    assert await _visible(crew.a) == ["policies"]


async def _found(client: httpx.AsyncClient, *namespaces: str) -> dict[str, str]:
    """Semantic namespaces with one fact in each; returns the paths of the facts."""
    return {
        name: f"{MEMORY}/{(await make(client, 'f', namespace=name, memory_type='semantic'))['id']}"
        for name in namespaces
    }


async def _visible(client: httpx.AsyncClient) -> list[str]:
    """The namespaces of which a query shows something."""
    page = ok(await client.get(MEMORY, params={"memory_type": "semantic"}))
    assert page["total"] == len(page["entries"])
    return sorted(one["namespace"] for one in page["entries"])


@pytest.mark.parametrize(
    ("guardrails", "open_ones"),
    [
        ({"allowed_semantic_namespaces": ["facts"]}, ["facts"]),
        ({"allowed_semantic_namespaces": []}, []),
        ({"allowed_semantic_namespaces": ["internal*"]}, ["internal", "internal.config"]),
        ({"denied_semantic_namespaces": ["internal"]}, ["facts", "internal.config"]),
        ({"denied_semantic_namespaces": ["internal.*"]}, ["facts", "internal"]),
        ({"denied_semantic_namespaces": ["*"]}, []),
        (
            {
                "allowed_semantic_namespaces": ["internal*", "facts"],
                "denied_semantic_namespaces": ["internal.config"],
            },
            ["facts", "internal"],
        ),
    ],
)
async def test_guardrails_deny_namespaces_to_bound_agents(
    crew: Crew, guardrails: dict[str, Any], open_ones: list[str]
) -> None:
    everywhere = ["facts", "internal", "internal.config"]
    curator = await crew.service.agent("curator", permissions=ADMINISTRATOR)
    facts = await _found(curator, *everywhere)
    for name in everywhere:
        allow = {"default": "write"}
        ok(await curator.patch(f"{NAMESPACES}/{name}", json={"permissions": allow}))
    await crew.coordinate(guardrails)
    task = await crew.task(assigned_agent="a")
    assert await _visible(crew.a) == everywhere
    await crew.take(crew.a, task["id"], seconds=600)
    assert await _visible(crew.a) == open_ones
    # The coordinator is bound by its own word; who has nothing to do with it is not.
    assert await _visible(crew.chief) == open_ones
    assert await _visible(crew.b) == everywhere
    for name, path in facts.items():
        body = draft(f"new in {name}", namespace=name, memory_type="semantic")
        responses = [
            await crew.a.get(path),
            await crew.a.post(MEMORY, json=body),
            await crew.a.patch(path, json={"tags": ["t"]}, headers={"If-Match": "1"}),
        ]
        if name in open_ones:
            assert [one.is_success for one in responses] == [True] * 3
        else:
            for response in (*responses, await crew.a.delete(path)):
                assert_problem(response, 403, "ACCESS_DENIED")
    fresh = draft("first", namespace="brand.new", memory_type="semantic")
    founded = await crew.a.post(MEMORY, json=fresh)
    admitted = "brand.new" not in everywhere and "allowed_semantic_namespaces" not in guardrails
    admitted = admitted and guardrails.get("denied_semantic_namespaces") != ["*"]
    assert founded.is_success == admitted
    await crew.change(crew.chief, task["id"], status="cancelled")
    assert set(everywhere) <= set(await _visible(crew.a))


async def test_summary_and_namespace_list_omit_denied_namespaces(crew: Crew) -> None:
    await _found(crew.outsider, "facts", "internal")
    await crew.coordinate({"denied_semantic_namespaces": ["internal"]})
    await crew.take(crew.a, (await crew.task(assigned_agent="a"))["id"], seconds=600)
    summary = ok(await crew.a.get("/api/v1/agents/a/memory/summary"))
    assert summary["semantic_namespaces_accessible"] == ["facts"]
    listed = ok(await crew.a.get(NAMESPACES))["namespaces"]
    assert [one["namespace"] for one in listed] == ["facts"]
    assert_problem(await crew.a.get(f"{NAMESPACES}/internal"), 403)


async def test_the_guardrails_of_all_work_count_together(crew: Crew) -> None:
    await _found(crew.outsider, "facts", "internal", "other")
    await crew.coordinate({"denied_semantic_namespaces": ["internal"]})
    await crew.take(crew.a, (await crew.task(assigned_agent="a"))["id"], seconds=600)
    second = ok(await crew.chief.post(INTENTS, json={"title": "second"}), 201)
    guardrails = {"denied_semantic_namespaces": ["other"]}
    body = {"agent_id": "chief", "intent_id": second["id"], "guardrails": guardrails}
    ok(await crew.chief.post(COORDINATORS, json=body), 201)
    task = await crew.task(intent_id=second["id"], assigned_agent="a")
    await crew.take(crew.a, task["id"], seconds=600)
    assert await _visible(crew.a) == ["facts"]


@pytest.mark.parametrize(
    "guardrails",
    [
        {"max_working_memory_per_task": -1},
        {"max_working_memory_per_task": "3"},
        {"max_episodic_memory_per_agent": 1.5},
        {"allowed_semantic_namespaces": "facts"},
        {"denied_semantic_namespaces": [3]},
        {"memory_archive_required": "yes"},
    ],
)
async def test_guardrails_must_be_of_their_kind(crew: Crew, guardrails: dict[str, Any]) -> None:
    body = {"agent_id": "chief", "intent_id": crew.intent["id"], "guardrails": guardrails}
    assert_problem(await crew.chief.post(COORDINATORS, json=body), 422, "VALIDATION_ERROR")
    assert ok(await crew.chief.get(f"{crew.intent_path}/coordinators")) == []


async def _administrator(service: RunningService) -> httpx.AsyncClient:
    permissions = [*DEFAULT_PERMISSIONS, Permission.TENANT_ADMIN]
    return await service.agent("root", kind=PrincipalKind.USER, permissions=permissions)


async def test_an_administrator_sets_an_agents_limits(crew: Crew) -> None:
    administrator = await _administrator(crew.service)
    path = "/api/v1/agents/a/memory/limits"
    body = {"episodic_capacity": 2, "pinned_namespaces": ["learned", "learned"]}
    limits = ok(await administrator.put(path, json=body))
    assert limits == {"agent_id": "a", "episodic_capacity": 2, "pinned_namespaces": ["learned"]}
    await _remember(crew, *"abc")
    assert await _episodic(crew) == list("bc")
    pinned = await make(crew.a, "p", namespace="learned", memory_type="episodic")
    assert pinned["pinned"] is True
    other = await make(crew.b, "p", namespace="learned", memory_type="episodic")
    assert other["pinned"] is False
    assert (await make(crew.a, "w", namespace="learned"))["pinned"] is False
    ok(await administrator.put(path, json={}))
    await _remember(crew, *"defg")
    assert await _episodic(crew) == list("cdefgp")


async def test_limits_are_for_an_administrator_of_the_tenant(crew: Crew) -> None:
    path = "/api/v1/agents/a/memory/limits"
    for client in (crew.a, crew.chief):
        assert_problem(await client.put(path, json={"episodic_capacity": 2}), 403)
    foreign = await crew.service.agent("root", tenant="other", permissions=EVERY_PERMISSION)
    ok(await foreign.put(path, json={"episodic_capacity": 1}))
    await _remember(crew, *"ab")
    assert await _episodic(crew) == list("ab")
    administrator = await _administrator(crew.service)
    for wrong in ({"episodic_capacity": 0}, {"capacity": 3}, {"pinned_namespaces": [""]}):
        assert_problem(await administrator.put(path, json=wrong), 422)
