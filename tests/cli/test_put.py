"""put, behind a server and in a directory."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.shell import Shell, misuse, succeed


def test_put_creates_and_replaces(anywhere: Shell, tmp_path: Path) -> None:
    options = ("--type", "episodic", "--tag", "t", "--pinned", "--sensitivity", "restricted")
    made = anywhere.json("put", "patterns", "stripe", '{"n": 1}', *options)
    assert (made["version"], made["memory_type"], made["pinned"]) == (1, "episodic", True)
    text = tmp_path / "value.json"
    text.write_text('{"n": 2}', encoding="utf-8")
    changed = anywhere.json("put", "patterns", "stripe", f"@{text}")
    assert (changed["id"], changed["version"], changed["value"]) == (made["id"], 2, {"n": 2})
    kept = ("tags", "pinned", "sensitivity", "memory_type")
    assert {name: changed[name] for name in kept} == {name: made[name] for name in kept}
    shown = anywhere.succeed("put", "patterns", "stripe", '{"n": 3}', "--tag", "u")
    assert shown == anywhere.succeed("get", "patterns", "stripe")
    assert '"n": 3' in shown


def test_conditions_of_put(anywhere: Shell) -> None:
    name = ("put", "n", "k")
    assert "no entry" in anywhere.refuse(*name, "{}", "--if-match", "1")
    assert anywhere.json(*name, "{}", "--if-absent")["version"] == 1
    assert "exists" in anywhere.refuse(*name, "{}", "--if-absent")
    assert anywhere.json(*name, '{"n": 2}', "--if-match", "1")["version"] == 2
    assert "version" in anywhere.refuse(*name, "{}", "--if-match", "1")
    assert "not both" in misuse(*name, "{}", "--if-match", "1", "--if-absent")
    assert "JSON object" in anywhere.refuse(*name, "[1]")
    assert anywhere.json("get", "n", "k")["value"] == {"n": 2}


def test_put_in_a_session(anywhere: Shell) -> None:
    name = ("put", "chat", "topic", "--type", "session")
    first = anywhere.json(*name, '{"n": 1}', "--session", "s1", "--task", "task_1")
    second = anywhere.json(*name, '{"n": 2}', "--session", "s2")
    again = anywhere.json(*name, '{"n": 3}', "--session", "s1")
    assert (again["id"], again["version"]) == (first["id"], 2)
    assert again["scope"] == {"task_id": "task_1", "session_id": "s1"}
    assert second["id"] != first["id"]


def test_put_by_the_name_of_its_operation(anywhere: Shell) -> None:
    name = ("--namespace", "n", "--key-name", "k", "--memory-type", "working")
    call = ("call", "put_entry", *anywhere.where, *name)
    made = json.loads(succeed(*call, "--value", '{"n": 1}', "--if-none-match", "*"))
    assert made["version"] == 1
    changed = json.loads(succeed(*call, "--value", '{"n": 2}', "--if-match", "1"))
    assert (changed["id"], changed["version"]) == (made["id"], 2)
    merge = ("--media-type", "application/merge-patch+json", "--value", '{"m": 3, "n": null}')
    merged = ("call", "update_entry", "--entry-id", made["id"], "--if-match", "2", *merge)
    assert json.loads(succeed(*merged, *anywhere.where))["value"] == {"m": 3}
