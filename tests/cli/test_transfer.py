"""export and import: what goes out comes in again, and what cannot is told by its line."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import Shell, environment, refuse, run
from tests.support.programs import start_program

# What a new entry has of its own, whoever it was copied from.
_OWN = {"id", "agent_id", "created_at", "updated_at", "created_by", "provenance", "version"}
_MANY = 3_000


def _line(key: str, **fields: Any) -> str:
    entry = {"namespace": "n", "key": key, "value": {"k": key}, "memory_type": "working", **fields}
    return json.dumps(entry, ensure_ascii=False) + "\n"


def _export(agent: Shell, *options: str) -> list[dict[str, Any]]:
    return agent.json_lines("export", *options)


def _import(agent: Shell, text: str, *options: str) -> str:
    """Imports from standard input; returns the line that counts what was done."""
    printed = agent.run("import", "-", *options, input=text)
    assert printed.returncode == 0, printed.stderr
    assert printed.stdout == ""
    return printed.stderr


def test_an_export_is_imported_whole_by_another_agent(
    new_agent: Callable[..., Shell], tmp_path: Path
) -> None:
    giver, taker = new_agent(), new_agent()
    giver.succeed("set", "a", "plain", '{"text": "Grüße ☃"}', "--tag", "x", "--tag", "y")
    giver.succeed("set", "a", "bound", "{}", "--task", "task_1", "--ttl", "task_lifetime")
    giver.succeed("set", "a", "timed", "{}", "--ttl", "duration:P1D")
    giver.succeed("set", "a", "sealed", '{"pin": 1234}', "--sensitivity", "restricted")
    giver.succeed("set", "b", "kept", "{}", "--type", "episodic", "--pinned", "--priority", "high")
    giver.succeed("set", "b", "turn", "{}", "--type", "session")
    file = tmp_path / "memory.jsonl"
    written = giver.run("export", "--output", str(file))
    assert written.returncode == 0
    assert written.stdout == ""
    assert written.stderr == "6 entries exported\n"
    lines = file.read_text(encoding="utf-8").splitlines()
    exported = [json.loads(line) for line in lines]
    assert [one["key"] for one in exported] == [
        "turn", "kept", "sealed", "timed", "bound", "plain",
    ]  # fmt: skip

    read = taker.run("import", str(file))
    assert read.returncode == 0, read.stderr
    assert read.stderr.startswith("6 entries imported, 0 skipped\n")
    imported = {one["key"]: one for one in _export(taker)}
    assert len(imported) == 6
    for one in exported:
        other = imported[one["key"]]
        assert (other["agent_id"], other["version"]) == (taker.agent, 1)
        # A duration would begin anew, so the instant it came to is what is kept of it.
        other_fields = {name: one[name] for name in one if name not in _OWN}
        if one["key"] == "timed":
            other_fields["ttl"] = None
        assert {name: other[name] for name in other if name not in _OWN} == other_fields


def test_export_applies_a_filter(anywhere: Shell) -> None:
    anywhere.succeed("set", "a", "one", "{}", "--tag", "x")
    anywhere.succeed("set", "b", "two", "{}", "--type", "episodic")
    assert [one["key"] for one in _export(anywhere)] == ["two", "one"]
    assert [one["key"] for one in _export(anywhere, "--tag", "x")] == ["one"]
    assert [one["key"] for one in _export(anywhere, "--type", "episodic")] == ["two"]
    assert _export(anywhere, "--namespace", "nowhere") == []


def test_export_counts_written_entries(anywhere: Shell) -> None:
    anywhere.succeed("set", "a", "one", "{}")
    anywhere.succeed("set", "a", "two", "{}")
    assert anywhere.run("export").stderr == "2 entries exported\n"
    assert anywhere.run("export", "--type", "episodic").stderr == "0 entries exported\n"


def test_an_export_holds_only_what_its_key_may_read(new_agent: Callable[..., Shell]) -> None:
    one, other = new_agent(), new_agent()
    one.succeed("set", "n", "mine", "{}")
    assert _export(other, "--namespace", "n") == []


def test_existing_entry_stops_an_import_unless_skipped(anywhere: Shell) -> None:
    anywhere.succeed("set", "n", "k2", '{"first": true}')
    text = _line("k1") + _line("k2") + "\n" + _line("k3")
    stopped = anywhere.run("import", "-", input=text)
    assert stopped.returncode == 1
    assert "line 2" in stopped.stderr
    assert "exists" in stopped.stderr
    assert anywhere.json("query")["total"] == 1

    assert _import(anywhere, text, "--skip-existing") == "2 entries imported, 1 skipped\n"
    assert anywhere.json("get", "n", "k2")["value"] == {"first": True}
    # Again, so that an import that was interrupted can be taken up by repeating it.
    assert _import(anywhere, text, "--skip-existing") == "0 entries imported, 3 skipped\n"


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("{not json}\n", "is not a JSON object"),
        ("[1, 2]\n", "is not a JSON object"),
        ("\xff\xfe\n", "is not a JSON object"),
        ("[" * 100_000 + "\n", "is not a JSON object"),
        (_line("bad", colour="red"), "unknown field `colour`"),
        (_line("bad", memory_type="nosuch"), "memory_type"),
        (_line("bad", value=[1]), "value"),
        (_line(""), "`key`"),
        (_line("bad", value={"long": "sk-1" + "x" * 70_000}), "attachment"),
        ('{"namespace": "n", "key": "bad"}\n', "value"),
    ],
    ids=[
        "not JSON", "a list", "not UTF-8", "too deep", "unknown field", "unknown tier",
        "value is a list", "no key", "value too large", "fields missing",
    ],
)  # fmt: skip
@pytest.mark.sampled(3)
def test_a_bad_line_in_the_middle_is_named_and_nothing_near_it_is_written(
    bad: str, said: str, agent: Shell, tmp_path: Path
) -> None:
    before = [_line(f"k{number:03}") for number in range(149)]
    after = [_line(f"k{number:03}") for number in range(150, 200)]
    file = tmp_path / "memory.jsonl"
    content = "".join(before).encode() + bad.encode("latin-1") + "".join(after).encode()
    file.write_bytes(content)
    printed = agent.run("import", str(file))
    assert printed.returncode == 1
    assert printed.stdout == ""
    (line,) = printed.stderr.splitlines()
    assert "line 150" in line
    assert said in line
    assert "sk-1" not in line
    assert len(line) < 400
    # Of the hundred that the bad line is in, none is there; the hundred before is.
    found = {entry["key"] for entry in agent.json("query", "--limit", "1000")["entries"]}
    assert found == {f"k{number:03}" for number in range(100)}
    # What is said of what came before must be true: lines 101 to 149 are not there.
    assert "what came before it is written" not in line
    # Set right, the same file can be given again.
    file.write_bytes("".join([*before, _line("k149"), *after]).encode())
    again = agent.run("import", str(file), "--skip-existing")
    assert again.stderr == "100 entries imported, 100 skipped\n"


def test_thousands_of_entries_go_out_and_in(
    new_agent: Callable[..., Shell], tmp_path: Path
) -> None:
    first, second = new_agent(), new_agent()
    file = tmp_path / "many.jsonl"
    with file.open("w", encoding="utf-8") as lines:
        for number in range(_MANY):
            lines.write(_line(f"k{number:05}", tags=[f"t{number % 7}"], scope={}))
    assert first.run("import", str(file)).stderr == f"{_MANY:,} entries imported, 0 skipped\n"
    out = tmp_path / "out.jsonl"
    assert first.run("export", "--output", str(out)).stderr == f"{_MANY:,} entries exported\n"
    exported = [json.loads(line) for line in out.read_text().splitlines()]
    assert [one["key"] for one in exported] == [f"k{n:05}" for n in reversed(range(_MANY))]
    assert second.run("import", str(out)).stderr == f"{_MANY:,} entries imported, 0 skipped\n"
    assert second.json("query", "--limit", "1")["total"] == _MANY
    assert second.json("query", "--tag", "t3")["total"] == len(range(3, _MANY, 7))


def test_an_import_reads_no_more_than_it_needs(agent: Shell) -> None:
    """Entries are written while the file is still being made: nothing waits for its end."""
    process = start_program(
        "import",
        *agent.where,
        "-",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    try:
        assert process.stdin is not None
        # More than the pipes and buffers on the way hold.
        padding = {"text": "x" * 4_000}
        process.stdin.write("".join(_line(f"k{number}", value=padding) for number in range(150)))
        process.stdin.flush()
        deadline = time.monotonic() + 30
        while agent.json("query", "--limit", "1")["total"] < 100:
            assert time.monotonic() < deadline, "nothing was written before the end of the file"
        assert process.poll() is None
        _, errors = process.communicate(timeout=60)
        assert errors.startswith("150 entries imported, 0 skipped\n")
    finally:
        process.kill()
        process.wait()


def test_an_export_stops_quietly_when_nobody_reads_on(agent: Shell) -> None:
    text = "".join(_line(f"k{number}", value={"text": "x" * 4_000}) for number in range(300))
    _import(agent, text)
    process = start_program(
        "export",
        *agent.where,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert json.loads(process.stdout.readline())["key"] == "k299"
    process.stdout.close()
    errors = process.stderr.read()
    process.wait(60)
    process.stderr.close()
    assert "Traceback" not in errors
    assert "Exception" not in errors


def test_an_import_without_the_right_to_write_changes_nothing(
    new_agent: Callable[..., Shell],
) -> None:
    reader = new_agent("--permission", "memory.read")
    printed = reader.run("import", "-", input=_line("k"))
    assert printed.returncode == 1
    assert "memory.write" in printed.stderr
    assert reader.json("query")["total"] == 0


def test_an_empty_file_is_no_error(anywhere: Shell) -> None:
    assert _import(anywhere, "") == "0 entries imported, 0 skipped\n"
    assert _import(anywhere, "\n\n") == "0 entries imported, 0 skipped\n"


def test_import_wants_a_key_before_it_reads(tmp_path: Path) -> None:
    file = tmp_path / "memory.jsonl"
    file.write_text(_line("k"))
    assert "--key" in refuse("import", str(file))
    assert run("import", str(file), "--url", "http://127.0.0.1:9", "--key", "k").returncode == 1
