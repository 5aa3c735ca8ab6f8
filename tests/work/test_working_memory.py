"""Working memory of a task: steps, ticks, items, overflow, and what is logged about them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.http.checks import MEMORY, assert_problem
from tests.support.rounds import judge_items
from tests.support.service import open_service
from tests.work.crew import TASKS, Crew, Taken, crew_of, ok, under

pytestmark = pytest.mark.anyio


class Worker:
    """The agent of a task, and the operations on its working memory."""

    def __init__(self, client: httpx.AsyncClient, taken: Taken) -> None:
        self.client = client
        self.path = f"{TASKS}/{taken.task['id']}/working"
        self.headers = under(taken.token)

    async def begin(self, goal: str = "", **policy: Any) -> dict[str, Any]:
        body = {"goal": goal, "policy": policy} if policy else {"goal": goal}
        response = await self.client.post(f"{self.path}/steps", json=body, headers=self.headers)
        begun: dict[str, Any] = ok(response, 201)
        return begun

    async def end(self) -> dict[str, Any]:
        response = await self.client.post(f"{self.path}/steps/end", headers=self.headers)
        ended: dict[str, Any] = ok(response)
        return ended

    async def tick(self) -> dict[str, Any]:
        ticked: dict[str, Any] = ok(
            await self.client.post(f"{self.path}/tick", headers=self.headers)
        )
        return ticked

    async def try_keep(self, name: str, content: Any, **fields: Any) -> httpx.Response:
        body = {"content": content, **fields}
        path = f"{self.path}/items/{name}"
        return await self.client.put(path, json=body, headers=self.headers)

    async def keep(self, name: str, content: Any, **fields: Any) -> dict[str, Any]:
        kept: dict[str, Any] = ok(await self.try_keep(name, content, **fields))
        return kept

    async def shown(self) -> dict[str, Any]:
        found: dict[str, Any] = ok(await self.client.get(self.path))
        return found

    async def explained(self) -> list[tuple[str, str, str, str | None]]:
        found = ok(await self.client.get(f"{self.path}/changes"))
        changes = [one["change"] for one in found["changes"]]
        return [
            (one["item"], one["action"], one["reason"], one.get("promotion")) for one in changes
        ]


def _names(shown: dict[str, Any]) -> list[str]:
    return [item["name"] for item in shown["items"]]


async def _worker(crew: Crew) -> Worker:
    _, taken = await crew.working()
    return Worker(crew.a, taken)


async def test_what_is_worth_keeping_of_a_step_outlasts_its_task(crew: Crew) -> None:
    worker = await _worker(crew)
    learned = "The export of the billing service fails on leap days; retry it a day later."
    await worker.begin("find the cause")
    await worker.keep("cause", learned)
    await worker.keep("table", {"rows": [1, 2, 3]})
    await worker.end()
    assert await judge_items(crew.service.services) == 2
    query = {"agent_id": "a", "memory_type": "episodic", "namespace": "remembered"}
    (kept,) = ok(await crew.a.get(MEMORY, params=query))["entries"]
    assert kept["value"] == {"text": learned}
    assert kept["provenance"]["source_tier"] == "working"
    answers = {item: answer for item, _, _, answer in await worker.explained() if answer}
    assert answers["cause"] == "yes: accepted"
    assert answers["table"].startswith("no: ")
    # The same again is no second memory.
    await worker.begin("look again")
    await worker.keep("cause", learned)
    await worker.end()
    assert await judge_items(crew.service.services) == 1
    assert ok(await crew.a.get(MEMORY, params=query))["total"] == 1


async def test_a_step_ends_with_the_marked_items_and_what_they_need(crew: Crew) -> None:
    worker = await _worker(crew)
    begun = await worker.begin("find the cause", budget=1_000)
    assert (begun["step"], begun["is_open"], begun["items"]) == (1, True, [])
    await worker.keep("facts", {"total": 47})
    await worker.keep("noise", "nothing of use")
    await worker.keep("hypothesis", "the total is wrong", depends_on=["facts"])
    marked = f"{worker.path}/items/hypothesis"
    ok(await worker.client.patch(marked, json={"carry_forward": True}, headers=worker.headers))
    ended = await worker.end()
    assert _names(ended) == ["facts", "hypothesis"]
    assert [one["reason"] for one in ended["changes"]] == ["step_boundary_eviction"]
    # The item waits until promotion was asked for, and counts no more.
    assert ended["tokens"] == sum(item["tokens"] for item in ended["items"])
    query = {"agent_id": "a", "kind": "scratch", "status": "leaving"}
    assert ok(await crew.a.get(MEMORY, params=query))["total"] == 1
    assert await judge_items(crew.service.services) == 1
    assert ok(await crew.a.get(MEMORY, params=query))["total"] == 0
    assert await judge_items(crew.service.services) == 0
    assert await worker.explained() == [
        ("noise", "evicted", "step_boundary_eviction", None),
        ("noise", "evicted", "step_boundary_eviction", "no: progress"),
    ]
    # A mark lasts for one step, and a name is free again.
    await worker.begin()
    assert _names(await worker.keep("noise", "again")) == ["facts", "hypothesis", "noise"]
    assert _names(await worker.end()) == []


async def test_items_end_with_their_ticks(crew: Crew) -> None:
    worker = await _worker(crew)
    await worker.begin()
    await worker.keep("page", "a tool's output", ttl_ops=2)
    await worker.keep("answer", "from the page", depends_on=["page"], ttl_ops=3)
    assert _names(await worker.tick()) == ["page", "answer"]
    # What another item needs stays until that item goes.
    assert _names(await worker.tick()) == ["page", "answer"]
    ticked = await worker.tick()
    assert (_names(ticked), ticked["tick"]) == ([], 3)
    assert {one["reason"] for one in ticked["changes"]} == {"ttl_expired"}


async def test_an_overflow_prunes_compresses_and_externalizes(crew: Crew) -> None:
    worker = await _worker(crew)
    await worker.begin("invoices of march", budget=400, prune_below=0.35)
    await worker.keep("weather", "sunny and warm " * 40)
    await worker.tick()
    kept = await worker.keep("invoices", {"march": list(range(150))}, sensitivity="confidential")
    assert _names(kept) == ["invoices"]
    assert [(one["action"], one["reason"]) for one in kept["changes"]] == [
        ("evicted", "low_utility_prune")
    ]
    kept = await worker.keep("more", {"march": list(range(300, 450))})
    assert kept["tokens"] <= 400
    (item,) = [one for one in kept["items"] if "reference" in one][:1]
    assert item["content"] is None
    assert set(item["reference"]) == {"uri", "schema_hash", "tokens"}
    whole = ok(await crew.a.get(f"{worker.path}/items/{item['name']}"))
    assert len(whole["content"]["march"]) >= 100
    file = await crew.a.get(item["reference"]["uri"])
    assert ok(file) == whole["content"]
    # Content that replaces it is stored in the item again.
    again = await worker.keep(item["name"], "short")
    assert [one["content"] for one in again["items"] if one["name"] == item["name"]] == ["short"]
    assert (await crew.a.get(item["reference"]["uri"])).status_code == 404


async def test_what_fits_nowhere_must_be_divided(crew: Crew) -> None:
    worker = await _worker(crew)
    await worker.begin(budget=10)
    before = await worker.shown()
    refused = await worker.try_keep("all", {"rows": list(range(100))})
    problem = assert_problem(refused, 409, "DECOMPOSITION_REQUIRED")
    assert problem["budget"] == 10 < problem["need"]
    assert await worker.shown() == before


async def test_only_the_agent_of_the_task_writes(crew: Crew) -> None:
    worker = await _worker(crew)
    stale = {"Fencing-Token": "999999"}
    for headers, code in (({}, "FENCED"), (stale, "FENCED")):
        response = await crew.a.post(f"{worker.path}/steps", json={}, headers=headers)
        assert_problem(response, 409, code)
    await worker.begin()
    await worker.keep("secret", "plan")
    assert (await crew.b.get(worker.path)).status_code in (403, 404)
    assert (await crew.outsider.get(worker.path)).status_code in (403, 404)
    response = await crew.chief.put(f"{worker.path}/items/x", json={"content": "x"})
    assert response.status_code in (403, 409)
    await crew.coordinate()
    assert _names(ok(await crew.chief.get(worker.path))) == ["secret"]


async def test_bad_requests_change_nothing(crew: Crew) -> None:
    worker = await _worker(crew)
    assert_problem(await worker.try_keep("a", "x"), 409, "INVALID_TRANSITION")
    await worker.begin()
    response = await crew.a.post(f"{worker.path}/steps", json={}, headers=worker.headers)
    assert_problem(response, 409, "INVALID_TRANSITION")
    await worker.keep("a", "x")
    await worker.keep("b", "x", depends_on=["a"])
    before = await worker.shown()
    for name, fields in (
        ("a", {"depends_on": ["b"]}),
        ("a", {"depends_on": ["a"]}),
        ("c", {"depends_on": ["nobody"]}),
        ("c", {"ttl_ops": 0}),
        ("c", {"content": None}),
    ):
        response = await worker.try_keep(name, **{"content": "x", **fields})
        assert response.status_code == 422, fields
    missing = await crew.a.get(f"{worker.path}/items/nobody")
    assert_problem(missing, 404, "NOT_FOUND")
    entry = before["items"][0]["id"]
    plain = await crew.a.patch(
        f"{MEMORY}/{entry}", json={"value": {}}, headers={**worker.headers, "If-Match": "1"}
    )
    assert plain.status_code == 422
    assert await worker.shown() == before


@pytest.mark.parametrize("policy", ["mask", "mark"])
async def test_items_follow_the_policy_for_personal_data(tmp_path: Path, policy: str) -> None:
    async with open_service(tmp_path, personal_data=policy) as service:
        worker = await _worker(await crew_of(service))
        await worker.begin()
        kept = await worker.keep("contact", {"mail": "ann@example.com"})
        shown = "[email]" if policy == "mask" else "ann@example.com"
        assert kept["items"][0]["content"] == {"mail": shown}
        query = {"agent_id": "a", "kind": "scratch", "tags": "personal_data:email"}
        found = ok(await worker.client.get(MEMORY, params=query))
        assert found["total"] == (policy == "mark")


async def test_a_repeated_request_runs_once(crew: Crew) -> None:
    worker = await _worker(crew)
    await worker.begin()
    headers = {**worker.headers, "Idempotency-Key": "one"}
    first = ok(await crew.a.post(f"{worker.path}/tick", headers=headers))
    assert ok(await crew.a.post(f"{worker.path}/tick", headers=headers)) == first
    assert (await worker.shown())["tick"] == 1


async def test_the_end_of_a_task_archives_its_items(crew: Crew) -> None:
    worker = await _worker(crew)
    await worker.begin()
    await worker.keep("facts", {"total": 47})
    task_id = worker.path.split("/")[-2]
    token = int(worker.headers["Fencing-Token"])
    await crew.change(crew.a, task_id, token=token, status="completed")
    (archive,) = await crew.log(event_type="memory.archived")
    names = [one["value"].get("name") for one in archive["data"]["snapshot"]]
    assert "facts" in names
    assert_problem(await worker.try_keep("late", "x"), 409, "FENCED")
    assert await judge_items(crew.service.services) == 0
