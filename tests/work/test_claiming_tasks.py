"""How agents find tasks, take them up and give them back."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.http.checks import assert_problem
from tests.work.crew import INTENTS, TASKS, Crew, ok, under

pytestmark = pytest.mark.anyio


async def _open(crew: Crew) -> None:
    """Lets everybody in the tenant take part."""
    ok(await crew.chief.put(f"{crew.intent_path}/acl", json={"default_policy": "open"}))


async def _next(client: httpx.AsyncClient, **body: Any) -> str | None:
    """The name of the task that was there to be taken up."""
    response = await client.post(f"{TASKS}/next", json=body)
    if response.status_code == 204:
        assert response.content == b""
        return None
    taken = ok(response)
    assert taken["lease"]["task_id"] == taken["task"]["id"]
    name: str = taken["task"]["name"]
    return name


async def test_the_lists_hold_what_the_caller_may_read(crew: Crew) -> None:
    hidden = ok(await crew.outsider.post(INTENTS, json={"title": "hidden"}), 201)
    names = []
    for number in range(3):
        crew.service.clock.advance(1)
        body = {"intent_id": hidden["id"], "name": f"h{number}", "assigned_agent": "a"}
        ok(await crew.outsider.post(TASKS, json=body), 201)
        names.append((await crew.task(f"t{number}", assigned_agent="a"))["name"])
    await crew.change(
        crew.chief, (await _listed(crew.chief, assigned_agent="a"))[0]["id"], status="claimed"
    )

    async def seen(client: httpx.AsyncClient, **query: Any) -> list[str]:
        return [one["name"] for one in await _listed(client, **query)]

    assert await seen(crew.a) == ["h0", "t0", "h1", "t1", "h2", "t2"]
    assert await seen(crew.a, limit=2, offset=1) == ["t0", "h1"]
    assert await seen(crew.a, status="claimed") == ["t0"]
    assert await seen(crew.b) == []
    assert await seen(crew.b, assigned_agent="a") == []
    assert await seen(crew.chief, assigned_agent="a") == names
    of_intent = ok(await crew.chief.get(f"{crew.intent_path}/tasks", params={"status": "ready"}))
    assert [one["name"] for one in of_intent] == ["t1", "t2"]
    page = ok(await crew.chief.get(f"{crew.intent_path}/tasks", params={"limit": 1, "offset": 1}))
    assert [one["name"] for one in page] == ["t1"]
    assert_problem(await crew.b.get(f"{crew.intent_path}/tasks"), 403)


async def _listed(client: httpx.AsyncClient, **query: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ok(await client.get(TASKS, params=query))
    return found


async def test_the_list_can_be_narrowed_to_an_intent(crew: Crew) -> None:
    other = ok(await crew.chief.post(INTENTS, json={"title": "other"}), 201)
    body = {"intent_id": other["id"], "name": "elsewhere", "assigned_agent": "a"}
    ok(await crew.chief.post(TASKS, json=body), 201)
    await crew.task("here", assigned_agent="a")
    found = await _listed(crew.a, intent_id=crew.intent["id"])
    assert [one["name"] for one in found] == ["here"]


async def test_unreadable_entry_is_not_counted_on_a_page(crew: Crew) -> None:
    hidden = ok(await crew.outsider.post(INTENTS, json={"title": "hidden"}), 201)
    for number in range(3):
        body = {"intent_id": hidden["id"], "name": f"h{number}", "assigned_agent": "a"}
        ok(await crew.outsider.post(TASKS, json=body), 201)
    await crew.task("t", assigned_agent="a")
    found = await _listed(crew.chief, assigned_agent="a", limit=1)
    assert [one["name"] for one in found] == ["t"]


async def test_the_next_task_is_the_oldest_there_is(crew: Crew) -> None:
    await _open(crew)
    assert await _next(crew.a) is None
    for name in ("first", "second"):
        crew.service.clock.advance(1)
        await crew.task(name)
    await crew.task("of b", assigned_agent="b")
    assert await _next(crew.a) == "first"
    assert await _next(crew.outsider) == "second"
    assert await _next(crew.a) is None
    assert await _next(crew.b) == "of b"


async def test_a_task_needs_what_the_agent_can_do(crew: Crew) -> None:
    await _open(crew)
    await crew.task("both", capabilities_required=["billing", "sql"])
    await crew.task("one", capabilities_required=["sql"])
    assert await _next(crew.a, capabilities=["billing"]) is None
    assert await _next(crew.a, capabilities=["sql", "other"]) == "one"
    assert await _next(crew.a, capabilities=["sql", "billing"]) == "both"


async def test_the_next_task_of_one_intent(crew: Crew) -> None:
    await crew.task("here", assigned_agent="a")
    other = ok(await crew.chief.post(INTENTS, json={"title": "other"}), 201)
    assert await _next(crew.a, intent_id=other["id"]) is None
    assert await _next(crew.a, intent_id="int_none") is None
    assert await _next(crew.a, intent_id=crew.intent["id"]) == "here"


async def test_only_open_work_is_given_out(crew: Crew) -> None:
    for steps in ("blocked", "skipped", "claimed failed", "claimed completed"):
        task = await crew.task(assigned_agent="a")
        for step in steps.split():
            await crew.change(crew.chief, task["id"], status=step)
        response = await crew.a.post(f"{TASKS}/{task['id']}/claim", json={})
        assert_problem(response, 409, "INVALID_TRANSITION")
    assert await _next(crew.a) is None


async def test_taking_up_gives_task_and_lease(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a")
    taken = await crew.take(crew.a, task["id"], seconds=30)
    assert taken.task["status"] == taken.task["state"] == "claimed"
    assert taken.task["version"] == task["version"] + 1
    lease = taken.lease
    assert lease["id"].startswith("lse_")
    assert (
        lease
        | {
            "task_id": task["id"],
            "agent_id": "a",
            "created_at": "2026-02-02T02:40:00.000Z",
            "expires_at": "2026-02-02T02:40:30.000Z",
        }
        == lease
    )
    assert lease["fencing_token"] >= 1
    assert await crew.told(task["id"]) == ["task.created", "task.claimed", "lease_acquired"]


async def test_held_lease_cannot_be_acquired_even_by_its_holder(crew: Crew) -> None:
    await _open(crew)
    task = await crew.task()
    taken = await crew.take(crew.a, task["id"])
    again = await crew.a.post(f"{TASKS}/{task['id']}/claim", json={})
    held = assert_problem(again, 409, "LEASE_HELD")["existing_lease"]
    assert held == taken.lease
    assert_problem(await crew.b.post(f"{TASKS}/{task['id']}/claim", json={}), 403)
    assert await _next(crew.a) is None
    assert await _next(crew.b) is None
    assert await crew.now(task["id"]) == taken.task


async def test_a_running_task_whose_lease_is_over_stays_running_when_taken_anew(crew: Crew) -> None:
    task, first = await crew.working(seconds=30)
    crew.service.clock.advance(30)
    second = await crew.take(crew.a, task["id"])
    assert second.task["status"] == "running"
    assert second.token > first.token


async def test_a_lease_is_renewed_under_its_token_while_it_lasts(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a")
    taken = await crew.take(crew.a, task["id"], seconds=30)
    path, body = f"{TASKS}/{task['id']}/lease", {"duration_seconds": 60}
    crew.service.clock.advance(20)
    assert_problem(await crew.a.patch(path, json=body), 409, "FENCED")
    for client, token in ((crew.a, taken.token + 1), (crew.b, taken.token)):
        assert_problem(await client.patch(path, json=body, headers=under(token)), 409, "FENCED")
    renewed = ok(await crew.a.patch(path, json=body, headers=under(taken.token)))
    assert renewed == taken.lease | {"expires_at": "2026-02-02T02:41:20.000Z"}
    crew.service.clock.advance(60)
    late = await crew.a.patch(path, json=body, headers=under(taken.token))
    assert_problem(late, 409, "FENCED")
    for wrong in ({"duration_seconds": 0}, {"duration_seconds": 86_401}):
        assert_problem(await crew.a.patch(path, json=wrong, headers=under(taken.token)), 422)


async def test_the_token_of_another_task_renews_nothing(crew: Crew) -> None:
    first, second = await crew.task(assigned_agent="a"), await crew.task(assigned_agent="a")
    token = (await crew.take(crew.a, first["id"])).token
    await crew.take(crew.a, second["id"])
    path = f"{TASKS}/{second['id']}/lease"
    response = await crew.a.patch(path, json={"duration_seconds": 60}, headers=under(token))
    assert_problem(response, 409, "FENCED")
    assert_problem(await crew.a.delete(path, headers=under(token)), 409, "FENCED")


async def test_a_task_given_back_is_ready_again_and_its_token_dead(crew: Crew) -> None:
    task, taken = await crew.working()
    path = f"{TASKS}/{task['id']}/lease"
    assert_problem(await crew.a.delete(path), 409, "FENCED")
    assert_problem(await crew.b.delete(path, headers=under(taken.token)), 409, "FENCED")
    ok(await crew.a.delete(path, headers=under(taken.token)), 204)
    back = await crew.now(task["id"])
    assert (back["status"], back["assigned_agent"]) == ("ready", "a")
    assert_problem(await crew.a.delete(path, headers=under(taken.token)), 409, "FENCED")
    assert (await crew.told(task["id"]))[-1] == "lease_released"
    assert await _next(crew.a) == "pay"


async def test_self_claimed_task_is_unassigned_after_release(crew: Crew) -> None:
    await _open(crew)
    task = await crew.task()
    taken = await crew.take(crew.a, task["id"])
    ok(await crew.a.delete(f"{TASKS}/{task['id']}/lease", headers=under(taken.token)), 204)
    assert "assigned_agent" not in await crew.now(task["id"])
    assert await _next(crew.b) == "pay"


async def test_reassigning_ends_the_lease(crew: Crew) -> None:
    for status in ("claimed", "running", "blocked"):
        task = await crew.task(assigned_agent="a")
        taken = await crew.take(crew.a, task["id"])
        if status != "claimed":
            await crew.change(crew.a, task["id"], token=taken.token, status=status)
        given = await crew.change(crew.chief, task["id"], assigned_agent="b")
        assert (given["status"], given["assigned_agent"]) == ("ready", "b")
        path = f"{TASKS}/{task['id']}/lease"
        late = await crew.a.patch(path, json={}, headers=under(taken.token))
        assert_problem(late, 409, "FENCED")
        assert (await crew.take(crew.b, task["id"])).token > taken.token


@pytest.mark.parametrize("status", ["running", "blocked"])
async def test_reassigning_ends_the_lease_wherever_the_task_goes_with_it(
    crew: Crew, status: str
) -> None:
    task = await crew.task(assigned_agent="a")
    taken = await crew.take(crew.a, task["id"])
    given = await crew.change(crew.chief, task["id"], assigned_agent="b", status=status)
    assert (given["status"], given["assigned_agent"]) == (status, "b")
    assert "accepted_at" not in given["assignments"][-1]
    late = await crew.a.patch(f"{TASKS}/{task['id']}/lease", json={}, headers=under(taken.token))
    assert_problem(late, 409, "FENCED")
    # The new agent is not kept out by a token that only the old one knew.
    await crew.change(crew.b, task["id"], metadata={"seen": True})


@pytest.mark.parametrize("ending", ["completed", "failed", "cancelled"])
async def test_the_end_of_a_task_ends_its_lease(crew: Crew, ending: str) -> None:
    task, taken = await crew.working()
    await crew.change(crew.chief, task["id"], status=ending)
    path = f"{TASKS}/{task['id']}/lease"
    late = await crew.a.patch(path, json={}, headers=under(taken.token))
    assert_problem(late, 409, "FENCED")
