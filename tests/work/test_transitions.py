"""The nine states of a task: what may follow what, and nothing else (RFC-0012)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.http.checks import assert_problem, everything
from tests.work.crew import TASKS, Crew, at, ok, remember

pytestmark = pytest.mark.anyio

# Written down here once more, so that a slip of the server's own table shows.
TABLE = {
    "pending": "ready blocked cancelled skipped",
    "ready": "claimed blocked cancelled skipped",
    "claimed": "running ready blocked completed failed cancelled",
    "running": "completed failed blocked ready cancelled",
    "blocked": "ready claimed running failed cancelled skipped",
    "completed": "",
    "failed": "ready",
    "cancelled": "",
    "skipped": "",
}
ALLOWED = [(before, after) for before, words in TABLE.items() for after in words.split()]
REFUSED = [
    (before, after)
    for before in TABLE
    for after in TABLE
    if (before, after) not in ALLOWED and before != after
]
# What a task goes through on its way to a state, from `ready`.
ROUTES = {
    "ready": "",
    "claimed": "claimed",
    "running": "claimed running",
    "blocked": "blocked",
    "completed": "claimed completed",
    "failed": "claimed failed",
    "cancelled": "cancelled",
    "skipped": "skipped",
}
WORDS = ("status", "state")
OVER = {"completed", "failed", "cancelled", "skipped"}
EVENT = {"running": "started"}


async def _in_state(crew: Crew, status: str, **fields: Any) -> dict[str, Any]:
    """A task of `a` that has come to a state."""
    if status == "pending":
        before = await crew.task("before")
        return await crew.task(depends_on=[before["id"]], assigned_agent="a", **fields)
    task = await crew.task(assigned_agent="a", **fields)
    for step in ROUTES[status].split():
        task = await crew.change(crew.chief, task["id"], status=step)
    assert task["status"] == task["state"] == status
    return task


def test_the_table_names_all_nine_states() -> None:
    assert len(TABLE) == 9
    assert {after for _, after in ALLOWED} <= TABLE.keys()
    assert len(ALLOWED) + len(REFUSED) == 9 * 8


@pytest.mark.parametrize(("before", "after"), [one for one in ALLOWED if one[0] != "pending"])
async def test_allowed_transition_is_applied_and_logged(
    crew: Crew, before: str, after: str
) -> None:
    for word in WORDS:
        await _allowed(crew, before, after, word)


async def _allowed(crew: Crew, before: str, after: str, word: str) -> None:
    """Asserts that a transition is made, shown and told."""
    task = await _in_state(crew, before)
    crew.service.clock.advance(5)
    fields: dict[str, Any] = {word: after}
    changed = await crew.change(crew.chief, task["id"], **fields)
    assert changed["status"] == changed["state"] == after
    assert changed["version"] == task["version"] + 1
    assert changed["updated_at"] > task["updated_at"]
    assert ("completed_at" in changed) == (after in OVER)
    assert ok(await crew.a.get(f"{TASKS}/{task['id']}")) == changed
    told = (await crew.log())[-1]
    retried = before == "failed"
    assert told["type"] == f"task.{'retrying' if retried else EVENT.get(after, after)}"
    assert told["data"]["status"] == after
    assert told["data"]["version"] == changed["version"]


@pytest.mark.parametrize("after", ["blocked", "cancelled", "skipped"])
async def test_a_pending_task_can_be_given_up(crew: Crew, after: str) -> None:
    task = await _in_state(crew, "pending")
    assert (await crew.change(crew.chief, task["id"], status=after))["status"] == after


async def test_pending_task_becomes_ready_when_its_dependencies_are_completed(crew: Crew) -> None:
    task = await _in_state(crew, "pending")
    (before,) = task["depends_on"]
    early = await crew.try_change(crew.chief, task["id"], status="ready")
    assert_problem(early, 409, "INVALID_TRANSITION")
    assert await crew.now(task["id"]) == task
    await crew.change(crew.chief, before, status="claimed")
    await crew.change(crew.chief, before, status="completed")
    ready = await crew.now(task["id"])
    assert (ready["status"], ready["version"]) == ("ready", task["version"] + 1)
    assert await crew.told(task["id"]) == ["task.created", "task.ready"]


async def _refused(crew: Crew, before: str, after: str, word: str, key: str = "k") -> None:
    """Asserts that a transition is refused and changes nothing at all."""
    task = await _in_state(crew, before)
    if before not in OVER:
        await remember(crew.a, task["id"], key)
    stored, log = await everything(crew.service), await crew.log()
    fields: dict[str, Any] = {
        word: after,
        "output": {"x": 1},
        "assigned_agent": "a",
        "metadata": {"m": 1},
    }
    if (before, after) == ("ready", "running"):
        # With an agent it is claimed and started; see the tests of that below.
        del fields["assigned_agent"]
    response = await crew.try_change(crew.chief, task["id"], **fields)
    assert_problem(response, 409, "INVALID_TRANSITION")
    assert await crew.now(task["id"]) == task
    assert await crew.log() == log
    assert await everything(crew.service) == stored


@pytest.mark.parametrize(("before", "after"), REFUSED)
async def test_any_other_transition_is_refused_and_changes_nothing(
    crew: Crew, before: str, after: str
) -> None:
    for number, word in enumerate(WORDS):
        await _refused(crew, before, after, word, key=f"k{number}")


@pytest.mark.parametrize("status", list(TABLE))
async def test_a_state_does_not_follow_itself(crew: Crew, status: str) -> None:
    await _refused(crew, status, status, "status")


# A task that is claimed and started by one request


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("assigned", [None, "a"])
async def test_an_agent_claims_and_starts_a_task_with_one_request(
    crew: Crew, assigned: str | None, word: str
) -> None:
    await crew.task("other", assigned_agent="a")
    task = await crew.task(**({} if assigned is None else {"assigned_agent": assigned}))
    crew.service.clock.advance(5)
    fields: dict[str, Any] = {word: "running", "assigned_agent": "a"}
    started = await crew.change(crew.a, task["id"], **fields)
    assert (started["status"], started["assigned_agent"]) == ("running", "a")
    assert started["version"] == task["version"] + 1
    assert started["started_at"] == started["updated_at"] > task["updated_at"]
    (assignment,) = started["assignments"]
    assert assignment["accepted_at"] == started["updated_at"], "it took the task up itself"
    assert await crew.now(task["id"]) == started
    delegated = ["task.delegated"] if assigned is None else []
    told = [one for one in await crew.log() if one.get("task_id") == task["id"]]
    assert [one["type"] for one in told] == [
        "task.created", *delegated, "task.claimed", "task.started"
    ]  # fmt: skip
    assert [one["data"]["status"] for one in told[-2:]] == ["claimed", "running"]
    assert {one["data"]["version"] for one in told[1:]} == {started["version"]}


@pytest.mark.parametrize("assigned", [None, "a", "b"])
async def test_intent_manager_assigns_and_starts_a_task_in_one_request(
    crew: Crew, assigned: str | None
) -> None:
    task = await crew.task(**({} if assigned is None else {"assigned_agent": assigned}))
    started = await crew.change(crew.chief, task["id"], status="running", assigned_agent="b")
    assert (started["status"], started["assigned_agent"]) == ("running", "b")
    assert "accepted_at" not in started["assignments"][-1], "being assigned accepts nothing"
    told = await crew.told(task["id"])
    assert told[-2:] == ["task.claimed", "task.started"]


async def test_caller_without_claim_permission_cannot_start_a_task(crew: Crew) -> None:
    for client in (crew.a, crew.b):
        # Whoever works in the intent may take part in it.
        await crew.task("other", assigned_agent="a" if client is crew.a else "b")
    hers = await crew.task(assigned_agent="b")
    free = await crew.task()
    log, stored = await crew.log(), await everything(crew.service)
    for client, task, agent in (
        (crew.a, hers, "a"),
        (crew.a, hers, "b"),
        (crew.a, free, "b"),
        (crew.b, hers, "a"),
        (crew.outsider, free, "outsider"),
    ):
        response = await crew.try_change(client, task["id"], status="running", assigned_agent=agent)
        assert_problem(response, 403, "ACCESS_DENIED")
    for task in (hers, free):
        assert await crew.now(task["id"]) == task
    assert await crew.log() == log
    assert await everything(crew.service) == stored


async def test_start_without_an_agent_is_refused(crew: Crew) -> None:
    for fields in ({}, {"assigned_agent": "a"}):
        task = await crew.task(**fields)
        response = await crew.try_change(
            crew.chief, task["id"], status="running", assigned_agent=None
        )
        assert_problem(response, 409, "INVALID_TRANSITION")
        assert await crew.now(task["id"]) == task


async def test_a_task_that_waits_for_another_is_not_claimed_and_started(crew: Crew) -> None:
    task = await _in_state(crew, "pending")
    for client in (crew.a, crew.chief):
        response = await crew.try_change(client, task["id"], status="running", assigned_agent="a")
        assert_problem(response, 409, "INVALID_TRANSITION")
    assert await crew.now(task["id"]) == task


@pytest.mark.parametrize("after", ["done", "", None, 3, "READY"])
async def test_invalid_state_is_refused(crew: Crew, after: Any) -> None:
    task = await crew.task()
    for word in WORDS:
        fields: dict[str, Any] = {word: after}
        assert_problem(await crew.try_change(crew.chief, task["id"], **fields), 422)


async def test_state_and_status_must_say_the_same(crew: Crew) -> None:
    task = await crew.task()
    odd = await crew.try_change(crew.chief, task["id"], status="claimed", state="blocked")
    assert_problem(odd, 422)
    assert await crew.now(task["id"]) == task
    both = await crew.change(crew.chief, task["id"], status="claimed", state="claimed")
    assert both["status"] == "claimed"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (before, after)
        for before, after in ALLOWED
        if before in ("ready", "claimed", "running", "blocked")
        and after not in ("cancelled", "skipped")
    ],
)
async def test_the_agent_of_a_task_moves_it(crew: Crew, before: str, after: str) -> None:
    task = await _in_state(crew, before)
    assert (await crew.change(crew.a, task["id"], status=after))["status"] == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        *((before, after) for before, after in ALLOWED if after in ("cancelled", "skipped")),
        ("failed", "ready"),
    ],
)
async def test_giving_a_task_up_and_trying_it_again_is_not_for_its_agent(
    crew: Crew, before: str, after: str
) -> None:
    task = await _in_state(crew, before)
    response = await crew.try_change(crew.a, task["id"], status=after)
    assert_problem(response, 403, "ACCESS_DENIED")
    assert await crew.now(task["id"]) == task


async def test_taking_a_task_and_giving_it_up_at_once_is_no_way_round(crew: Crew) -> None:
    await crew.task("other", assigned_agent="a")
    task = await crew.task()
    for after in ("cancelled", "skipped"):
        fields: dict[str, Any] = {"assigned_agent": "a", "status": after}
        response = await crew.try_change(crew.a, task["id"], **fields)
        assert_problem(response, 403, "ACCESS_DENIED")
    assert await crew.now(task["id"]) == task


async def test_taking_a_failed_task_and_trying_it_again_is_no_way_round(crew: Crew) -> None:
    await crew.task("other", assigned_agent="a")
    task = await crew.task(max_attempts=2)
    for step in ("claimed", "failed"):
        task = await crew.change(crew.chief, task["id"], status=step)
    response = await crew.try_change(crew.a, task["id"], assigned_agent="a", status="ready")
    assert_problem(response, 403, "ACCESS_DENIED")
    assert await crew.now(task["id"]) == task


async def test_a_change_needs_the_present_version(crew: Crew) -> None:
    task = await crew.task()
    path, body = f"{TASKS}/{task['id']}", {"status": "claimed"}
    assert_problem(await crew.chief.patch(path, json=body), 428, "PRECONDITION_REQUIRED")
    assert_problem(await crew.chief.patch(path, json=body, headers={"If-Match": "*"}), 428)
    late = await crew.chief.patch(path, json=body, headers=at(7))
    assert assert_problem(late, 409, "VERSION_MISMATCH")["current_version"] == 1
    response = await crew.chief.patch(path, json=body, headers=at(1))
    assert ok(response)["version"] == 2
    assert response.headers["etag"] == '"2"'
    assert_problem(await crew.chief.patch(path, json=body, headers=at(1)), 409, "VERSION_MISMATCH")
    assert_problem(await crew.chief.patch(path, json={}, headers=at(2)), 422)
    assert_problem(await crew.chief.patch(path, json={"colour": 1}, headers=at(2)), 422)
    assert_problem(await crew.chief.patch(f"{TASKS}/task_none", json=body, headers=at(1)), 404)


async def test_a_failed_task_is_tried_again_as_often_as_it_may(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a", max_attempts=2)
    assert (task["attempt"], task["max_attempts"]) == (1, 2)
    for step in ("claimed", "running"):
        await crew.change(crew.a, task["id"], status=step)
    failed = await crew.change(
        crew.a, task["id"], status="failed", error="no luck", output={"half": 1}
    )
    assert (failed["error"], failed["output"]) == ("no luck", {"half": 1})
    again = await crew.change(crew.chief, task["id"], status="ready")
    assert (again["attempt"], again["status"]) == (2, "ready")
    assert again.keys().isdisjoint({"error", "output", "started_at", "completed_at"})
    for step in ("claimed", "failed"):
        await crew.change(crew.a, task["id"], status=step)
    refused = await crew.try_change(crew.chief, task["id"], status="ready")
    assert_problem(refused, 409, "INVALID_TRANSITION")
    assert (await crew.now(task["id"]))["attempt"] == 2


async def test_times_of_a_task(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a")
    steps = ["claimed", "running", "blocked", "running", "completed"]
    for second, step in enumerate(steps):
        crew.service.clock.advance(1)
        task = await crew.change(crew.a, task["id"], status=step)
        assert ("started_at" in task) == (second >= 1)
    assert task["created_at"] == "2026-02-02T02:40:00.000Z"
    assert task["started_at"] == "2026-02-02T02:40:02.000Z"
    assert task["completed_at"] == task["updated_at"] == "2026-02-02T02:40:05.000Z"
