"""Following working memory through work: who is told what, and until when."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.http.checks import MEMORY
from tests.work.crew import Crew, note, ok, remember

pytestmark = pytest.mark.anyio


async def _told(client: httpx.AsyncClient, **wanted: Any) -> list[tuple[str, str]]:
    """Type and key of each event about an entry that the client may read."""
    page = ok(await client.get(f"{MEMORY}/changes", params={"after": 0, **wanted}))
    return [(one["type"].partition(".")[2], one["data"].get("key", "")) for one in page["events"]]


async def test_a_coordinator_follows_until_the_task_ends(crew: Crew) -> None:
    await crew.coordinate()
    task, taken = await crew.working("a")
    await remember(crew.a, task["id"], "plan", token=taken.token)
    gone = await remember(crew.a, task["id"], "gone", token=taken.token)
    headers = {"Fencing-Token": str(taken.token)}
    assert (await crew.a.delete(f"{MEMORY}/{gone['id']}", headers=headers)).status_code == 204
    await remember(crew.a, "task_of_nobody", "elsewhere")
    expected = [("created", "plan"), ("created", "gone"), ("deleted", "gone")]
    assert await _told(crew.chief) == expected
    assert await _told(crew.chief, **{"scope.task_id": task["id"]}) == expected
    assert await _told(crew.a) == [*expected, ("created", "elsewhere")]
    for client in (crew.b, crew.outsider):
        assert await _told(client) == []
    await crew.change(crew.a, task["id"], token=taken.token, status="completed")
    # The owner keeps access to what it wrote; access through the task has ended with it.
    assert await _told(crew.chief) == []
    assert await _told(crew.a, **{"scope.task_id": task["id"]}) == [*expected, ("archived", "")]


async def test_the_next_agent_of_a_task_follows_it(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a")
    await remember(crew.a, task["id"], "plan")
    assert await _told(crew.b) == []
    await crew.change(crew.chief, task["id"], assigned_agent="b")
    await remember(crew.b, task["id"], "next")
    assert await _told(crew.b) == [("created", "plan"), ("created", "next")]
    assert await _told(crew.a) == [("created", "plan")]


async def test_an_archive_shows_each_owner_its_own_entries_without_values(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a")
    mine = await remember(crew.a, task["id"], "mine", value={"secret": "s-1"})
    await crew.change(crew.chief, task["id"], assigned_agent="b")
    body = note(task["id"], "other", namespace="bills", value={"secret": "s-2"})
    ok(await crew.b.post(MEMORY, json=body), 201)
    await crew.change(crew.chief, task["id"], status="cancelled")

    async def archives(client: httpx.AsyncClient, **wanted: Any) -> list[dict[str, Any]]:
        params = {"after": 0, **wanted}
        page = ok(await client.get(f"{MEMORY}/changes", params=params))
        assert "s-1" not in str(page)
        assert "s-2" not in str(page)
        return [one["data"] for one in page["events"] if one["type"] == "memory.archived"]

    entry = {"entry_id": mine["id"], "namespace": "invoices", "key": "mine", "version": 1}
    assert await archives(crew.a) == [{"entries_archived": 1, "entries": [entry]}]
    assert await archives(crew.a, namespace="bills") == []
    assert await archives(crew.a, memory_type="semantic") == []
    (of_b,) = await archives(crew.b, namespace="bills")
    assert [one["key"] for one in of_b["entries"]] == ["other"]
    for client in (crew.chief, crew.outsider):
        assert await archives(client) == []
