"""Claims, tasks and their steps inside a session, and what the checkpoints of it have of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.http.checks import MEMORY, assert_problem
from tests.http.test_sessions import Talk, begin
from tests.support.service import RunningService, draft, open_service
from tests.work.crew import CLAIMS, TASKS, Crew, crew_of, ok

pytestmark = pytest.mark.anyio


async def make_task(crew: Crew, session: str | None = None) -> str:
    """The id of a task of agent A, which names a session."""
    metadata = {} if session is None else {"session_id": session}
    return str((await crew.task(assigned_agent="a", metadata=metadata))["id"])


def inside(talk: Talk) -> dict[str, str]:
    return {"X-Session-ID": talk.id}


async def keep(
    client: httpx.AsyncClient, task: str, name: str, content: Any, **headers: str
) -> httpx.Response:
    path = f"{TASKS}/{task}/working/items/{name}"
    return await client.put(path, json={"content": content}, headers=headers)


async def step(client: httpx.AsyncClient, task: str, **headers: str) -> httpx.Response:
    body = {"goal": "which invoice is wrong", "policy": {"budget": 400, "prune_below": 0}}
    return await client.post(f"{TASKS}/{task}/working/steps", json=body, headers=headers)


async def test_step_items_are_in_the_checkpoints_of_their_session(crew: Crew) -> None:
    talk, other = await begin(crew.a, subject="ann"), await begin(crew.a, subject="bob")
    unnamed = await make_task(crew)
    # A task that names the session, and one whose step begins inside it.
    for task, headers in ((await make_task(crew, talk.id), {}), (unnamed, inside(talk))):
        ok(await step(crew.a, task, **headers), 201)
        # The first items go to attachments, because the budget is small.
        for number in range(3):
            ok(await keep(crew.a, task, f"rows {number}", list(range(150)), **headers))
        made = await talk.do("POST", "/checkpoints", trigger="user_request")
        items = [one for one in made["working"] if one["task_id"] == task]
        assert {one["value"]["name"] for one in items} == {"rows 0", "rows 1", "rows 2"}
        assert all(one["value"]["content"] == list(range(150)) for one in items)
        assert any("reference" in one["value"] for one in items)
        ok(await crew.a.post(f"{TASKS}/{task}/working/steps/end", headers=headers))
        made = await talk.do("POST", "/checkpoints", trigger="user_request")
        assert [one for one in made["working"] if one["task_id"] == task] == []
    assert (await other.do("POST", "/checkpoints", trigger="shutdown"))["working"] == []
    # The steps of another session, and those outside of sessions, are others.
    ok(await step(crew.a, unnamed, **inside(other)), 201)
    ok(await keep(crew.a, unnamed, "secret", "of bob", **inside(other)))
    assert ok(await step(crew.a, unnamed), 201)["items"] == []
    shown = ok(await crew.a.get(f"{TASKS}/{unnamed}/working", headers=inside(talk)))
    assert (shown["is_open"], shown["items"]) == (False, [])
    item = f"{TASKS}/{unnamed}/working/items/secret"
    assert_problem(await crew.a.get(item, headers=inside(talk)), 404)
    await other.do("DELETE")
    page = ok(await crew.a.get(MEMORY, params={"kind": "scratch", "limit": 100}))
    assert all(one["value"].get("content") != "of bob" for one in page["entries"])


async def test_a_token_reaches_the_tasks_of_its_session(crew: Crew) -> None:
    talk, other = await begin(crew.a), await begin(crew.a)
    own, foreign = await make_task(crew, talk.id), await make_task(crew, other.id)
    unnamed = await make_task(crew)
    token = (await talk.do("POST", "/token", ttl="PT1H"))["token"]
    async with crew.service.client(token) as guest:
        assert [one["id"] for one in ok(await guest.get(TASKS))] == [own]
        by_intent = {"intent_id": crew.intent["id"]}
        assert [one["id"] for one in ok(await guest.get(TASKS, params=by_intent))] == [own]
        missing = await guest.get(f"{TASKS}/task_absent")
        for hidden in (foreign, unnamed):
            assert (await guest.get(f"{TASKS}/{hidden}")).json() == missing.json()
            assert_problem(await guest.post(f"{TASKS}/{hidden}/claim", json={}), 404)
        assert_problem(await step(guest, foreign), 404)
        taken = ok(await guest.post(f"{TASKS}/next", json={}))
        assert taken["task"]["id"] == own
        headers = {"Fencing-Token": str(taken["lease"]["fencing_token"])}
        ok(await step(guest, own, **headers), 201)
        ok(await keep(guest, own, "note", "march", **headers))
        ok(await guest.patch(f"{TASKS}/{own}/lease", json={}, headers=headers))
        versions = {**headers, "If-Match": str(taken["task"]["version"])}
        moved = {"metadata": {"session_id": other.id}}
        assert_problem(await guest.patch(f"{TASKS}/{own}", json=moved, headers=versions), 422)
        changed = {"metadata": {"page": 1}, "status": "running"}
        changed = ok(await guest.patch(f"{TASKS}/{own}", json=changed, headers=versions))
        assert changed["metadata"] == {"page": 1, "session_id": talk.id}
        for path in (f"{crew.intent_path}/tasks", f"{crew.intent_path}/events",
                     f"{TASKS}/{own}/working/changes"):  # fmt: skip
            assert_problem(await guest.get(path), 403)
        body = {"intent_id": crew.intent["id"], "name": "x"}
        assert_problem(await guest.post(TASKS, json=body), 403)
        assert ok(await guest.post(f"{TASKS}/next", json={}), 204) is None
    # A lease that another session's request holds is of no use here.
    lease = ok(await crew.a.post(f"{TASKS}/{foreign}/claim", json={}))["lease"]
    headers = {"Fencing-Token": str(lease["fencing_token"]), **inside(talk)}
    assert_problem(await crew.a.delete(f"{TASKS}/{foreign}/lease", headers=headers), 404)


async def test_who_only_reads_a_session_changes_no_task_of_it(crew: Crew) -> None:
    talk = await begin(crew.chief, participants=[{"agent_id": "a", "access": "read"}])
    task = await make_task(crew, talk.id)
    ok(await crew.a.get(f"{TASKS}/{task}", headers=inside(talk)))
    assert_problem(await crew.a.post(f"{TASKS}/{task}/claim", json={}, headers=inside(talk)), 403)
    assert_problem(await step(crew.a, task, **inside(talk)), 403)


@pytest.mark.parametrize("binding", ["session", "subject"])
async def test_claims_are_those_of_what_a_bound_request_reads(crew: Crew, binding: str) -> None:
    talk = await begin(crew.a, subject="ann")
    bound = inside(talk) if binding == "session" else {"X-Subject": "ann"}
    for key, subjects in (("ann-1", ["ann"]), ("bob-1", ["bob"])):
        entry = draft(key, memory_type="shared", namespace="shared/global", subjects=subjects)
        ok(await crew.a.post(MEMORY, json=entry), 201)
    held = {}
    for key in ("ann-1", "bob-1", "free"):
        body = {"key": key, "purpose": f"refund of {key}"}
        held[key] = ok(await crew.chief.post(CLAIMS, json=body), 201)["id"]
    shown = ok(await crew.a.get(CLAIMS, params={"scope": "global"}, headers=bound))["claims"]
    assert [one["key"] for one in shown] == ["ann-1", "free"]
    assert all("purpose" not in one for one in shown)
    missing = await crew.a.get(f"{CLAIMS}/clm_absent", headers=bound)
    for key, status in (("ann-1", 200), ("bob-1", missing.status_code)):
        found = await crew.a.get(f"{CLAIMS}/{held[key]}", headers=bound)
        assert (found.status_code, "refund" in found.text) == (status, False)
    refused = await crew.a.post(CLAIMS, json={"key": "free"}, headers=bound)
    assert "refund" not in assert_problem(refused, 409)["existing_lease"]
    hidden = await crew.a.post(CLAIMS, json={"key": "bob-1"}, headers=bound)
    assert_problem(hidden, 404)
    body = {"key": "ann-2", "purpose": "mine"}
    own = ok(await crew.a.post(CLAIMS, json=body, headers=bound), 201)
    assert own["purpose"] == "mine"
    path = f"{CLAIMS}/{own['id']}"
    ok(await crew.a.patch(path, json={"ttl_seconds": 60}, headers=bound))
    assert_problem(await crew.a.patch(f"{CLAIMS}/{held['bob-1']}", json={}, headers=bound), 404)
    ok(await crew.a.delete(path, headers=bound), 204)


async def test_runs_that_differ_in_random_ids_alone_are_alike(tmp_path: Path) -> None:
    async def run(service: RunningService) -> Any:
        crew = await crew_of(service)
        talk = await begin(crew.a, subject="ann")
        task = await make_task(crew, talk.id)
        budget = {"goal": "rows", "policy": {"budget": 600, "prune_below": 0}}
        ok(await crew.a.post(f"{TASKS}/{task}/working/steps", json=budget), 201)
        seen = []
        for number in range(6):
            reply = ok(await keep(crew.a, task, f"rows {number}", list(range(90))))
            seen.append((reply["tokens"], [one["tokens"] for one in reply["items"]]))
        await talk.add(f"What became of {task}?")
        body = {"session_id": talk.id, "task_id": task, "window": 1_400}
        context = ok(await crew.a.post("/api/v1/context", json=body))
        shown = [
            (
                part["name"],
                part["tokens"],
                [(item["tokens"], item["reason"]) for item in part["items"]],
            )
            for part in context["segments"]
        ]
        return seen, context["tokens"], shown

    found = []
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir()
        async with open_service(tmp_path / name) as service:
            found.append(await run(service))
    assert found[0] == found[1] == found[2]
