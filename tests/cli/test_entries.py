"""get, set, query and delete, behind a server and in a directory."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.cli.shell import Shell, columns, misuse
from tests.support.process import ServerProcess

VALUE = '{"completed": 23, "last_id": "inv_789"}'


def test_what_is_set_is_shown_and_can_be_got(anywhere: Shell) -> None:
    made = anywhere.succeed("set", "invoices", "progress", VALUE, "--tag", "batch", "--tag", "new")
    fields = dict(line.split(maxsplit=1) for line in made.splitlines() if line[0] != " ")
    assert fields["id"].startswith("mem_")
    assert fields["agent_id"] == anywhere.agent
    assert (fields["namespace"], fields["key"]) == ("invoices", "progress")
    assert (fields["memory_type"], fields["version"]) == ("working", "1")
    assert fields["tags"] == "batch, new"
    assert '"last_id": "inv_789"' in made

    assert anywhere.succeed("get", "invoices", "progress") == made
    assert anywhere.succeed("get", fields["id"]) == made

    entry = anywhere.json("get", "invoices", "progress")
    assert entry["id"] == fields["id"]
    assert entry["value"] == json.loads(VALUE)
    assert entry["tags"] == ["batch", "new"]
    assert anywhere.json("get", fields["id"]) == entry


def test_repeated_setting_changes_only_given_fields(anywhere: Shell) -> None:
    options = ("--type", "episodic", "--tag", "t", "--priority", "high", "--pinned")
    first = anywhere.json("set", "patterns", "stripe", VALUE, *options)
    assert (first["memory_type"], first["priority"], first["pinned"]) == ("episodic", "high", True)
    second = anywhere.json("set", "patterns", "stripe", '{"seen": 2}')
    assert second["version"] == 2
    assert second["id"] == first["id"]
    assert second["value"] == {"seen": 2}
    assert (second["tags"], second["priority"], second["pinned"]) == (["t"], "high", True)
    third = anywhere.json("set", "patterns", "stripe", "{}", "--not-pinned", "--tag", "u")
    assert (third["version"], third["pinned"], third["tags"]) == (3, False, ["u"])


def test_earlier_versions_are_shown(anywhere: Shell) -> None:
    space = f"facts-{anywhere.agent}"
    first = anywhere.json("set", space, "k", '{"n": 1}', "--type", "semantic")
    then = first["updated_at"]
    # An update in the same millisecond would be the version of that instant.
    while anywhere.json("set", space, "k", '{"n": 2}')["updated_at"] <= then:
        pass
    for asked in (("--version", "1"), ("--as-of", then)):
        assert anywhere.json("get", space, "k", *asked)["value"] == {"n": 1}
        assert anywhere.json("get", first["id"], *asked)["value"] == {"n": 1}
    page = anywhere.json("query", "--namespace", space, "--as-of", then)
    assert [one["value"] for one in page["entries"]] == [{"n": 1}]
    counted = anywhere.succeed("query", "--namespace", space, "--as-of", then, "--count")
    assert counted == "1\n"
    exported = anywhere.succeed("export", "--namespace", space, "--as-of", then)
    assert [json.loads(line)["value"] for line in exported.splitlines()] == [{"n": 1}]
    # Other tests list what every agent may read.
    anywhere.succeed("delete", first["id"], "--yes")


def test_a_name_is_set_once_in_each_session(anywhere: Shell) -> None:
    said = ("set", "chat", "topic")
    first = anywhere.json(*said, '{"n": 1}', "--session", "s1", "--task", "task_1")
    second = anywhere.json(*said, '{"n": 2}', "--session", "s2")
    assert second["id"] != first["id"]
    again = anywhere.json(*said, '{"n": 3}', "--session", "s1")
    assert (again["id"], again["version"], again["value"]) == (first["id"], 2, {"n": 3})
    assert again["scope"] == {"task_id": "task_1", "session_id": "s1"}
    bound = ("--session", "s2", "--version", "1")
    assert anywhere.json(*said, '{"n": 4}', *bound)["id"] == second["id"]
    assert "version" in anywhere.refuse(*said, "{}", *bound)
    assert "session" in anywhere.refuse(*said, "{}", "--session", "s3", "--version", "1")
    assert len(anywhere.json("query", "--namespace", "chat")["entries"]) == 2


def test_what_a_value_means_and_whom_it_is_about_is_set_and_filtered_by(anywhere: Shell) -> None:
    lesson = json.dumps({"wrong_answer": "blue", "right_answer": "green"})
    anywhere.succeed(
        "set", "n", "one", lesson, "--kind", "correction", "--type", "episodic",
        "--about", "ann", "--about", "bob", "--session", "s1", "--origin", "tool",
        "--source", "https://example.org/a",
    )  # fmt: skip
    anywhere.succeed("set", "n", "two", "{}", "--about", "bob")

    def keys(*options: str) -> list[str]:
        return [entry["key"] for entry in anywhere.json("query", *options)["entries"]]

    assert keys() == ["two", "one"]
    for condition in (
        ("--kind", "correction"), ("--about", "ann"), ("--session", "s1"), ("--origin", "tool"),
        ("--source", "https://example.org/a"),
    ):  # fmt: skip
        assert keys(*condition) == ["one"], condition
    assert keys("--about", "bob", "--state", "live") == ["two", "one"]
    assert keys("--status", "open") == []
    assert "Invalid value" in misuse("query", "--state", "asleep")
    exported = anywhere.succeed("export", "--about", "ann").splitlines()
    assert [json.loads(line)["key"] for line in exported] == ["one"]
    assert anywhere.succeed("delete", "--about", "ann", "--yes") == "1 deleted\n"
    assert keys() == ["two"]


def test_every_field_can_be_set(agent: Shell) -> None:
    made = agent.json(
        "set", "case", "file", VALUE, "--task", "task_1", "--ttl", "duration:PT1H",
        "--sensitivity", "restricted",
    )  # fmt: skip
    assert made["scope"] == {"task_id": "task_1"}
    assert made["ttl"] == "duration:PT1H"
    assert made["expires_at"] > made["created_at"]
    assert made["sensitivity"] == "restricted"
    dated = agent.json("set", "case", "dated", "{}", "--expires-at", "2999-01-01T00:00:00+01:00")
    assert dated["expires_at"] == "2998-12-31T23:00:00.000Z"


def test_a_value_comes_from_a_file_or_from_standard_input(agent: Shell, tmp_path: Path) -> None:
    file = tmp_path / "value.json"
    file.write_text('{"from": "Grüße"}', encoding="utf-8")
    assert agent.json("set", "in", "file", f"@{file}")["value"] == {"from": "Grüße"}
    assert agent.json("set", "in", "input", "-", input=VALUE)["value"] == json.loads(VALUE)


def test_a_version_can_be_asked_for(agent: Shell) -> None:
    agent.succeed("set", "n", "k", "{}")
    assert agent.json("set", "n", "k", '{"a": 1}', "--version", "1")["version"] == 2
    said = agent.refuse("set", "n", "k", '{"a": 2}', "--version", "1")
    assert "another version" in said
    assert agent.json("get", "n", "k")["value"] == {"a": 1}


def test_query_shows_a_line_for_each_entry_newest_first(anywhere: Shell) -> None:
    anywhere.succeed("set", "invoices.paid", "one", '{"n": 1}', "--tag", "a", "--tag", "b")
    anywhere.succeed("set", "invoices.open", "two", '{"n": 2}', "--tag", "a", "--task", "task_9")
    anywhere.succeed("set", "other", "three", '{"n": 3}', "--type", "episodic", "--pinned")
    table = anywhere.succeed("query")
    heading, rule, *rows, count = table.splitlines()
    assert " ".join(columns(table)) == "id type namespace key version updated tags value"
    assert set(rule) == {"-", " "}
    assert [row.split()[3] for row in rows] == ["three", "two", "one"]
    assert all(len(row) <= len(rule) for row in rows)
    assert '{"n":1}' in rows[2]
    assert count == "3 of 3 entries"
    assert heading.index("key") == rows[0].index("three")

    def keys(*options: str) -> list[str]:
        return [entry["key"] for entry in anywhere.json("query", *options)["entries"]]

    assert keys("--namespace", "invoices.*") == ["two", "one"]
    assert keys("--namespace", "invoices.paid") == ["one"]
    assert keys("--tag", "a", "--tag", "b") == ["one"]
    assert keys("--any-tag", "a", "--any-tag", "nosuch") == ["two", "one"]
    assert keys("--type", "episodic") == ["three"]
    assert keys("--key-name", "two") == ["two"]
    assert keys("--task", "task_9") == ["two"]
    assert keys("--intent", "intent_none") == []
    assert keys("--type", "episodic", "--pinned") == ["three"]
    assert keys("--type", "episodic", "--not-pinned") == []
    assert keys("--updated-after", "2999-01-01T00:00:00Z") == []
    assert keys("--updated-before", "2999-01-01T00:00:00Z", "--limit", "1") == ["three"]

    page = anywhere.json("query", "--limit", "1", "--offset", "1")
    assert [entry["key"] for entry in page["entries"]] == ["two"]
    assert (page["total"], page["limit"], page["offset"]) == (3, 1, 1)
    assert anywhere.succeed("query", "--limit", "1").splitlines()[-1] == "1 of 3 entries"


def test_a_long_value_is_cut_in_the_table_only(agent: Shell) -> None:
    agent.succeed("set", "n", "long", json.dumps({"text": "word " * 400}))
    row = agent.succeed("query").splitlines()[2]
    assert len(row) < 250
    assert row.endswith("…")
    assert len(agent.json("query")["entries"][0]["value"]["text"]) == 2000


def test_nothing_found_is_an_empty_table(agent: Shell) -> None:
    assert agent.succeed("query").splitlines()[-1] == "0 of 0 entries"
    assert agent.json("query")["entries"] == []


def test_delete_by_id_and_by_filter(anywhere: Shell) -> None:
    ids = [anywhere.json("set", "n", f"k{i}", "{}", "--tag", f"t{i % 2}")["id"] for i in range(5)]
    assert anywhere.succeed("delete", ids[0], ids[1]) == "2 deleted\n"
    assert anywhere.succeed("delete", "--tag", "t0", "--yes") == "2 deleted\n"
    assert [entry["id"] for entry in anywhere.json("query")["entries"]] == [ids[3]]


def test_delete_by_filter_asks_first(agent: Shell) -> None:
    agent.succeed("set", "n", "k", "{}")
    refused = agent.run("delete", "--namespace", "n", input="n\n")
    assert refused.returncode == 130
    assert "Delete 1 entry permanently?" in refused.stdout
    unanswered = agent.run("delete", "--namespace", "n")
    assert unanswered.returncode == 130
    assert agent.json("query")["total"] == 1
    confirmed = agent.run("delete", "--namespace", "n", input="y\n")
    assert confirmed.returncode == 0
    assert confirmed.stdout.endswith("1 deleted\n")
    assert agent.json("query")["total"] == 0


def test_delete_wants_ids_or_a_filter(agent: Shell) -> None:
    assert "ids, or a filter" in agent.refuse("delete")
    assert "ids, or a filter" in agent.refuse("delete", "mem_1", "--namespace", "n", "--yes")


def test_an_empty_filter_or_id_deletes_nothing(anywhere: Shell) -> None:
    """The value of a variable of the shell that is not set."""
    anywhere.succeed("set", "n", "k", "{}")
    assert "key-prefix" in anywhere.refuse("delete", "--key-prefix", "", "--yes")
    for arguments in (("--namespace", ""), ("--tag", ""), ("--namespace", "n", "--task", "")):
        anywhere.refuse("delete", *arguments, "--yes")
    anywhere.refuse("delete", "")
    assert anywhere.json("query")["total"] == 1


def test_missing_input_prints_one_line(anywhere: Shell) -> None:
    assert "no entry" in anywhere.refuse("get", "nowhere", "nothing")
    assert "Memory entry not found" in anywhere.refuse("get", "mem_nothing")
    assert "there is no entry mem_nothing" in anywhere.refuse("delete", "mem_nothing")
    assert "Memory entry not found" in anywhere.refuse("set", "n", "k", "{}", "--version", "3")


def test_bad_values_are_one_clear_line_that_does_not_repeat_them(agent: Shell) -> None:
    secret = "sk-live-1234"
    for value in (secret, f'["{secret}"]', f'{{"a": "{secret}"', f'{{"{secret}": NaN}}', ""):
        said = agent.refuse("set", "n", "k", value)
        assert "VALUE must be a JSON object" in said
        assert secret not in said
    assert "no-such-file cannot be read" in agent.refuse("set", "n", "k", "@no-such-file")
    too_large = json.dumps({"text": secret + "x" * 70_000})
    said = agent.refuse("set", "n", "k", "-", input=too_large)
    assert "attachment" in said
    assert secret not in said
    assert "--ttl must" in agent.refuse("set", "n", "k", "{}", "--ttl", "tomorrow")
    assert "--expires-at must" in agent.refuse("set", "n", "k", "{}", "--expires-at", "2001-01-01")
    assert "NAMESPACE must" in agent.refuse("set", "", "k", "{}")
    assert "--updated-after" in agent.refuse("query", "--updated-after", "yesterday")
    assert agent.json("query")["total"] == 0


def test_another_agent_s_memory_is_out_of_reach(new_agent: Callable[..., Shell]) -> None:
    owner, other = new_agent(), new_agent()
    entry = owner.json("set", "private", "note", VALUE)
    assert other.json("query")["total"] == 0
    said = other.refuse("get", entry["id"])
    assert "belongs to another agent" in said
    assert "inv_789" not in said
    assert "belongs to another agent" in other.refuse("delete", entry["id"])
    said = other.refuse("query", "--agent", owner.agent)
    assert "--agent must be the key's own principal" in said


def test_a_key_that_acts_for_others_speaks_for_the_agent_named(
    server: ServerProcess, agent: Shell
) -> None:
    where = ("--url", server.url, "--key", server.dev_key, "--agent", agent.agent)
    agent.succeed("set", "n", "k", VALUE)
    assert Shell(agent.agent, where).json("get", "n", "k")["agent_id"] == agent.agent


def test_shared_memory_is_set_and_read_by_several(new_agent: Callable[..., Shell]) -> None:
    curator, reader = new_agent(), new_agent()
    namespace = f"policies-{curator.agent}"
    made = curator.json("set", namespace, "threshold", '{"usd": 10000}', "--type", "semantic")
    assert made["curated_by"] == curator.agent
    assert reader.json("get", namespace, "threshold")["value"] == {"usd": 10000}
    assert "the namespace does not allow it" in reader.refuse("set", namespace, "threshold", "{}")
    # A lookup that names no tier finds one's own memory first.
    reader.succeed("set", namespace, "threshold", '{"mine": true}', "--type", "working")
    assert reader.json("get", namespace, "threshold")["value"] == {"mine": True}
    found = reader.json("get", namespace, "threshold", "--type", "semantic")
    assert found["value"] == {"usd": 10000}


def test_a_tier_must_be_one_of_the_five(agent: Shell) -> None:
    said = misuse("get", *agent.where, "n", "k", "--type", "longterm")
    for tier in ("working", "session", "episodic", "semantic", "procedural"):
        assert tier in said
