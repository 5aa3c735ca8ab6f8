"""tasks: list, show, create, assign and cancel."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.cli.groups import fields, intents, tasks
from tests.cli.shell import Shell, columns
from tests.support.process import ServerProcess


@pytest.fixture
def intent_id(agent: Shell) -> str:
    """An intent that the agent administers."""
    made: str = intents(agent).json("create", "Close the books")["id"]
    return made


def test_created_record_is_returned_and_listed(anywhere: Shell) -> None:
    intent_id = intents(anywhere).json("create", "Close the books")["id"]
    made = tasks(anywhere).succeed(
        "create", intent_id, "gather data", "--assign", anywhere.agent,
        "--description", "all of it",
        "--capability", "sql", "--capability", "excel",
    )  # fmt: skip
    shown = fields(made)
    assert shown["id"].startswith("task_")
    assert (shown["intent_id"], shown["name"]) == (intent_id, "gather data")
    assert (shown["status"], shown["assigned_agent"]) == ("ready", anywhere.agent)
    assert (shown["description"], shown["capabilities_required"]) == ("all of it", "sql, excel")
    assert shown["memory_policy"] == "archived"
    assert not {"state", "input", "depends_on", "metadata"} & set(shown)
    assert tasks(anywhere).succeed("show", shown["id"]) == made

    after = tasks(anywhere).json("create", intent_id, "report", "--after", shown["id"])
    assert (after["status"], after["depends_on"]) == ("pending", [shown["id"]])
    part = tasks(anywhere).json("create", intent_id, "part", "--parent", shown["id"])
    assert (part["parent_task_id"], part["assignments"]) == (shown["id"], [])
    assert tasks(anywhere).json("show", part["id"]) == part

    table = tasks(anywhere).succeed("list", "--intent", intent_id)
    assert columns(table) == ["id", "name", "status", "agent", "updated"]
    rows = [line.split() for line in table.splitlines()[2:]]
    assert [row[0] for row in rows] == [shown["id"], after["id"], part["id"]]
    assert rows[0][1:] == ["gather", "data", "ready", anywhere.agent, shown["updated_at"]]
    everybody_s = tasks(anywhere).json("list", "--intent", intent_id)
    assert [one["id"] for one in everybody_s] == [row[0] for row in rows]
    pending = tasks(anywhere).json("list", "--intent", intent_id, "--status", "pending")
    assert [one["id"] for one in pending] == [after["id"]]
    assert len(tasks(anywhere).json("list", "--intent", intent_id, "--limit", "2")) == 2

    own = tasks(anywhere).succeed("list")
    assert columns(own) == ["id", "name", "status", "agent", "updated", "intent"]
    assert [line.split()[0] for line in own.splitlines()[2:]] == [shown["id"]]
    assert own.splitlines()[2].split()[-1] == intent_id


def test_history_is_shown_under_a_task(
    new_agent: Callable[..., Shell], agent: Shell, intent_id: str
) -> None:
    one, other = new_agent(), new_agent()
    task_id = tasks(agent).json("create", intent_id, "t", "--assign", one.agent)["id"]
    printed = tasks(agent).succeed("assign", task_id, other.agent)
    assert fields(printed)["assigned_agent"] == other.agent
    table = printed.partition("\n\n")[2]
    assert columns(table) == ["agent", "assigned", "by", "assigned", "taken", "up", "ended"]
    history = [line.split() for line in table.splitlines()[2:]]
    assert [row[:2] for row in history] == [[one.agent, agent.agent], [other.agent, agent.agent]]
    # The first had it from an instant to another, the second has it still.
    assert [len(row) for row in history] == [4, 3]
    assert tasks(one).json("list") == []
    assert [found["id"] for found in tasks(other).json("list")] == [task_id]
    assert tasks(other).json("assign", task_id, other.agent)["assigned_agent"] == other.agent


def test_cancelling_archives_what_was_remembered_for_it(
    new_agent: Callable[..., Shell], agent: Shell, intent_id: str
) -> None:
    worker = new_agent()
    task_id = tasks(agent).json("create", intent_id, "t", "--assign", worker.agent)["id"]
    worker.succeed("set", "notes", "k", '{"n": 1}', "--task", task_id)
    assert "can do this" in tasks(worker).refuse("cancel", task_id)
    assert fields(tasks(agent).succeed("cancel", task_id))["status"] == "cancelled"
    assert worker.json("query", "--task", task_id)["entries"] == []
    kinds = [event["type"] for event in intents(agent).json_lines("log", intent_id, "--json")]
    assert "memory.archived" in kinds


def test_finished_tasks_contain_their_result(
    server: ServerProcess, new_agent: Callable[..., Shell], agent: Shell, intent_id: str
) -> None:
    worker = new_agent()
    task_id = tasks(agent).json("create", intent_id, "t", "--assign", worker.agent)["id"]
    with server.client(worker.where[3]) as http:
        taken = http.post(f"/api/v1/tasks/{task_id}/claim", json={"lease_seconds": 30}).json()
        done = http.patch(
            f"/api/v1/tasks/{task_id}",
            headers={
                "If-Match": str(taken["task"]["version"]),
                "Fencing-Token": str(taken["lease"]["fencing_token"]),
            },
            json={"status": "completed", "output": {"total": 47}},
        )
        assert done.status_code == 200, done.text
    shown = fields(tasks(agent).succeed("show", task_id))
    assert (shown["status"], shown["output"]) == ("completed", '{"total":47}')
    # Who worked on it is told of it in its own stream, in a table and in JSON.
    table = worker.succeed("events")
    rows = [line.split() for line in table.splitlines()[2:]]
    assert [row[2] for row in rows] == [
        "task.created", "task.claimed", "lease_acquired", "task.completed",
    ]  # fmt: skip
    assert all(task_id in row for row in rows)
    events = worker.json_lines("events", "--json")
    assert {event["task_id"] for event in events} == {task_id}


def test_what_cannot_be_done_is_said(agent: Shell, intent_id: str) -> None:
    for arguments in (["show", "task_no"], ["cancel", "task_no"], ["assign", "task_no", "a"]):
        assert tasks(agent).refuse(*arguments) == "there is no such task"
    assert tasks(agent).refuse("create", "int_no", "t") == "there is no such intent"
    assert "--after names" in tasks(agent).refuse("create", intent_id, "t", "--after", "task_no")
    assert "--parent is" in tasks(agent).refuse("create", intent_id, "t", "--parent", "task_no")
    assert tasks(agent).refuse("create", intent_id, "")
    assert tasks(agent).refuse("list", "--intent", "int_no") == "there is no such intent"


def test_others_have_no_part_in_it(
    new_agent: Callable[..., Shell], agent: Shell, intent_id: str
) -> None:
    stranger = new_agent()
    task_id = tasks(agent).json("create", intent_id, "t")["id"]
    for arguments in (
        ["show", task_id],
        ["cancel", task_id],
        ["assign", task_id, stranger.agent],
        ["create", intent_id, "mine"],
        ["list", "--intent", intent_id],
    ):
        assert "not allowed" in tasks(stranger).refuse(*arguments)
    assert tasks(stranger).json("list") == []
    assert tasks(agent).json("show", task_id)["version"] == 1
