"""`memorywall schemas`, and the versions that `get` and `query` name."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.groups import group
from tests.cli.shell import Shell, new_directory

schemas = group("schemas")


def test_schemas_are_set_shown_checked_and_deleted(tmp_path: Path) -> None:
    new_directory(tmp_path / "data", "chief")
    chief = Shell("chief", ("--data", str(tmp_path / "data"), "--agent", "chief"))
    space, own = "space", schemas(chief)
    text = tmp_path / "schema.json"
    text.write_text('{"required": ["n"]}', encoding="utf-8")
    put = ("put", space, "count", str(text))
    assert own.succeed(*put, "--version", "1.0.0", "--key-pattern", "c*") == "count 1.0.0\n"
    assert "`n`" in chief.refuse("put", space, "c1", "{}", "--type", "semantic")
    entry = chief.json("put", space, "c1", '{"n": 1}', "--type", "semantic")
    text.write_text('{"required": ["n", "m"]}', encoding="utf-8")
    breaking = own.refuse(*put, "--version", "1.1.0", "--key-pattern", "c*")
    assert "`/required`" in breaking
    assert own.succeed(*put, "--version", "2.0.0", "--key-pattern", "c*") == "count 2.0.0\n"
    lines = own.succeed("list", space).splitlines()[2:]
    assert [line.split()[:3] for line in lines] == [
        ["count", "1.0.0", "c*"],
        ["count", "2.0.0", "c*"],
    ]
    assert json.loads(own.succeed("get", space, "count"))["schema"] == {"required": ["n", "m"]}
    older = json.loads(own.succeed("get", space, "count", "--version", "1"))
    assert older["version"] == "1.0.0"
    checked = json.loads(own.succeed("check", space, "--json"))
    assert [one["entry_id"] for one in checked["violations"]] == [entry["id"]]
    assert own.succeed("check", space).endswith("1 entries checked\n")
    assert chief.json("get", space, "c1", "--schema-version", "1") == entry
    assert "version" in chief.refuse("get", space, "c1", "--schema-version", "2")
    found = chief.json("query", "--namespace", space, "--schema-version", "2")
    assert (found["entries"], found["total"]) == ([], 1)
    lines_file = tmp_path / "lines.jsonl"
    lines_file.write_text(json.dumps({**entry, "key": "c2", "value": {}}) + "\n", encoding="utf-8")
    assert "`n`" in chief.refuse("import", str(lines_file))
    text.write_text("[]", encoding="utf-8")
    assert "JSON object" in own.refuse(*put, "--version", "3.0.0")
    assert own.succeed("delete", space, "count") == "count is deleted\n"
    assert json.loads(own.succeed("list", space, "--json")) == []
