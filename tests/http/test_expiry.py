"""`ttl`, `expires_at` and the sweep: RFC-0015 sections 1.1 and 9.3."""

from __future__ import annotations

from typing import Any

import pytest

from tests.http.checks import (
    BATCH,
    MARKER,
    MEMORY,
    assert_problem,
    brief,
    events_of,
    everything,
    keys_of,
    make,
)
from tests.support.rounds import sweep
from tests.support.service import RunningService, draft

pytestmark = pytest.mark.anyio

MINUTE = {"ttl": "duration:PT1M"}


@pytest.mark.parametrize(
    ("given", "expires_at"),
    [
        ({}, None),
        ({"ttl": None}, None),
        ({"ttl": "task_lifetime"}, None),
        ({"ttl": "duration:PT24H"}, "2026-02-03T02:40:00.000Z"),
        ({"ttl": "duration:PT90M"}, "2026-02-02T04:10:00.000Z"),
        ({"ttl": "duration:PT0.5S"}, "2026-02-02T02:40:00.500Z"),
        ({"ttl": "duration:P1D"}, "2026-02-03T02:40:00.000Z"),
        ({"ttl": "duration:P1DT1H1M1S"}, "2026-02-03T03:41:01.000Z"),
        ({"ttl": "duration:P2W"}, "2026-02-16T02:40:00.000Z"),
        ({"ttl": "duration:P999999999D"}, "9999-12-31T23:59:59.999Z"),
        ({"expires_at": "2026-03-01T00:00:00Z"}, "2026-03-01T00:00:00.000Z"),
        ({"expires_at": "2026-03-01T01:00:00.25+01:00"}, "2026-03-01T00:00:00.250Z"),
        ({"ttl": "duration:PT1H", "expires_at": "2026-03-01T00:00:00Z"},
         "2026-03-01T00:00:00.000Z"),
        ({"ttl": "duration:P99D", "expires_at": "2026-02-03T00:00:00Z"},
         "2026-02-03T00:00:00.000Z"),
        ({"ttl": "task_lifetime", "expires_at": "2026-02-03T00:00:00Z"},
         "2026-02-03T00:00:00.000Z"),
    ],
    ids=lambda part: " ".join(f"{name}={text}" for name, text in part.items()) or "none"
    if isinstance(part, dict) else "",
)  # fmt: skip
async def test_the_end_is_reckoned_and_expires_at_wins(
    service: RunningService, given: dict[str, Any], expires_at: str | None
) -> None:
    agent = await service.agent("ada")
    made = await make(agent, **given)
    assert made["expires_at"] == expires_at
    assert made["ttl"] == given.get("ttl")


@pytest.mark.parametrize(
    ("ttl", "stored"),
    [("PT1H", "PT1H"), ("30m", "PT30M"), ("60", "PT60S"), ("2d", "P2D"), ("duration:1h", "PT1H")],
)
async def test_a_lifetime_may_be_written_as_on_the_command_line(
    service: RunningService, ttl: str, stored: str
) -> None:
    agent = await service.agent("ada")
    made = await make(agent, ttl=ttl)
    assert made["ttl"] == f"duration:{stored}"
    path, headers = f"{MEMORY}/{made['id']}", {"If-Match": "1"}
    changed = await agent.patch(path, json={"ttl": ttl}, headers=headers)
    assert changed.json()["ttl"] == f"duration:{stored}"
    session = {"ttl": ttl, "idle_timeout": "30m", "policy": {"retention": "90d"}}
    refused = ttl.startswith("duration:")
    answer = await agent.post("/api/v1/sessions", json=session)
    assert answer.status_code == (422 if refused else 201), answer.text
    if not refused:
        shown = answer.json()
        assert (shown["idle_timeout"], shown["policy"]["retention"]) == ("PT30M", "P90D")
        path = f"/api/v1/sessions/{shown['id']}"
        changed = await agent.patch(path, json={"idle_timeout": "2h"})
        assert changed.json()["idle_timeout"] == "PT2H", changed.text


@pytest.mark.parametrize(
    "given",
    [
        {"ttl": "forever"}, {"ttl": ""}, {"ttl": "duration:"}, {"ttl": "duration:P"},
        {"ttl": "duration:PT"}, {"ttl": "duration:P1Y"}, {"ttl": "duration:P1M"},
        {"ttl": "duration:PT0S"}, {"ttl": "duration:-PT1H"}, {"ttl": "duration:PT1H "},
        {"ttl": "duration:PT\u0661H"}, {"ttl": "duration:P" + "9" * 400 + "D"},
        {"ttl": "Duration:PT1H"}, {"ttl": 60}, {"ttl": f"duration:{MARKER}"},
        {"expires_at": "2026-02-02T02:40:00Z"}, {"expires_at": "2020-01-01T00:00:00Z"},
        {"expires_at": "2026-03-01"}, {"expires_at": "2026-03-01T00:00:00"},
        {"expires_at": "2026-02-30T00:00:00Z"}, {"expires_at": "soon"}, {"expires_at": ""},
        {"expires_at": 1_800_000_000}, {"expires_at": "0001-01-01T00:00:00+23:59"},
        {"expires_at": "9999-12-31T23:59:59-23:59"}, {"expires_at": MARKER},
        {"ttl": "nonsense", "expires_at": "2026-03-01T00:00:00Z"},
    ],
    ids=lambda given: " ".join(f"{name}={text}" for name, text in given.items())[:40],
)  # fmt: skip
async def test_an_end_that_makes_no_sense_is_refused(
    service: RunningService, given: dict[str, Any]
) -> None:
    agent = await service.agent("ada")
    made = await make(agent, "old")
    before = await everything(service)
    path = f"{MEMORY}/{made['id']}"
    for response in (
        await agent.post(MEMORY, json=draft(**given)),
        await agent.patch(path, json=given, headers={"If-Match": "1"}),
    ):
        document = assert_problem(response, 422, "VALIDATION_ERROR")
        assert next(iter(given)) in document["detail"]
        assert MARKER not in response.text
    assert await everything(service) == before


async def test_an_entry_lives_up_to_its_end_and_not_a_millisecond_longer(
    service: RunningService,
) -> None:
    agent = await service.agent("ada")
    made = await make(agent, **MINUTE)
    path = f"{MEMORY}/{made['id']}"
    service.clock.advance(59.999)
    assert (await agent.get(path)).status_code == 200
    service.clock.advance(0.001)
    assert_problem(await agent.get(path), 404, "ENTRY_NOT_FOUND")


@pytest.mark.parametrize("tier", ["working", "session", "episodic", "semantic", "procedural"])
async def test_an_expired_entry_is_invisible_everywhere_at_once(
    service: RunningService, tier: str
) -> None:
    agent = await service.agent("ada")
    ends = {"memory_type": tier, "tags": ["x"], "scope": {"task_id": "t"}, "pinned": True}
    made = await make(agent, "ends", **ends, **MINUTE)
    stays = await make(agent, "stays", **ends)
    path = f"{MEMORY}/{made['id']}"
    service.clock.advance(60)
    before = await everything(service)
    assert_problem(await agent.get(path), 404, "ENTRY_NOT_FOUND")
    change = await agent.patch(path, json={"value": {}}, headers={"If-Match": "1"})
    assert_problem(change, 404, "ENTRY_NOT_FOUND")
    assert_problem(await agent.delete(path), 404, "ENTRY_NOT_FOUND")
    element = {"id": made["id"], "version": 1, "value": {}}
    batch = await agent.post(BATCH, json={"entries": [element]})
    assert assert_problem(batch, 404, "ENTRY_NOT_FOUND")["index"] == 0
    for query in (
        {}, {"tags": "x"}, {"tags_any": "x"}, {"scope.task_id": "t"}, {"namespace": "inv*"},
        {"pinned": "true"}, {"agent_id": "ada", "memory_type": tier},
    ):  # fmt: skip
        assert await keys_of(agent, **query) == ["stays"], query
    assert await keys_of(agent, key="ends") == []
    page = (await agent.get(MEMORY, params={"limit": 1, "offset": 1})).json()
    assert (page["entries"], page["total"]) == ([], 1)
    bare = (await agent.get("/api/v1/agents/ada/memory")).json()
    assert bare == [stays]
    exported = await agent.get(f"{MEMORY}/export")
    assert made["id"] not in exported.text
    removed = await agent.request("DELETE", BATCH, params={"key": "ends"})
    assert removed.json() == {"deleted": 0}
    assert await everything(service) == before


async def test_the_summary_leaves_out_what_has_expired(service: RunningService) -> None:
    agent = await service.agent("ada")
    for tier in ("working", "episodic"):
        big = {"text": "x" * 5_000}
        await make(agent, "ends", memory_type=tier, value=big, pinned=True,
                   scope={"task_id": "gone"}, **MINUTE)  # fmt: skip
        service.clock.advance(1)
        await make(agent, "stays", memory_type=tier, scope={"task_id": "here"})
    service.clock.advance(60)
    summary = (await agent.get("/api/v1/agents/ada/memory/summary")).json()
    assert summary["working"] == {
        "entry_count": 1, "total_size_kb": 1, "tasks_with_memory": ["here"]
    }  # fmt: skip
    assert summary["episodic"] == {
        "entry_count": 1,
        "capacity": 1_000,
        "pinned_count": 0,
        "total_size_kb": 1,
        "oldest_entry": "2026-02-02T02:40:02.000Z",
        "newest_entry": "2026-02-02T02:40:02.000Z",
    }


@pytest.mark.parametrize("swept", [False, True], ids=["unswept", "swept"])
async def test_the_name_of_an_expired_entry_is_free(service: RunningService, swept: bool) -> None:
    agent = await service.agent("ada")
    made = await make(agent, **MINUTE)
    service.clock.advance(60)
    if swept:
        assert await sweep(service.services) == 1
    again = await make(agent)
    assert again["id"] != made["id"]
    assert again["version"] == 1
    assert brief(await events_of(agent, "ada")) == [
        ("memory.created", "progress", 1),
        ("memory.expired", "progress", 1),
        ("memory.created", "progress", 1),
    ]


async def test_the_sweep_removes_what_has_expired_and_tells_of_it(service: RunningService) -> None:
    agent = await service.agent("ada")
    foreign = await service.agent("ada", tenant="elsewhere")
    for number in range(130):
        await make(agent, f"k{number:03}", **MINUTE)
    await make(foreign, "theirs", **MINUTE)
    await make(agent, "stays", ttl="duration:PT2M")
    shared = await make(agent, "fact", memory_type="semantic", namespace="facts", **MINUTE)
    assert await sweep(service.services) == 0
    service.clock.advance(60)
    assert await sweep(service.services) == 132
    assert await sweep(service.services) == 0
    left = await everything(service)
    assert [entry.key for entry in left.entries] == ["stays"]
    ends = [event for event in left.events if event.type == "memory.expired"]
    assert len(ends) == 132
    assert {event.actor for event in ends} == {"system"}
    assert {event.timestamp for event in ends} == {"2026-02-02T02:41:00.000Z"}
    assert shared["id"] in {event.entry_id for event in ends}
    stream = [one for one in await events_of(agent, "ada") if one["type"] == "memory.expired"]
    assert {one["data"]["key"] for one in stream} >= {f"k{number:03}" for number in range(130)}
    assert brief(await events_of(foreign, "ada"))[-1] == ("memory.expired", "theirs", 1)


async def test_a_change_can_move_the_end(service: RunningService) -> None:
    agent = await service.agent("ada")
    made = await make(agent, **MINUTE)
    path = f"{MEMORY}/{made['id']}"
    steps: list[tuple[dict[str, Any], str | None, str | None]] = [
        ({"value": {"n": 1}}, "duration:PT1M", "2026-02-02T02:41:00.000Z"),
        ({"ttl": "duration:PT1H"}, "duration:PT1H", "2026-02-02T03:40:20.000Z"),
        ({"expires_at": "2026-02-02T05:00:00Z"}, "duration:PT1H", "2026-02-02T05:00:00.000Z"),
        ({"tags": ["x"]}, "duration:PT1H", "2026-02-02T05:00:00.000Z"),
        ({"expires_at": None}, "duration:PT1H", "2026-02-02T03:40:50.000Z"),
        ({"ttl": None}, None, None),
        ({"ttl": "duration:PT5S", "expires_at": "2026-02-02T06:00:00Z"}, "duration:PT5S",
         "2026-02-02T06:00:00.000Z"),
        ({"ttl": None, "expires_at": None}, None, None),
    ]  # fmt: skip
    for version, (change, ttl, expires_at) in enumerate(steps, start=1):
        service.clock.advance(10)
        response = await agent.patch(path, json=change, headers={"If-Match": str(version)})
        assert response.status_code == 200, response.text
        assert (response.json()["ttl"], response.json()["expires_at"]) == (ttl, expires_at), change
    service.clock.advance(1_000_000)
    assert (await agent.get(path)).status_code == 200
