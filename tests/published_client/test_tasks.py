"""The published client's tasks (RFC-0012), and the working memory of one (RFC-0015)."""

from __future__ import annotations

import pytest

from tests.published_client.stage import Stage, assert_stored


def test_a_task_is_what_the_client_sent(stage: Stage, colour: str) -> None:
    seen = stage.play("tasks", colour)
    made = seen["made"]
    assert made["intent_id"] == seen["intent"]
    assert (made["name"], made["description"]) == ("Read the invoices", "Every one of them")
    assert (made["status"], made["version"], made["priority"]) == ("ready", 1, "high")
    assert made["input"] == {"count": 3}
    assert made["capabilities_required"] == ["ocr"]
    assert made["metadata"] == {"source": "mailbox"}
    assert (made["assigned_agent"], made["attempt"], made["max_attempts"]) == ("ana", 1, 2)
    assert made["memory_policy"] == {
        "archive_on_completion": True,
        "inherit_from_parent": False,
        "max_entries": 5,
        "max_total_size_kb": 64,
    }
    assert seen["got"] == made


def test_task_waits_for_its_dependencies(stage: Stage, colour: str) -> None:
    seen = stage.play("tasks", colour)
    waiting = seen["waiting"]
    assert waiting["status"] == "pending"
    assert waiting["depends_on"] == [seen["made"]["id"]]
    assert waiting["parent_task_id"] == seen["made"]["id"]
    assert seen["released"]["status"] == "ready", "once the other is completed"
    assert seen["skipped"]["status"] == "skipped"


def test_lists_apply_their_conditions(stage: Stage, colour: str) -> None:
    lists = stage.play("tasks", colour)["lists"]
    assert sorted(lists["all"]) == ["Book them", "Read the invoices"]
    assert lists["pending"] == ["Book them"]
    assert lists["running"] == []
    assert lists["pages"] == lists["all"]
    assert lists["behind_the_end"] == []


def test_a_task_goes_through_its_states(stage: Stage, colour: str) -> None:
    seen = stage.play("tasks", colour)
    walk = seen["walk"]
    statuses = [view["status"] for view in walk]
    assert statuses == ["claimed", "running", "blocked", "running", "completed"]
    assert [view["version"] for view in walk] == [2, 3, 4, 5, 6]
    assert walk[1]["started_at"]
    assert walk[2]["blocked_reason"] == "the scanner is off"
    assert walk[3]["metadata"] == {"source": "paper"}
    assert walk[4]["output"] == {"read": 3}
    assert walk[4]["completed_at"]

    stored = stage.get(f"/tasks/{seen['made']['id']}")
    assert_stored(walk[4], stored)
    assert stored["state"] == stored["status"] == "completed"


def test_a_failed_task_is_tried_again(stage: Stage, colour: str) -> None:
    views = stage.play("tasks", colour)["retried"]
    assert [view["status"] for view in views] == [
        "ready",
        "claimed",
        "running",
        "failed",
        "ready",
        "cancelled",
    ]
    assert views[3]["error"] == "unreadable"
    assert [view["attempt"] for view in views] == [1, 1, 1, 1, 2, 2]


@pytest.mark.parametrize("attempt", ["stale", "impossible"])
def test_task_conflict_is_not_reported_as_lease_conflict(
    stage: Stage, colour: str, attempt: str
) -> None:
    refusal = stage.play("tasks", colour)[attempt]
    assert (refusal["error"], refusal["status"]) == ("ConflictError", 409), refusal["body"]
    assert "lease" not in str(refusal["body"]).lower()
    assert (
        refusal["body"]["error"]
        == {
            "stale": "VERSION_MISMATCH",
            "impossible": "INVALID_TRANSITION",
        }[attempt]
    )
    if attempt == "stale":
        assert refusal["current_version"] == 6


def test_a_task_changes_hands(stage: Stage, colour: str) -> None:
    seen = stage.play("tasks", colour)["reassigned"]
    assert seen["started"]["status"] == "claimed"
    assert (seen["given"]["assigned_agent"], seen["given"]["status"]) == ("ben", "ready")
    assert seen["seen_by_the_new_agent"] == seen["given"]
    assert "assigned_agent" not in seen["taken_away"]
    history = stage.get(f"/tasks/{seen['given']['id']}")["assignments"]
    assert [one["agent_id"] for one in history] == ["ana", "ben"]


def test_a_task_is_claimed_and_started_with_one_call(stage: Stage, colour: str) -> None:
    seen = stage.play("tasks", colour)["started_at_once"]
    for view in seen["views"]:
        assert (view["status"], view["assigned_agent"], view["version"]) == ("running", "ana", 2)
        assert view["started_at"]
        stored = stage.get(f"/tasks/{view['id']}")
        assert (stored["status"], stored["assigned_agent"]) == ("running", "ana")
        assert stored["version"] == 2
    assert (seen["given"]["status"], seen["given"]["assigned_agent"]) == ("running", "ben")
    assert (seen["refused"]["error"], seen["refused"]["status"]) == ("OpenIntentError", 403)


@pytest.mark.parametrize(
    ("attempt", "error", "status"),
    [
        ("absent", "NotFoundError", 404),
        ("hidden", "OpenIntentError", 403),
        ("hidden_change", "OpenIntentError", 403),
    ],
)
def test_what_is_absent_or_not_shared_is_refused(
    stage: Stage, colour: str, attempt: str, error: str, status: int
) -> None:
    refusal = stage.play("tasks", colour)[attempt]
    assert (refusal["error"], refusal["status"]) == (error, status)


def test_a_completed_tasks_working_memory_is_archived(stage: Stage, colour: str) -> None:
    seen = stage.play("archive", colour)
    kept = seen["kept"]
    assert (kept["full"]["error"], kept["full"]["status"]) == ("OpenIntentError", 429)
    assert [entry["key"] for entry in kept["before"]] == ["progress"]
    assert kept["changed"]["scope"] == {"task_id": kept["task"]["id"], "intent_id": seen["intent"]}
    assert kept["done"]["status"] == "completed"
    assert kept["after"] == []
    assert kept["gone"]["error"] == "NotFoundError"

    path = f"/intents/{seen['intent']}/events"
    (archived,) = stage.get(path, event_type="memory.archived")["events"]
    assert archived["task_id"] == kept["task"]["id"]
    assert archived["payload"]["entries_archived"] == 1
    (entry,) = archived["payload"]["snapshot"]
    assert (entry["key"], entry["value"]) == ("progress", {"number": 2})


def test_a_task_that_does_not_archive_deletes(stage: Stage, colour: str) -> None:
    dropped = stage.play("archive", colour)["dropped"]
    assert dropped["full"] is None
    assert [entry["key"] for entry in dropped["before"]] == ["progress"]
    assert dropped["after"] == []
    assert dropped["gone"]["error"] == "NotFoundError"


@pytest.mark.parametrize(
    ("work", "ending"),
    [("kept", ("memory.archived", None)), ("dropped", ("memory.deleted", "progress"))],
)
def test_the_client_reads_every_memory_event_of_a_task(
    stage: Stage, colour: str, work: str, ending: tuple[str, str | None]
) -> None:
    seen = stage.play("archive", colour)
    told = [
        (event["event_type"], event["payload"].get("key"))
        for event in seen["log"]
        if event["event_type"].startswith("memory.")
        # The task's id is part of the namespace of all it remembers.
        and seen[work]["task"]["id"] in str(event["payload"])
    ]
    assert told == [
        ("memory.created", "progress"),
        ("memory.created", "scratch"),
        ("memory.updated", "progress"),
        ("memory.deleted", "scratch"),
        ending,
    ]


def test_an_archive_is_closed_to_strangers(stage: Stage, colour: str) -> None:
    hidden = stage.play("archive", colour)["hidden"]
    assert (hidden["error"], hidden["status"]) == ("OpenIntentError", 403)
