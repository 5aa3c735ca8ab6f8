"""What somebody who knows another tool tries first."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.shell import Shell, misuse, new_directory, refuse, succeed
from tests.support.backend import environment_of


@pytest.mark.parametrize(
    ("word", "command"),
    [
        ("add", "remember"),
        ("gett", "get"),
        ("hset", "merge"),
        ("info", "status"),
        ("list", "query"),
        ("subscribe", "watch"),
        ("expire", "put --ttl"),
        ("version", "--version"),
    ],
)
def test_a_word_of_another_tool_leads_to_a_command(word: str, command: str) -> None:
    assert f"Do you mean `memorywall {command}`?" in misuse(word)


def test_a_word_that_resembles_nothing_gets_no_suggestion() -> None:
    assert "Do you mean" not in misuse("zzzzzz")


def test_lifetimes_histories_and_exports(tmp_path: Path) -> None:
    data = tmp_path / "data"
    new_directory(data, "billing")
    shell = Shell("billing", ("--data", str(data), "--agent", "billing"))
    made = shell.json("put", "cache", "foo", '{"v": 1}', "--ttl", "60s", "--type", "semantic")
    assert made["ttl"] == "duration:PT60S"
    for ttl in ("60", "PT60S"):
        again = shell.json("put", "cache", ttl, "{}", "--ttl", ttl, "--type", "episodic")
        assert again["ttl"] == "duration:PT60S"
    said = shell.refuse("put", "cache", "foo", "{}", "--ttl", "1h30m", "--type", "semantic")
    assert "--ttl must be a duration such as `60s`" in said
    shell.succeed("put", "cache", "foo", '{"v": 2}', "--type", "semantic")
    versions = shell.json("history", "cache", "foo")
    assert [one["version"] for one in versions] == [2, 1]
    assert shell.json("history", made["id"]) == versions
    assert "no entry" in shell.refuse("history", "cache", "bar")
    misuse("history", "--data", str(data), "a", "b", "c")
    shell.succeed("remember", "I like tea", "--user", "ana")
    about_ana = shell.json("query", "--subject", "ana")["entries"]
    assert [one["subjects"] for one in about_ana] == [["ana"]]
    assert about_ana[0] in shell.json("query", "--user", "ana")["entries"]
    file = tmp_path / "entries.jsonl"
    shell.succeed("export", "--output", str(file))
    assert file.stat().st_mode & 0o777 == 0o600
    assert len(file.read_text().splitlines()) == 4


def test_a_condition_on_the_status_alone_is_explained(tmp_path: Path) -> None:
    data = tmp_path / "data"
    new_directory(data, "billing")
    shell = Shell("billing", ("--data", str(data), "--agent", "billing"))
    shell.succeed("put", "orders", "one", '{"status": "open"}', "--type", "episodic")
    asked = shell.run("query", "--where", 'status = "open"')
    assert "0 of 0 entries" in asked.stdout
    assert "`value.status`" in asked.stderr
    assert "--key-name KEY" in shell.refuse("delete", "orders", "one")
    assert "--key-name" not in shell.refuse("delete", "mem_absent")
    found = shell.run("query", "--where", 'value.status = "open"')
    assert ("1 of 1 entry\n" in found.stdout, found.stderr) == (True, "")
    assert "`value.customer`" in misuse(
        "query", "--data", str(data), "--agent", "billing", "--where", 'customer = "ana"'
    )


def test_the_history_of_a_remembered_text_is_who_changed_it_when(tmp_path: Path) -> None:
    data = tmp_path / "data"
    new_directory(data, "billing")
    shell = Shell("billing", ("--data", str(data), "--agent", "billing"))
    made = shell.json("put", "notes", "one", '{"text": "first"}', "--type", "episodic")
    shell.succeed("put", "notes", "one", '{"text": "second"}', "--type", "episodic")
    shown = shell.succeed("history", made["id"])
    events = [line.split()[1:] for line in shown.splitlines() if "memory." in line]
    assert events == [["memory.updated", "billing", "2"], ["memory.created", "billing", "1"]]
    assert "first" not in shown


def test_a_directory_and_an_agent_can_be_named_by_variables(tmp_path: Path) -> None:
    data = tmp_path / "data"
    new_directory(data, "billing")
    named = {"MEMORYWALL_DATA": str(data), **environment_of(data)}
    assert "MEMORYWALL_AGENT" in refuse("query", variables=named)
    named["MEMORYWALL_AGENT"] = "billing"
    succeed("remember", "I like tea", variables=named)
    assert "I like tea" in succeed("search", "tea", variables=named)
    # A server that is named is asked, and not the directory.
    refused = refuse("query", "--url", "http://127.0.0.1:1", variables=named)
    assert "MEMORYWALL_API_KEY" in refused
