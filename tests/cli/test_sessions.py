"""sessions: every subcommand."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.groups import fields, group
from tests.cli.shell import Shell, misuse, new_directory, succeed

sessions = group("sessions")


def test_a_session_is_held_at_the_command_line(tmp_path: Path) -> None:
    data = tmp_path / "data"
    new_directory(data, "ada")
    ada = sessions(Shell("ada", ("--data", str(data), "--agent", "ada")))
    one = fields(ada.succeed("create", "--user", "ann", "--title", "Refund"))["id"]
    assert "invoice" in ada.succeed("add", one, "user", "The invoice is 89 euros.")
    ada.succeed("add", one, "assistant", "Hi", "--client-id", "c1")
    assert [turn["sequence"] for turn in ada.json("turns", one)] == [1, 2]
    assert ada.json("checkpoint", one, "--state", '{"a": 1}')["number"] == 1
    assert [made["number"] for made in ada.json("checkpoints", one)] == [1]
    assert "user_request" in ada.succeed("checkpoints", one)
    assert "object" in ada.refuse("checkpoint", one, "--state", "[]")
    assert "89 euros" in ada.succeed("resume", one)
    assert ada.json("resume", one)["session"]["state"] == {"a": 1}
    assert ada.json("participants", one, "--add", "bob", "--access", "read") == [
        {"agent_id": "bob", "access": "read"}
    ]
    assert "bob" not in ada.succeed("participants", one, "--remove", "bob")
    assert fields(ada.succeed("create", "--user", "ann", "--reuse"))["id"] == one
    found = Shell("ada", ada.where).succeed("recall", "invoice euros")
    assert "The invoice is 89 euros." in found
    assert "sequence" not in found
    assert f"turn 1 of {one}" in found
    listed = ada.succeed("list", "--status", "open")
    assert "last activity" in listed
    assert one in listed
    assert "API key" in ada.refuse("token", one, "--ttl", "PT1H")
    fork = ada.json("fork", one, "--at", "1")
    assert fork["continues"] == one
    assert ada.json("match", "--user", "ann", "Hello")["method"]
    assert "session" in ada.succeed("match", "--user", "ann", "Hello")
    assert len(ada.json("export", one)["turns"]) == 2
    assert fields(ada.succeed("remove-turns", one, "2"))["turns"] == "1"
    assert fields(ada.succeed("clear", one))["turns"] == "0"
    assert fields(ada.succeed("close", one, "--reason", "solved"))["status"] == "closed"
    assert ada.json("archive", fork["id"])["status"] == "archived"
    assert [session["id"] for session in ada.json("list", "--status", "closed")] == [one]
    assert "Refund" in ada.succeed("list", "--user", "ann")
    assert ada.json("show", one)["title"] == "Refund"
    assert ada.succeed("delete", one) == ""
    assert "no such session" in ada.refuse("show", one)
    misuse("sessions", "add", one, "robot", "text")


def test_a_session_with_metadata_is_found_continued_and_followed(tmp_path: Path) -> None:
    data = tmp_path / "data"
    new_directory(data, "ada")
    where = ("--data", str(data), "--agent")
    ada, bob = (sessions(Shell(name, (*where, name))) for name in ("ada", "bob"))
    labels = ("--metadata", "channel=mail", "--metadata", "priority=2")
    one = ada.json("create", "--user", "ann", *labels)
    assert one["metadata"] == {"channel": "mail", "priority": 2}
    assert [found["id"] for found in ada.json("list", *labels)] == [one["id"]]
    assert ada.json("list", "--metadata", "priority=3") == []
    assert "NAME=VALUE" in ada.refuse("list", "--metadata", "priority")
    ada.json("participants", one["id"], "--add", "bob")
    assert [found["id"] for found in bob.json("list", "--participating")] == [one["id"]]
    ada.succeed("add", one["id"], "user", "The invoice is 89 euros.")
    ada.succeed("checkpoint", one["id"], "--state", '{"a": 1}')
    next_one = ("--user", "ann", "--continues", one["id"], "--with-state")
    continued = ada.json("create", *next_one)
    assert continued["state"] == {"a": 1}
    assert "89 euros" in ada.json("resume", continued["id"])["summary"]
    ada.succeed("close", one["id"])
    statuses = [event["data"]["status"] for event in ada.json("events", one["id"])]
    assert statuses == ["active", "active", "checkpointed", "closed"]
    assert "checkpointed" in ada.succeed("events", one["id"])
    assert "closed" in ada.refuse("resume", one["id"], "--reopen")


def test_messages_name_options_and_arguments(tmp_path: Path) -> None:
    data = tmp_path / "data"
    new_directory(data, "ada")
    shell = Shell("ada", ("--data", str(data), "--agent", "ada"))
    ada = sessions(shell)
    one = ada.json("create")["id"]
    assert ada.refuse("fork", one, "--at", "99").startswith("--at is after the last turn")
    assert ada.refuse("create", "--idle-timeout", "P1M").startswith("--idle-timeout must not have")
    large = ada.refuse("add", one, "user", "x" * 17_000_000)
    assert large.startswith("TEXT may have at most 16777216 bytes")
    assert ada.refuse("add", one, "user", "x", "--client-id", "").startswith("--client-id must")
    shell.succeed("put", "notes", "a", "{}")
    assert "without --if-absent" in shell.refuse("put", "notes", "a", "{}", "--if-absent")
    assert shell.refuse("put", "notes", " a", "{}").startswith("KEY must have")
    called = shell.refuse("context", "hi", "--window", "9", "--system", "word " * 50)
    assert called.startswith("--window must be at least")
    file = data.with_name("chat.db")
    file.touch()
    for command in (("sessions", "list", "--agent", "ada"), ("status",)):
        assert "the directory that holds the database" in misuse(*command, "--data", str(file))


def test_commands_act_inside_a_session(tmp_path: Path) -> None:
    data = tmp_path / "data"
    new_directory(data, "ada")
    ada = Shell("ada", ("--data", str(data), "--agent", "ada"))
    made = [sessions(ada).json("create", *subject)["id"] for subject in ((), ("--user", "ann"))]
    for one in made:
        inside = ("--in-session", one)
        ada.succeed("set", "notes", "order", '{"number": 17}', "--type", "session", *inside)
        ada.succeed("set", "notes", "order", '{"number": 18}', "--type", "session", *inside)
        shown = json.loads(ada.succeed("get", "notes", "order", "--json", *inside))
        assert (shown["value"], shown["scope"]["session_id"]) == ({"number": 18}, one)
        assert "18" in ada.succeed("query", "--type", "session", *inside)
        called = succeed("call", "get_entry", "--entry-id", shown["id"], *ada.where, *inside)
        assert json.loads(called)["value"] == {"number": 18}
    other = ada.refuse("get", shown["id"], "--in-session", made[0])
    assert other == ada.refuse("get", "mem_absent", "--in-session", made[0])
    assert "no such session" in ada.refuse("query", "--in-session", "absent")


def test_every_field_of_a_session_is_an_option(tmp_path: Path) -> None:
    data = tmp_path / "data"
    new_directory(data, "ada")
    ada = sessions(Shell("ada", ("--data", str(data), "--agent", "ada")))
    made = ada.json(
        "create", "--policy", '{"personal_data": "mask", "retention": "30d"}', "--state",
        '{"order": 17}', "--participant", "bob", "--participant", "cal=read",
        "--token-budget", "900", "--ends-at", "2199-01-01T00:00:00Z",
    )  # fmt: skip
    assert made["policy"] == {"personal_data": "mask", "retention": "P30D"}
    assert (made["state"], made["token_budget"]) == ({"order": 17}, 900)
    assert made["ends_at"] == "2199-01-01T00:00:00.000Z"
    given = [(one["agent_id"], one.get("access", "append")) for one in made["participants"]]
    assert given == [("bob", "append"), ("cal", "read")]
    one = made["id"]
    changed = ada.json("update", one, "--title", "x", "--policy", '{"checkpoint_turns": 0}')
    assert (changed["title"], changed["state"]) == ("x", {"order": 17})
    assert changed["policy"]["personal_data"] == "mask"
    assert "version" in ada.refuse("update", one, "--title", "y", "--if-version", "1")
    assert ada.json("show", one)["title"] == "x"
    older = ada.json("list", "--before", ada.json("create")["id"])
    assert [session["id"] for session in older] == [one]
    assert "not JSON" in misuse("sessions", "create", "--state", "{")
    assert "--token-budget" in misuse("sessions", "create", "--token-budget", "0")
    assert "access` must be" in ada.refuse("create", "--participant", "bob=own")
    entry = ada.json("checkpoint", one, "--trigger", "error_recovery", "--working", '[{"a": 1}]')
    assert (entry["trigger"], entry["working"]) == ("error_recovery", [{"a": 1}])
    for number in range(3):
        ada.succeed("add", one, "user", str(number))
    assert len(ada.json("resume", one, "--replay", "2")["turns"]) == 2


def test_turns_are_added_with_every_field_and_from_the_standard_input(tmp_path: Path) -> None:
    data = tmp_path / "data"
    new_directory(data, "ada")
    ada = sessions(Shell("ada", ("--data", str(data), "--agent", "ada")))
    one = ada.json("create")["id"]
    texts = ("-5 degrees", "-hot", "--url is wrong", "- a", "-")
    for text in texts:
        assert ada.json("add", one, "user", text, "--name", "-ann")[0]["content"] == text
        assert ada.json("add", "--name", "-ann", one, "user", text)[0]["name"] == "-ann"
    assert "--json" in ada.succeed("add", one, "user", "--", "--json")
    assert "TEXT" in misuse("sessions", "add", *ada.where, one, "user")
    (turn,) = ada.json(
        "add", one, "assistant", "--tool-calls", '[{"id": "c1", "name": "find"}]',
        "--source", "file:a", "--valid-for", "10m", "--untrusted",
    )  # fmt: skip
    assert (turn["content"], turn["tool_calls"]) == ("", [{"id": "c1", "name": "find"}])
    assert (turn["source"], turn["trusted"]) == ("file:a", False)
    assert turn["valid_until"] > turn["created_at"]
    (turn,) = ada.json("add", one, "tool", "done", "--tool-call-id", "c1", "--client-id", "r1")
    assert (turn["tool_call_id"], turn["client_id"]) == ("c1", "r1")
    assert 'find(order=17, at="Bonn")' in ada.succeed(
        "add", one, "assistant", "--tool-calls",
        '[{"id": "c9", "name": "find", "arguments": {"order": 17, "at": "Bonn"}}]',
    )  # fmt: skip
    first = turn["sequence"] + 2
    lines = [json.dumps({"role": "user", "content": f"Turn {at}"}) for at in range(149)]
    part = {"type": "tool_use", "id": "c2", "name": "find", "input": {}}
    lines += ["", json.dumps({"role": "assistant", "content": [part]})]
    added = ada.json("add", one, "-", "--source", "file:b", input="\n".join(lines))
    assert [turn["sequence"] for turn in added] == list(range(first, first + 150))
    assert {turn["source"] for turn in added} == {"file:b"}
    assert added[-1]["tool_calls"][0]["id"] == "c2"
    # Each is larger than an entry, and two are larger than a request.
    large = [json.dumps({"role": "user", "content": f"{at} " * 4_000_000}) for at in range(2)]
    added = ada.json("add", one, "-", input="\n".join(large))
    assert [turn["attachments"][0]["size"] for turn in added] == [8_000_000] * 2
    assert ada.refuse("add", one, "-", input="{}\n[]") == "line 2 must be a JSON object"
    assert "TEXT" in misuse("sessions", "add", *ada.where, one, "-", "text")


def test_bytes_are_text_in_base64(tmp_path: Path) -> None:
    data = tmp_path / "data"
    new_directory(data, "ada")
    ada = Shell("ada", ("--data", str(data), "--agent", "ada"))
    one = sessions(ada).json("create")["id"]
    state = ("--session-id", one, "--name", "a", *ada.where)
    succeed("call", "put_saved_state", "--data-name", "aGVsbG8=", *state)
    assert json.loads(succeed("call", "get_saved_state", *state))["data"] == "aGVsbG8="
