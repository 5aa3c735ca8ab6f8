"""context: compiling and showing a context."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.groups import fields, group
from tests.cli.shell import Shell, misuse, new_directory


def test_a_context_is_compiled_at_the_command_line(tmp_path: Path) -> None:
    data = tmp_path / "data"
    new_directory(data, "ada")
    shell = Shell("ada", ("--data", str(data), "--agent", "ada"))
    sessions = group("sessions")(shell)
    one = fields(sessions.succeed("create", "--user", "ann"))["id"]
    sessions.succeed("add", one, "user", "The invoice is 89 euros.")
    text = shell.succeed("context", "--session", one, "--window", "2000", "How much is it?")
    assert "89 euros" in text
    rows = [line.split() for line in text.splitlines()]
    turns, user, total = (next(row for row in rows if row[:1] == [name])
                          for name in ("turns", "user", "total"))  # fmt: skip
    assert turns[1] == user[1] == "1"
    assert int(turns[2]) + int(user[2]) == int(total[2])
    assert total[3] == "1,744"
    assert "window 2,000, of which 256 are for the output" in text
    asked = shell.json("context", "--session", one, "--message", "How?", "--format", "openai")
    made = json.loads(
        shell.succeed("context", "--session", one, "--json", "--format", "openai", "How?")
    )
    assert asked["messages"] == made["messages"]
    assert "--message" in misuse("context", "How?", "--message", "How?")
    assert made["messages"][-1] == {"role": "user", "content": "How?"}
    shown = shell.succeed("context", "--session", one, "--format", "openai", "How?")
    assert json.dumps(made["messages"][-1]["content"]) in shown
    assert "89 euros" in shell.succeed("context", "--show", made["id"])
    assert "window" in shell.refuse("context", "--window", "5", "a message that is too long for it")


def test_every_field_of_a_context_is_an_option(tmp_path: Path) -> None:
    data = tmp_path / "data"
    new_directory(data, "ada")
    shell = Shell("ada", ("--data", str(data), "--agent", "ada"))
    noted = shell.json("put", "notes", "a", '{"text": "The invoice is 89 euros."}')["id"]
    shell.succeed("put", "notes", "b", '{"text": "Another invoice."}', "--type", "episodic")
    made = shell.json(
        "context", "invoice?", "--tools", '[{"name": "look"}]', "--counter", "estimate",
        "--budgets", '{"episodic": 0.5}', "--memories", "0", "--format", "anthropic",
    )  # fmt: skip
    assert [tool["name"] for tool in made["tools"]] == ["look"]
    assert "episodic" not in [one["name"] for one in made["segments"]]
    made = shell.json("context", "invoice?", "--budgets", '{"episodic": 50}')
    budgets = {one["name"]: one["budget"] for one in made["segments"]}
    assert budgets["episodic"] <= 50
    used = [item["id"] for one in made["segments"] for item in one["items"]
            if one["name"] == "episodic"]  # fmt: skip
    judged = shell.json(
        "context", "--show", made["id"], "--outcome", "corrected", "--used", used[0], "--used",
        used[0], "--correction", "It is 98.",
    )  # fmt: skip
    assert (judged["outcome"], judged["counted"]) == ("corrected", used)
    assert "--show" in misuse("context", "--outcome", "success")
    assert "--outcome" in misuse("context", "--used", noted)
    assert "--budgets" in misuse("context", "x", "--budgets", "x")
