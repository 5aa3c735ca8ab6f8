"""Lifecycle events and an agent's stream: RFC-0015 section 5."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from memorywall.records.principal import Permission
from tests.http.checks import (
    ADMINISTRATOR,
    BATCH,
    MARKER,
    MEMORY,
    NAMESPACES,
    assert_problem,
    brief,
    events_of,
    make,
)
from tests.support.rounds import sweep
from tests.support.service import RunningService, draft, open_service

pytestmark = pytest.mark.anyio

EVENTS = "/api/v1/agents/ada/events"


async def test_an_event_has_both_sets_of_names_and_nothing_else(service: RunningService) -> None:
    agent = await service.agent("ada")
    made = await make(
        agent, tags=["a", "b"], scope={"task_id": "t1", "intent_id": "i1", "session_id": "s1"}
    )
    service.clock.advance(1)
    changed = await agent.patch(
        f"{MEMORY}/{made['id']}", json={"tags": ["c"]}, headers={"If-Match": "1"}
    )
    assert changed.is_success
    page = (await agent.get(EVENTS)).json()
    data = {
        "entry_id": made["id"],
        "namespace": "invoices",
        "key": "progress",
        "memory_type": "working",
        "version": 1,
        "tags": ["a", "b"],
    }
    created = {
        "id": page["events"][0]["id"],
        "seq": 1,
        "type": "memory.created",
        "event_type": "memory.created",
        "agent_id": "ada",
        "actor": "ada",
        "intent_id": "i1",
        "task_id": "t1",
        "data": data,
        "payload": data,
        "timestamp": "2026-02-02T02:40:00.000Z",
        "created_at": "2026-02-02T02:40:00.000Z",
    }
    data = {**data, "version": 2, "previous_version": 1, "tags": ["c"]}
    updated = {
        **created,
        "id": page["events"][1]["id"],
        "seq": 2,
        "type": "memory.updated",
        "event_type": "memory.updated",
        "data": data,
        "payload": data,
        "timestamp": "2026-02-02T02:40:01.000Z",
        "created_at": "2026-02-02T02:40:01.000Z",
    }
    assert page == {"events": [created, updated], "next": 2}
    assert created["id"] != updated["id"]


async def test_an_event_without_a_context_names_none(service: RunningService) -> None:
    agent = await service.agent("ada")
    await make(agent, memory_type="episodic")
    (event,) = await events_of(agent, "ada")
    assert not {"task_id", "intent_id"} & event.keys()
    assert "previous_version" not in event["data"]


async def test_every_way_an_entry_ends_is_told(tmp_path: Path) -> None:
    async with open_service(tmp_path, episodic_capacity=1) as service:
        agent = await service.agent("ada")
        deleted = await make(agent, "deleted", tags=["x"], scope={"task_id": "t"})
        await agent.delete(f"{MEMORY}/{deleted['id']}")
        await make(agent, "evicted", memory_type="episodic", tags=["y"])
        await make(agent, "stays", memory_type="episodic")
        await make(agent, "expired", ttl="duration:PT1S", tags=["z"])
        service.clock.advance(1)
        await sweep(service.services)
        events = {one["type"]: one for one in await events_of(agent, "ada")}
        ends = {
            "memory.deleted": ("deleted", "ada", "working", ["x"]),
            "memory.evicted": ("evicted", "system", "episodic", ["y"]),
            "memory.expired": ("expired", "system", "working", ["z"]),
        }
        for kind, (key, actor, tier, tags) in ends.items():
            event = events[kind]
            assert event["event_type"] == kind
            assert (event["agent_id"], event["actor"]) == ("ada", actor)
            data = event["data"]
            assert event["payload"] == data
            assert (data["key"], data["memory_type"], data["tags"]) == (key, tier, tags)
            assert (data["version"], data["namespace"]) == (1, "invoices")
        assert events["memory.deleted"]["task_id"] == "t"
        assert events["memory.deleted"]["data"]["entry_id"] == deleted["id"]


async def test_a_refused_change_leaves_no_event(service: RunningService) -> None:
    agent = await service.agent("ada")
    made = await make(agent)
    path = f"{MEMORY}/{made['id']}"
    other = await service.agent("other")
    for response in (
        await agent.post(MEMORY, json=draft()),
        await agent.patch(path, json={"value": {}}, headers={"If-Match": "2"}),
        await agent.delete(path, headers={"If-Match": "2"}),
        await other.delete(path),
        await agent.post(BATCH, json={"entries": [draft("a"), draft("a")]}),
    ):
        assert response.is_error
    assert brief(await events_of(agent, "ada")) == [("memory.created", "progress", 1)]
    assert await events_of(other, "other") == []


async def test_reads_leave_no_event(service: RunningService) -> None:
    agent = await service.agent("ada")
    made = await make(agent, memory_type="episodic")
    for path in (f"{MEMORY}/{made['id']}", MEMORY, f"{MEMORY}/export", "/api/v1/agents/ada/memory"):
        assert (await agent.get(path)).is_success
    assert len(await events_of(agent, "ada")) == 1


async def test_stream_contains_own_changes_of_shared_memory(service: RunningService) -> None:
    founder = await service.agent("founder", permissions=ADMINISTRATOR)
    made = await make(founder, memory_type="semantic", namespace="facts")
    grant = {"permissions": {"allow": [{"agent": "editor", "access": "write"}]}}
    assert (await founder.patch(f"{NAMESPACES}/facts", json=grant)).is_success
    editor = await service.agent("editor")
    changed = await editor.patch(
        f"{MEMORY}/{made['id']}", json={"tags": ["x"]}, headers={"If-Match": "1"}
    )
    assert changed.is_success
    (event,) = await events_of(editor, "editor")
    assert (event["type"], event["agent_id"], event["actor"]) == (
        "memory.updated", "editor", "editor",
    )  # fmt: skip
    assert brief(await events_of(founder, "founder")) == [("memory.created", "progress", 1)]


async def test_impersonating_principal_is_the_actor(service: RunningService) -> None:
    key = await service.key("runner", permissions=[*ADMINISTRATOR, Permission.ACT_AS])
    runner = service.client(key, agent="ada")
    await make(runner)
    (event,) = await events_of(runner, "ada")
    assert (event["agent_id"], event["actor"]) == ("ada", "runner")


async def test_pages_continue_after_the_last_one(service: RunningService) -> None:
    agent, other = await service.agent("ada"), await service.agent("other")
    for number in range(7):
        await make(agent, f"k{number}")
        await make(other, f"k{number}")
    after = 0
    seen: list[str] = []
    for _ in range(4):
        page = (await agent.get(EVENTS, params={"after": after, "limit": 2})).json()
        assert len(page["events"]) <= 2
        seen.extend(one["data"]["key"] for one in page["events"])
        after = page["next"]
    assert seen == [f"k{number}" for number in range(7)]
    end = (await agent.get(EVENTS, params={"after": after})).json()
    assert end == {"events": [], "next": after}
    seqs = [one["seq"] for one in await events_of(agent, "ada")]
    assert seqs == sorted(set(seqs))


async def test_a_page_has_a_hundred_events_unless_told(service: RunningService) -> None:
    agent = await service.agent("ada")
    elements = [draft(f"k{number}") for number in range(101)]
    assert (await agent.post(BATCH, json={"entries": elements})).is_success
    assert len((await agent.get(EVENTS)).json()["events"]) == 100
    assert len((await agent.get(EVENTS, params={"limit": 1_000})).json()["events"]) == 101


async def test_anothers_stream_is_refused(service: RunningService) -> None:
    await make(await service.agent("ada"))
    other = await service.agent("other", permissions=[*ADMINISTRATOR, Permission.TENANT_ADMIN])
    for headers in ({}, {"Accept": "text/event-stream"}):
        assert_problem(await other.get(EVENTS, headers=headers), 403, "ACCESS_DENIED")
    writer = await service.agent("ada", permissions=[Permission.WRITE])
    assert_problem(await writer.get(EVENTS), 403, "ACCESS_DENIED")
    foreign = await service.agent("ada", tenant="elsewhere")
    assert await events_of(foreign, "ada") == []


@pytest.mark.parametrize(
    "header", ["abc", "-1", "1.5", "9" * 30, "evt_1", "1;2", MARKER], ids=lambda text: text[:8]
)
async def test_invalid_last_event_id_is_refused(service: RunningService, header: str) -> None:
    agent = await service.agent("ada")
    headers = {"Accept": "text/event-stream", "Last-Event-ID": header}
    response = await agent.get(EVENTS, headers=headers)
    assert_problem(response, 400, "VALIDATION_ERROR")
    assert MARKER not in response.text


@pytest.mark.parametrize("sensitivity", ["public", "internal", "confidential", "restricted"])
async def test_values_stand_in_no_event_and_no_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, sensitivity: str
) -> None:
    caplog.set_level(logging.DEBUG)
    secret: dict[str, Any] = {"value": {MARKER: MARKER}, "sensitivity": sensitivity}
    async with open_service(tmp_path, episodic_capacity=1) as service:
        agent = await service.agent("ada")
        made = await make(agent, "deleted", **secret)
        path = f"{MEMORY}/{made['id']}"
        assert (await agent.patch(path, json=secret, headers={"If-Match": "1"})).is_success
        await agent.patch(path, json=secret, headers={"If-Match": "1"})
        await agent.post(MEMORY, json=draft("deleted", **secret))
        await agent.delete(path)
        for name in ("evicted", "stays"):
            await make(agent, name, memory_type="episodic", **secret)
        await make(agent, "expired", ttl="duration:PT1S", **secret)
        elements = [draft("batch", **secret)]
        await agent.post(BATCH, json={"entries": elements}, headers={"Idempotency-Key": "k"})
        service.clock.advance(1)
        await sweep(service.services)
        response = await agent.get(EVENTS, params={"limit": 1_000})
        kinds = {one["type"] for one in response.json()["events"]}
        assert kinds == {
            "memory.created",
            "memory.updated",
            "memory.deleted",
            "memory.evicted",
            "memory.expired",
        }
        assert MARKER not in response.text
    assert MARKER not in caplog.text
    assert not [record for record in caplog.records if MARKER in str(vars(record))]
