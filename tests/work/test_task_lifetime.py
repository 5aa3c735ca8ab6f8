"""Entries that end with their task (RFC-0015 section 1.1, `task_lifetime`), and for good (9.3)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.http.checks import (
    MEMORY,
    assert_problem,
    events_of,
    everything,
    until_erased,
)
from tests.support.service import open_service
from tests.support.stored import places_holding
from tests.work.crew import Crew, crew_of, note, ok, remember

pytestmark = pytest.mark.anyio

LIFETIME = "task_lifetime"
PLACES: dict[str, dict[str, Any]] = {
    "session": {"memory_type": "session"},
    "episodic": {"memory_type": "episodic"},
    "semantic": {"memory_type": "semantic", "namespace": "facts"},
    "procedural": {"memory_type": "procedural", "namespace": "ways"},
    "shared": {"memory_type": "shared", "namespace": "shared/global"},
}


async def _end(crew: Crew, task_id: str, ending: str) -> None:
    if ending == "completed":
        await crew.change(crew.chief, task_id, status="claimed")
    await crew.change(crew.chief, task_id, status=ending)


@pytest.mark.parametrize("ending", ["completed", "cancelled", "skipped"])
async def test_working_memory_of_a_tasks_lifetime_is_archived(crew: Crew, ending: str) -> None:
    # 2.1 says that all working memory is snapshotted when its task ends, and its lifetime is the
    # task's anyway: the archive is how it ends, and a second ending would count it twice.
    task = await crew.task(assigned_agent="a")
    await remember(crew.a, task["id"], ttl=LIFETIME)
    await _end(crew, task["id"], ending)
    (archive,) = await crew.log(event_type="memory.archived")
    assert archive["data"]["entries_archived"] == 1
    assert await crew.log(event_type="memory.expired") == []
    assert (await everything(crew.service)).entries == ()


@pytest.mark.parametrize("tier", PLACES)
async def test_other_memory_of_a_tasks_lifetime_expires_with_it(crew: Crew, tier: str) -> None:
    task = await crew.task(assigned_agent="a")
    ends = await remember(crew.a, task["id"], "ends", ttl=LIFETIME, **PLACES[tier])
    stays = await remember(crew.a, task["id"], "stays", **PLACES[tier])
    other = await crew.task("other", assigned_agent="a")
    elsewhere = await remember(crew.a, other["id"], "elsewhere", ttl=LIFETIME, **PLACES[tier])
    await _end(crew, task["id"], "completed")
    assert_problem(await crew.a.get(f"{MEMORY}/{ends['id']}"), 404)
    for entry in (stays, elsewhere):
        assert ok(await crew.a.get(f"{MEMORY}/{entry['id']}"))["id"] == entry["id"]
    (expired,) = await crew.log(event_type="memory.expired")
    assert expired["data"]["entry_id"] == ends["id"]
    assert (expired["task_id"], expired["actor"]) == (task["id"], "system")
    assert await crew.log(event_type="memory.archived") == []


async def test_its_agents_stream_tells_of_the_end(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a")
    await remember(crew.a, task["id"], ttl=LIFETIME, memory_type="episodic")
    await _end(crew, task["id"], "skipped")
    kinds = [one["type"] for one in await events_of(crew.a, "a")]
    assert kinds.count("memory.expired") == 1


async def test_an_instant_comes_before_the_lifetime_of_the_task(crew: Crew) -> None:
    # 1.1: `expires_at` takes precedence over `ttl`; whatever comes first, the task's end is one.
    task = await crew.task(assigned_agent="a")
    entry = await remember(
        crew.a,
        task["id"],
        ttl=LIFETIME,
        expires_at="2026-02-02T02:40:30Z",
        memory_type="episodic",
    )
    crew.service.clock.advance(29)
    ok(await crew.a.get(f"{MEMORY}/{entry['id']}"))
    crew.service.clock.advance(1)
    assert_problem(await crew.a.get(f"{MEMORY}/{entry['id']}"), 404)


async def test_without_a_task_a_tasks_lifetime_has_no_end(crew: Crew) -> None:
    body = note("task_of_nobody", ttl=LIFETIME, memory_type="episodic")
    entry = ok(await crew.a.post(MEMORY, json=body), 201)
    crew.service.clock.advance(10**8)
    assert ok(await crew.a.get(f"{MEMORY}/{entry['id']}")) == entry


@pytest.mark.parametrize("tier", ["episodic", "session"])
async def test_nothing_is_given_the_lifetime_of_a_task_that_is_over(crew: Crew, tier: str) -> None:
    task = await crew.task(assigned_agent="a")
    await _end(crew, task["id"], "completed")
    body = note(task["id"], ttl=LIFETIME, memory_type=tier)
    response = await crew.a.post(MEMORY, json=body)
    # It would have ended already, and no end will come by any more to take it away.
    assert response.status_code in (403, 409, 422), response.text
    assert (await everything(crew.service)).entries == ()


async def test_memory_deleted_with_its_task_leaves_the_files(tmp_path: Path) -> None:
    marker = "marker-that-must-go"
    async with open_service(tmp_path, erasure_deadline=0.2) as service:
        crew = await crew_of(service)
        task = await crew.task(assigned_agent="a", memory_policy={"archive_on_completion": False})
        await remember(crew.a, task["id"], value={"text": marker})
        await remember(crew.a, task["id"], ttl=LIFETIME, value={"text": marker}, **PLACES["shared"])
        assert places_holding(tmp_path, marker.encode()) != []
        await crew.change(crew.chief, task["id"], status="skipped")
        assert (await everything(service)).entries == ()
        await until_erased(service)
        assert places_holding(tmp_path, marker.encode()) == []
