"""intents: list, create, show and log."""

from __future__ import annotations

from collections.abc import Callable

from tests.cli.groups import fields, intents, tasks
from tests.cli.shell import Shell, columns


def test_created_record_is_returned_and_listed(anywhere: Shell) -> None:
    made = intents(anywhere).succeed("create", "Close the books", "--description", "of Q3")
    shown = fields(made)
    assert shown["id"].startswith("int_")
    assert (shown["title"], shown["description"]) == ("Close the books", "of Q3")
    assert (shown["status"], shown["created_by"]) == ("active", anywhere.agent)
    assert "state" not in shown
    assert intents(anywhere).succeed("show", shown["id"]) == made
    whole = intents(anywhere).json("show", shown["id"])
    assert (whole["id"], whole["state"], whole["version"]) == (shown["id"], {}, 1)

    second = intents(anywhere).json("create", "Another")
    table = intents(anywhere).succeed("list")
    assert columns(table) == ["id", "title", "status", "made", "by", "updated"]
    rows = [line.split() for line in table.splitlines()[2:]]
    assert [row[0] for row in rows] == [second["id"], shown["id"]]
    assert rows[1][1:6] == ["Close", "the", "books", "active", anywhere.agent]
    assert [one["id"] for one in intents(anywhere).json("list", "--limit", "1")] == [second["id"]]
    assert intents(anywhere).json("list", "--status", "completed") == []
    assert len(intents(anywhere).json("list", "--status", "active")) == 2


def test_the_log_tells_what_happened(anywhere: Shell) -> None:
    intent_id = intents(anywhere).json("create", "Close the books")["id"]
    task_id = tasks(anywhere).json("create", intent_id, "gather", "--assign", anywhere.agent)["id"]
    anywhere.succeed("set", "notes", "progress", '{"secret": "sk-1"}', "--task", task_id)
    tasks(anywhere).succeed("cancel", task_id)
    table = intents(anywhere).succeed("log", intent_id)
    rows = [line.split() for line in table.splitlines()[2:]]
    kinds = ["intent_created", "task.created", "memory.created", "memory.archived"]
    assert [row[2] for row in rows][:4] == kinds
    assert "task.cancelled" in [row[2] for row in rows]
    assert {row[-1] for row in rows} == {anywhere.agent}
    assert intent_id in table
    assert task_id in table
    assert "sk-1" not in table

    events = intents(anywhere).json_lines("log", intent_id, "--json")
    assert [event["type"] for event in events] == [row[2] for row in rows]
    (archived,) = (event for event in events if event["type"] == "memory.archived")
    assert archived["task_id"] == task_id
    assert archived["data"]["snapshot"][0]["value"] == {"secret": "sk-1"}

    first = events[0]["seq"]
    later = intents(anywhere).json_lines(
        "log", intent_id, "--json", "--after", str(first), "--limit", "1"
    )
    assert later == [events[1]]


def test_only_participants_may_read_an_intent(new_agent: Callable[..., Shell]) -> None:
    one, other = new_agent(), new_agent()
    intent_id = intents(one).json("create", "private")["id"]
    for command in ("show", "log"):
        assert "not allowed" in intents(other).refuse(command, intent_id)
    assert intents(other).json("list") == []
    tasks(one).succeed("create", intent_id, "for the other", "--assign", other.agent)
    assert [found["id"] for found in intents(other).json("list")] == [intent_id]
    assert intents(other).json("show", intent_id)["title"] == "private"


def test_what_is_not_there_is_said(anywhere: Shell) -> None:
    for command in ("show", "log"):
        assert intents(anywhere).refuse(command, "int_nosuch") == "there is no such intent"
    assert intents(anywhere).refuse("create", "")
