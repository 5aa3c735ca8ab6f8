"""Create, get, change and delete: RFC-0015 "Memory CRUD" and section 1, with exact bodies."""

from __future__ import annotations

from typing import Any

import pytest

from memorywall.records.principal import Permission, PrincipalKind
from tests.http.checks import (
    ADMINISTRATOR,
    MARKER,
    MEMORY,
    assert_problem,
    everything,
    keys_of,
    make,
    value_of_size,
)
from tests.support.service import RunningService, draft

pytestmark = pytest.mark.anyio

BORN = "2026-02-02T02:40:00.000Z"
VALUE_LIMIT = 65_536


async def test_a_bare_create_answers_with_every_field(service: RunningService) -> None:
    agent = await service.agent("billing")
    response = await agent.post(
        MEMORY,
        json={
            "namespace": "billing.invoices/2026",
            "key": "batch progress",
            "value": {"total": 47, "errors": []},
            "memory_type": "working",
        },
    )
    assert response.status_code == 201, response.text
    entry = response.json()
    entry_id = entry.pop("id")
    assert entry_id.startswith("mem_")
    assert entry == {
        "agent_id": "billing",
        "namespace": "billing.invoices/2026",
        "key": "batch progress",
        "value": {"total": 47, "errors": []},
        "memory_type": "working",
        "scope": {},
        "tags": [],
        "ttl": None,
        "version": 1,
        "pinned": False,
        "priority": "normal",
        "sensitivity": "internal",
        "created_at": BORN,
        "updated_at": BORN,
        "expires_at": None,
        "created_by": "billing",
        "provenance": {"principal": "billing", "kind": "agent", "origin": "agent"},
    }
    assert response.headers["content-type"] == "application/json"
    assert response.headers["location"] == f"{MEMORY}/{entry_id}"
    assert response.headers["etag"] == '"1"'
    assert response.headers["cache-control"] == "no-store"


async def test_a_full_create_keeps_every_field(service: RunningService) -> None:
    agent = await service.agent("billing")
    given: dict[str, Any] = {
        "agent_id": "billing",
        "namespace": "learned",
        "key": "stripe",
        "value": {"deep": {"list": [1, 2.5, None, True, "é\u202e\x00"]}, "": {}},
        "memory_type": "episodic",
        "scope": {"task_id": "task_1", "intent_id": "intent_1", "session_id": "session_1"},
        "tags": ["b", "a", "in-progress"],
        "ttl": "duration:PT24H",
        "expires_at": "2026-02-10T12:00:00+02:00",
        "pinned": True,
        "priority": "high",
        "sensitivity": "public",
    }
    made = await make(agent, **given)
    stored = (await agent.get(f"{MEMORY}/{made['id']}")).json()
    assert stored == made
    assert {name: stored[name] for name in given} == {
        **given,
        "expires_at": "2026-02-10T10:00:00.000Z",
    }


async def test_repeated_tags_are_kept_once_in_order(service: RunningService) -> None:
    agent = await service.agent("billing")
    assert (await make(agent, tags=["b", "a", "b"]))["tags"] == ["b", "a"]


@pytest.mark.parametrize(
    ("kind", "authority"),
    [(PrincipalKind.USER, "human_curated"), (PrincipalKind.AGENT, "agent_learned")],
    ids=["user", "agent"],
)
async def test_semantic_entries_name_their_curator(
    service: RunningService, kind: PrincipalKind, authority: str
) -> None:
    curator = await service.agent("curator", kind=kind)
    entry = await make(curator, memory_type="semantic", namespace="policies")
    assert entry["curated_by"] == "curator"
    assert entry["created_by"] == "curator"
    assert entry["provenance"] == {
        "principal": "curator",
        "kind": kind.value,
        "authority": authority,
        "origin": kind.value,
    }


@pytest.mark.parametrize("tier", ["working", "session", "episodic", "semantic", "procedural"])
async def test_every_tier_accepts_an_entry(service: RunningService, tier: str) -> None:
    agent = await service.agent("billing")
    assert (await make(agent, memory_type=tier))["memory_type"] == tier


async def test_a_change_replaces_the_given_fields_whole_and_no_other(
    service: RunningService,
) -> None:
    agent = await service.agent("billing")
    made = await make(
        agent,
        value={"old": 1, "kept": 2},
        tags=["one", "two"],
        scope={"task_id": "t", "intent_id": "i"},
        priority="high",
    )
    path = f"{MEMORY}/{made['id']}"
    service.clock.advance(60)
    response = await agent.patch(
        path, json={"value": {"new": 1}, "scope": {"task_id": "u"}}, headers={"If-Match": "1"}
    )
    assert response.status_code == 200, response.text
    assert response.headers["etag"] == '"2"'
    assert response.json() == {
        **made,
        "value": {"new": 1},
        "scope": {"task_id": "u"},
        "version": 2,
        "updated_at": "2026-02-02T02:41:00.000Z",
        "provenance": {**made["provenance"], "task": "u"},
    }
    assert (await agent.get(path)).json() == response.json()
    untagged = await agent.patch(path, json={"tags": []}, headers={"If-Match": "2"})
    assert untagged.json()["tags"] == []
    assert untagged.json()["value"] == {"new": 1}


@pytest.mark.parametrize(
    "field",
    [
        {"id": "mem_1"},
        {"agent_id": "billing"},
        {"memory_type": "semantic"},
        {"namespace": "other"},
        {"key": "other"},
        {"created_at": BORN},
        {"created_by": "other"},
        {"curated_by": "other"},
        {"provenance": {}},
        {"version": 7},
    ],
    ids=lambda field: next(iter(field)),
)
async def test_immutable_field_cannot_be_sent(
    service: RunningService, field: dict[str, Any]
) -> None:
    agent = await service.agent("billing")
    made = await make(agent)
    before = await everything(service)
    response = await agent.patch(
        f"{MEMORY}/{made['id']}", json={"value": {}, **field}, headers={"If-Match": "1"}
    )
    document = assert_problem(response, 422, "VALIDATION_ERROR")
    assert next(iter(field)) in document["detail"]
    assert await everything(service) == before


async def test_an_empty_change_is_refused(service: RunningService) -> None:
    agent = await service.agent("billing")
    made = await make(agent)
    response = await agent.patch(f"{MEMORY}/{made['id']}", json={}, headers={"If-Match": "1"})
    assert_problem(response, 422, "VALIDATION_ERROR")
    assert (await agent.get(f"{MEMORY}/{made['id']}")).json() == made


async def test_deletion_is_immediate_and_irreversible(service: RunningService) -> None:
    agent = await service.agent("billing")
    made = await make(agent, tags=["x"])
    path = f"{MEMORY}/{made['id']}"
    response = await agent.delete(path)
    assert response.status_code == 204
    assert response.content == b""
    assert_problem(await agent.get(path), 404, "ENTRY_NOT_FOUND")
    assert_problem(await agent.delete(path), 404, "ENTRY_NOT_FOUND")
    change = await agent.patch(path, json={"value": {}}, headers={"If-Match": "1"})
    assert_problem(change, 404, "ENTRY_NOT_FOUND")
    assert await keys_of(agent, tags="x") == []
    again = await make(agent)
    assert again["id"] != made["id"]
    assert again["version"] == 1


async def test_a_delete_may_name_the_version_it_means(service: RunningService) -> None:
    agent = await service.agent("billing")
    made = await make(agent)
    path = f"{MEMORY}/{made['id']}"
    late = assert_problem(await agent.delete(path, headers={"If-Match": "2"}), 409)
    assert late["error"] == "VERSION_MISMATCH"
    assert late["current_version"] == 1
    assert late["current"] == made
    assert (await agent.delete(path, headers={"If-Match": '"1"'})).status_code == 204


@pytest.mark.parametrize("tier", ["working", "session", "episodic", "semantic", "procedural"])
async def test_name_is_unique_in_its_tier(service: RunningService, tier: str) -> None:
    agent = await service.agent("billing")
    made = await make(agent, memory_type=tier)
    before = await everything(service)
    response = await agent.post(MEMORY, json=draft(memory_type=tier, value={"other": 1}))
    document = assert_problem(response, 409, "ENTRY_EXISTS")
    assert document["current_version"] == 1
    assert document["current"] == made
    assert await everything(service) == before


async def test_tiers_and_agents_do_not_take_each_others_names(service: RunningService) -> None:
    first, second = await service.agent("first"), await service.agent("second")
    for tier in ("working", "episodic", "semantic"):
        await make(first, memory_type=tier)
    for tier in ("working", "episodic"):
        await make(second, memory_type=tier)
    foreign = await service.agent("first", tenant="elsewhere")
    await make(foreign, memory_type="semantic")


async def test_a_semantic_name_is_shared_by_all_agents(service: RunningService) -> None:
    admin = await service.agent("admin", permissions=ADMINISTRATOR)
    made = await make(admin, memory_type="semantic", namespace="facts")
    writer = await service.agent("writer")
    await admin.patch(
        "/api/v1/memory/namespaces/facts",
        json={"permissions": {"allow": [{"agent": "writer", "access": "write"}]}},
    )
    response = await writer.post(MEMORY, json=draft(memory_type="semantic", namespace="facts"))
    document = assert_problem(response, 409, "ENTRY_EXISTS")
    assert document["current"] == made


async def test_conflict_reveals_nothing_when_caller_may_not_read(service: RunningService) -> None:
    admin = await service.agent("admin", permissions=ADMINISTRATOR)
    made = await make(admin, memory_type="semantic", namespace="facts", value={"text": MARKER})
    writer = await service.agent("writer", permissions=[Permission.WRITE])
    await admin.patch(
        "/api/v1/memory/namespaces/facts",
        json={"permissions": {"allow": [{"agent": "writer", "access": "write"}]}},
    )
    clash = await writer.post(MEMORY, json=draft(memory_type="semantic", namespace="facts"))
    late = await writer.patch(
        f"{MEMORY}/{made['id']}", json={"tags": []}, headers={"If-Match": "9"}
    )
    for response, error in ((clash, "ENTRY_EXISTS"), (late, "VERSION_MISMATCH")):
        document = assert_problem(response, 409, error)
        assert "current" not in document
        assert "current_version" not in document
        assert MARKER not in response.text


async def test_update_returns_no_value_when_caller_may_not_read(service: RunningService) -> None:
    admin = await service.agent("admin", permissions=ADMINISTRATOR)
    made = await make(admin, memory_type="semantic", namespace="facts", value={"text": MARKER})
    await admin.patch(
        "/api/v1/memory/namespaces/facts",
        json={"permissions": {"allow": [{"agent": "writer", "access": "write"}]}},
    )
    writer = await service.agent("writer", permissions=[Permission.WRITE])
    changed = await writer.patch(
        f"{MEMORY}/{made['id']}", json={"tags": ["seen"]}, headers={"If-Match": "1"}
    )
    assert MARKER not in changed.text
    element = {"id": made["id"], "version": 2, "tags": ["again"]}
    batch = await writer.post(f"{MEMORY}/batch", json={"entries": [element]})
    assert MARKER not in batch.text


@pytest.mark.parametrize("excess", [-1, 0], ids=["one-below", "exactly"])
async def test_a_value_of_up_to_64_kb_is_kept(service: RunningService, excess: int) -> None:
    agent = await service.agent("billing")
    value = value_of_size(VALUE_LIMIT + excess)
    made = await make(agent, value=value)
    assert made["value"] == value
    changed = await agent.patch(
        f"{MEMORY}/{made['id']}", json={"value": value}, headers={"If-Match": "1"}
    )
    assert changed.status_code == 200, changed.text
    summary = (await agent.get("/api/v1/agents/billing/memory/summary")).json()
    assert summary["working"]["total_size_kb"] == 64


@pytest.mark.parametrize("sensitivity", ["internal", "restricted"])
async def test_a_value_over_64_kb_is_refused_with_the_way_out(
    service: RunningService, sensitivity: str
) -> None:
    agent = await service.agent("billing")
    made = await make(agent, "small", sensitivity=sensitivity)
    before = await everything(service)
    value = value_of_size(VALUE_LIMIT + 1)
    path = f"{MEMORY}/{made['id']}"
    element = {"id": made["id"], "version": 1, "value": value}
    for response in (
        await agent.post(MEMORY, json=draft(value=value, sensitivity=sensitivity)),
        await agent.patch(path, json={"value": value}, headers={"If-Match": "1"}),
        await agent.post(f"{MEMORY}/batch", json={"entries": [element]}),
    ):
        document = assert_problem(response, 413, "VALUE_TOO_LARGE")
        assert "attachment" in document["detail"]
        assert "xxxx" not in response.text
    assert await everything(service) == before


async def test_the_limit_counts_bytes_not_characters(service: RunningService) -> None:
    agent = await service.agent("billing")
    empty = len('{"text":""}')
    fits = {"text": "é" * ((VALUE_LIMIT - empty) // 2)}
    await make(agent, value=fits)
    over = {"text": fits["text"] + "é"}
    assert_problem(await agent.post(MEMORY, json=draft("over", value=over)), 413)


async def test_refusal_of_a_far_too_large_value_names_attachments(service: RunningService) -> None:
    agent = await service.agent("billing")
    response = await agent.post(MEMORY, json=draft(value=value_of_size(2_000_000)))
    document = assert_problem(response, 413, "VALUE_TOO_LARGE")
    assert "attachment" in document["detail"]
    assert await keys_of(agent) == []
