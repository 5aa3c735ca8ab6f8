"""`memorywall query` and `memorywall history`: conditions, orders and output formats."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from tests.cli.shell import Shell, misuse, new_directory


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    data = tmp_path / "data"
    new_directory(data, "billing")
    shell = Shell("billing", ("--data", str(data), "--agent", "billing"))
    for number, tier in enumerate(("gold", "silver", "gold")):
        value = json.dumps({"tier": tier, "note": 'a "b",\nc', "n": number})
        shell.succeed("set", "n", f"k{number}", value, "--type", "semantic", "--tag", "t")
    return shell


def test_conditions_orders_and_counts(shell: Shell) -> None:
    gold = ("--where", 'value.tier = "gold"')
    assert shell.succeed("query", *gold, "--count") == "2\n"
    page = shell.json("query", *gold, "--order-by", "key", "--direction", "asc")
    assert [one["key"] for one in page["entries"]] == ["k0", "k2"]
    assert page["total"] == 2
    assert "2 of 2 entries" in shell.succeed("query", *gold)
    assert shell.succeed("query", "--key-prefix", "k1", "--count") == "1\n"
    shell.succeed("delete", *gold, "--yes")
    assert shell.succeed("query", "--count") == "1\n"


def test_formats(shell: Shell) -> None:
    lines = shell.succeed("query", "--format", "jsonl", "--order-by", "key").splitlines()
    assert [json.loads(line)["key"] for line in lines] == ["k0", "k1", "k2"]
    everything = shell.succeed("query", "--format", "jsonl", "--all").splitlines()
    assert sorted(everything) == sorted(lines)
    rows = list(csv.reader(io.StringIO(shell.succeed("query", "--format", "csv", "--limit", "1"))))
    assert rows[0] == ["id", "type", "namespace", "key", "version", "updated", "tags", "value"]
    assert (rows[1][3], json.loads(rows[1][7])["note"]) == ("k2", 'a "b",\nc')
    fields = ("--fields", "key,value.n,tags,pinned", "--order-by", "key")
    printed = shell.succeed("query", *fields, "--format", "csv", "--limit", "2")
    assert printed == 'key,value.n,tags,pinned\nk0,0,"[""t""]",false\nk1,1,"[""t""]",false\n'
    listed = json.loads(shell.succeed("query", "--fields", "value.n", "--format", "json"))
    assert listed == [{"value.n": 2}, {"value.n": 1}, {"value.n": 0}]
    assert "value.n" in shell.succeed("query", *fields)
    nothing = ("--where", "value.n > 5", "--format", "csv")
    assert shell.succeed("query", *fields, *nothing) == "key,value.n,tags,pinned\n"


def test_invalid_condition_is_shown_with_a_caret(shell: Shell) -> None:
    text = misuse("query", "--where", "value.a =", *shell.where)
    assert "column 10" in text
    assert "\nvalue.a =\n         ^" in text


def test_history(shell: Shell) -> None:
    entry = shell.json("get", "n", "k0")
    shell.succeed("set", "n", "k0", "{}")
    versions = shell.json("history", entry["id"])
    assert [one["version"] for one in versions] == [2, 1]
    assert versions[1]["value"] == entry["value"]
    assert shell.succeed("history", entry["id"], "--limit", "1").count("mem_") == 1
