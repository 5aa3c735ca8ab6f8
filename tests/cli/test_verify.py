"""verify: agreement is exit code 0, damage is named and is exit code 1."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.shell import Shell, new_directory, run, succeed
from tests.support.process import ServerProcess
from tests.support.stored import change


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A directory with a little memory in it, nothing of it in use."""
    directory = tmp_path / "data"
    new_directory(directory, "a")
    shell = Shell("a", ("--data", str(directory), "--agent", "a"))
    shell.succeed("set", "n", "kept", "{}", "--tag", "x")
    shell.succeed("set", "n", "kept", '{"a": 1}')
    shell.succeed("set", "n", "gone", "{}")
    shell.succeed("delete", "--key-name", "gone", "--yes")
    return directory


def test_verify_counts_entries_and_events(data: Path) -> None:
    assert succeed("verify", "--data", str(data)) == "1 entries and 4 events agree\n"
    assert json.loads(succeed("verify", "--data", str(data), "--json")) == {
        "entries": 1,
        "events": 4,
        "problems": [],
        "segments": [],
    }


def test_it_works_beside_a_server_that_is_being_written_to(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data") as server, server.client() as client:
        for number in range(20):
            body = {"namespace": "n", "key": f"k{number}", "value": {}, "memory_type": "working"}
            assert client.post("/api/v1/memory", json=body).status_code == 201
        assert succeed("verify", "--data", str(server.data)) == "20 entries and 20 events agree\n"
        assert client.get("/ready").status_code == 200


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("DELETE FROM entries", "should be there and is not"),
        ("UPDATE entries SET version = 7", "has version 7, its log says 2"),
        ("UPDATE entries SET tags = '[\"y\"]'", "tags"),
        ("UPDATE entries SET owner = 'thief', agent_id = 'thief'", "owner"),
        ("DELETE FROM events WHERE type = 'memory.created'", "version at event"),
        ("DELETE FROM events WHERE type = 'memory.deleted'", "should be there and is not"),
        ("DELETE FROM events", "no event tells of it"),
        ("DELETE FROM entry_tags", "tag"),
        ("UPDATE usage SET entries = entries + 1", "counts"),
    ],
)
def test_damage_is_named_and_fails(damage: str, said: str, data: Path) -> None:
    change(data, damage)
    printed = run("verify", "--data", str(data))
    assert printed.returncode == 1
    assert said in printed.stdout
    assert printed.stdout.splitlines()[-1].endswith("do not agree")
    assert printed.stderr == ""
    as_json = run("verify", "--data", str(data), "--json")
    assert as_json.returncode == 1
    problems = json.loads(as_json.stdout)["problems"]
    assert any(said in problem for problem in problems)


def test_only_so_many_problems_are_listed_for_people(tmp_path: Path) -> None:
    data = tmp_path / "data"
    new_directory(data, "a")
    lines = "".join(
        json.dumps({"namespace": "n", "key": f"k{n}", "value": {}, "memory_type": "working"}) + "\n"
        for n in range(80)
    )
    shell = Shell("a", ("--data", str(data), "--agent", "a"))
    assert shell.run("import", "-", input=lines).returncode == 0
    change(data, "UPDATE entries SET version = 9")
    printed = run("verify", "--data", str(data))
    assert printed.returncode == 1
    *_, more, verdict = printed.stdout.splitlines()
    assert len(printed.stdout.splitlines()) == 52
    assert more == "... and 30 more"
    assert verdict == "80 entries and 80 events do not agree"
    report = json.loads(run("verify", "--data", str(data), "--json").stdout)
    assert len(report["problems"]) == 80
