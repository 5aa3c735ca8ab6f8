"""remember and recall, behind a server and in a directory."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from memorywall.records.principal import Permission
from tests.cli.shell import Shell, misuse


def test_metadata_of_a_remembered_text(anywhere: Shell) -> None:
    made = anywhere.json("remember", "Ana likes tea", "--metadata", '{"channel": "email"}')
    assert made["value"] == {"text": "Ana likes tea", "metadata": {"channel": "email"}}
    for other in ("[1]", "email"):
        assert "--metadata" in anywhere.refuse("remember", "x", "--metadata", other)


def test_what_is_remembered_is_recalled(anywhere: Shell) -> None:
    made = anywhere.json("remember", "Ana", "prefers invoices as PDF", "--tag", "habit")
    assert (made["memory_type"], made["namespace"]) == ("episodic", "remembered")
    assert (made["value"], made["tags"]) == ({"text": "Ana prefers invoices as PDF"}, ["habit"])
    found = anywhere.json("recall", "invoices?", "--limit", "1")
    assert [hit["entry"]["id"] for hit in found["results"]] == [made["id"]]
    assert (found["searched"], found["pending"]) == (1, 0)
    shown = anywhere.succeed("recall", "which invoices")
    assert "Ana prefers invoices as PDF" in shown
    _, namespace, key = shown.splitlines()[2].split()[3].split("/")
    assert anywhere.json("get", namespace, key)["id"] == made["id"]
    assert anywhere.succeed("recall", "weather") == "nothing found\n"


def test_memory_of_one_person_is_hidden_from_another(anywhere: Shell) -> None:
    anywhere.succeed("remember", "prefers invoices as PDF", "--user", "ana")
    assert anywhere.json("recall", "invoices", "--user", "ana")["results"]
    assert anywhere.json("recall", "invoices", "--user", "bob")["results"] == []


def test_user_binds_and_about_filters(anywhere: Shell) -> None:
    both = ("--user", "ana", "--user", "bob")
    anywhere.succeed("remember", "nobody likes tea")
    anywhere.succeed("remember", "ana likes tea", "--user", "ana")
    together = anywhere.json("remember", "both like tea", *both)
    assert (together["subjects"], together["namespace"]) == (["ana", "bob"], "remembered")
    seen = {(): 3, both: 3, ("--user", "ana"): 2, ("--user", "bob"): 1, ("--about", "ana"): 2}
    for options, number in seen.items():
        assert len(anywhere.json("query", *options)["entries"]) == number, options
        assert len(anywhere.json("search", "tea", *options)["results"]) == number, options
    assert len(anywhere.json("recall", "tea", *both)["results"]) == 3
    put = anywhere.json("put", "prefs", "tea", "{}", "--type", "episodic", "--user", "ana")
    assert put["namespace"] == "user/ana/prefs"
    assert anywhere.json("get", "prefs", "tea", "--user", "ana")["id"] == put["id"]
    assert "comma" in anywhere.refuse("query", "--user", "ana,bob")


def test_empty_text_is_refused(anywhere: Shell) -> None:
    assert "text" in anywhere.refuse("remember", " ")
    assert "TEXT" in misuse("remember")


def test_what_is_not_worth_keeping_is_told(anywhere: Shell) -> None:
    thanks = anywhere.run("remember", "Thanks!")
    assert thanks.stderr == "not worth keeping, by the rule small_talk\n"
    first = anywhere.json("remember", "Ana likes tea.")
    assert first["worthiness"] == {"worthy": True, "rule": "fact"}
    again = anywhere.json("remember", "Recalled: Ana likes tea")
    assert (again["id"], again["worthiness"]["rule"]) == (first["id"], "duplicate")


def test_what_is_not_worth_keeping_may_be_refused(
    new_agent: Callable[..., Shell], tmp_path: Path
) -> None:
    chief = new_agent(*(word for one in Permission for word in ("--permission", one.value)))
    shown = chief.run("worthiness")
    assert "small_talk" in shown.stdout
    assert shown.stderr == "mode: mark, set by the server\n"
    assert chief.json("worthiness", "set", "refuse")["mode"] == "refuse"
    assert "small_talk" in chief.refuse("remember", "Thanks!")
    texts = ("Hello!", "Ben likes tea.", "Where is it?")
    lines = [
        {"namespace": "n", "key": text, "memory_type": "episodic", "value": {"text": text}}
        for text in texts
    ]
    file = tmp_path / "lines.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    told = chief.run("import", str(file)).stderr.splitlines()
    assert told == [
        "1 entry imported, 2 skipped",
        "not worth keeping: 2 (2 refused); small_talk (1), question (1)",
    ]
    as_is = chief.run("import", "--as-is", "--skip-existing", str(file)).stderr
    assert as_is == "2 entries imported, 1 skipped\n"
    chat = tmp_path / "chat.jsonl"
    said = ({"role": "user", "content": "Hi!"}, {"role": "assistant", "content": "Hello!"})
    chat.write_text("\n".join(map(json.dumps, said)))
    told = chief.run("import-chat", str(chat)).stderr.splitlines()
    assert told == [
        "1 message imported, 0 existed already",
        "not worth keeping: 2 (1 refused); small_talk (2)",
    ]
    assert chief.json("worthiness", "set", "default")["is_own"] is False
