"""`copy`, `backup` and `restore`, as an operator runs them."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.cli.shell import columns, misuse, refuse, run, succeed
from tests.support.damage import verified
from tests.support.postgres import fresh_database
from tests.support.process import ServerProcess
from tests.support.programs import start_python
from tests.support.service import draft
from tests.support.transfer import dump_file

MEMORY = "/api/v1/memory"
_LIMIT = 60.0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    """A server with some entries, one of them sealed."""
    with ServerProcess(tmp_path / "data") as process:
        with process.client() as client:
            for number in range(5):
                _create(client, f"key-{number}", tags=["all"])
            _create(client, "sealed", sensitivity="restricted")
        yield process


@pytest.fixture
def data(server: ServerProcess) -> Path:
    """The data directory of a server that has been stopped."""
    assert server.terminate() == 0
    return server.data


def _create(client: httpx.Client, key: str, **fields: object) -> None:
    made = client.post(MEMORY, json=draft(key, **fields))
    assert made.status_code == 201, made.text


def _give_key(data: Path, other: Path) -> None:
    other.mkdir(exist_ok=True)
    (other / "memory.db.key").write_bytes((data / "memory.db.key").read_bytes())
    (other / "memory.db.key").chmod(0o600)


def _copy(source: Path | str, target: Path | str, *options: str) -> tuple[str, ...]:
    return ("copy", "--from", str(source), "--to", str(target), *options)


# Copies


def test_a_directory_is_copied_and_the_sums_are_shown(data: Path, tmp_path: Path) -> None:
    goal = tmp_path / "goal"
    printed = run(*_copy(data, goal))
    assert printed.returncode == 0, printed.stderr
    assert columns(printed.stdout) == ["tenant", "table", "rows", "digest", "target"]
    *table, last = printed.stdout.splitlines()
    assert {"entries", "events", "api_keys", "data_keys"} <= {line.split()[1] for line in table[2:]}
    assert all(line.endswith(" agrees") for line in table[2:])
    assert " rows agree (" in last
    assert "0 removed" in last
    assert "both sides need the same key-encryption key" in printed.stderr
    assert str(goal / "memory.db.key") in printed.stderr
    assert dump_file(goal / "memory.db") == dump_file(data / "memory.db")
    assert verified(goal / "memory.db").problems == []
    assert "(0 were written, 0 removed)" in succeed(*_copy(data, goal))


def test_comparison_is_printed_as_json(data: Path, tmp_path: Path) -> None:
    told = json.loads(succeed(*_copy(data, tmp_path / "goal", "--json")))
    assert (told["agree"], told["removed"], told["source_changed"]) == (True, 0, False)
    entries = next(one for one in told["tables"] if one["table"] == "entries")
    assert entries["rows"] == entries["target_rows"] == 6
    assert entries["digest"] == entries["target_digest"]
    assert len(entries["digest"]) == 64


def test_a_store_moves_while_it_is_served(server: ServerProcess, tmp_path: Path) -> None:
    goal = tmp_path / "goal"
    succeed(*_copy(server.data, goal))
    with server.client() as client:
        _create(client, "later")
    assert server.terminate() == 0
    printed = succeed(*_copy(server.data, goal))
    assert "source changed" not in printed
    written = int(printed.rpartition("(")[2].split()[0])
    assert 0 < written < 10
    _give_key(server.data, goal)
    key = server.dev_key
    with ServerProcess(goal, dev=False) as moved, moved.client(key) as client:
        page = client.get(MEMORY, params={"agent_id": "dev", "limit": 100}).json()
        assert page["total"] == 7
        sealed = next(entry for entry in page["entries"] if entry["key"] == "sealed")
        assert sealed["value"] == draft()["value"]
        _create(client, "after the move")
    assert "not an earlier state of the source" in refuse(*_copy(server.data, goal))


def test_a_file_moves_to_postgresql_in_two_commands(server: ServerProcess) -> None:
    """The second of them starts the server on the database; the key stays where it is."""
    key = server.dev_key
    assert server.terminate() == 0
    # It would be revoked by the start of a server that finds it.
    (server.data / "dev-key").unlink()
    with fresh_database() as url:
        succeed(*_copy(server.data, url))
        moved = ServerProcess(server.data, "--store", url, dev=False)
        with moved, moved.client(key) as client:
            page = client.get(MEMORY, params={"agent_id": "dev", "limit": 100}).json()
            assert page["total"] == 6
            assert {entry["value"]["completed"] for entry in page["entries"]} == {23}
            _create(client, "in the database")
        back = server.data.parent / "back"
        succeed(*_copy(url, back))
        assert verified(back / "memory.db").problems == []
        assert verified(back / "memory.db").entries == 7
        assert refuse(*_copy(server.data, url)).startswith("the target is not an earlier state")


def test_the_wrong_way_round_is_refused(data: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    succeed("tenants", "create", "--data", str(empty), "other")
    before = dump_file(data / "memory.db")
    assert "are the two the right way round" in refuse(*_copy(empty, data)).lower()
    assert dump_file(data / "memory.db") == before
    succeed(*_copy(empty, data, "--replace"))
    assert dump_file(data / "memory.db") == dump_file(empty / "memory.db")


@pytest.mark.parametrize(
    ("source", "target", "said"),
    [
        ("nothing", "goal", "there is no database in nothing"),
        ("data", "data", "are the same store"),
        ("data", "mysql://localhost/x", "a data directory or a postgresql:// URL"),
        ("data", "postgresql://ann:s3cret@127.0.0.1:1/x", "PostgreSQL cannot be reached"),
        ("postgresql://ann:s3cret@127.0.0.1:1/x", "data", "PostgreSQL cannot be reached"),
    ],
)
@pytest.mark.sampled(2)
def test_places_that_make_no_sense_are_explained(
    data: Path, source: str, target: str, said: str
) -> None:
    text = refuse(*_copy(source, target), cwd=data.parent)
    assert said in text
    assert "s3cret" not in text


def test_both_places_must_be_given(tmp_path: Path) -> None:
    assert "Missing option '--to'" in misuse("copy", "--from", "here", cwd=tmp_path)
    assert "Missing argument 'FILE'" in misuse("backup", "--data", "here", cwd=tmp_path)


def test_a_store_named_by_the_environment_is_not_mixed_up(data: Path, tmp_path: Path) -> None:
    there = {"MEMORYWALL_STORE": "postgresql://127.0.0.1:1/nowhere"}
    succeed(*_copy(data, tmp_path / "goal"), variables=there)
    assert dump_file(tmp_path / "goal" / "memory.db") == dump_file(data / "memory.db")


def test_a_served_directory_is_no_target(server: ServerProcess, tmp_path: Path) -> None:
    other = tmp_path / "other"
    succeed("keys", "create", "--data", str(other), "--agent", "a")
    assert "stop it first" in refuse(*_copy(other, server.data))


def test_a_target_with_another_key_is_refused(data: Path, tmp_path: Path) -> None:
    goal = tmp_path / "goal"
    succeed("keys", "create", "--data", str(goal), "--agent", "a")
    assert "key-encryption key is not the one" in refuse(*_copy(data, goal, "--replace"))
    _give_key(data, goal)
    printed = run(*_copy(data, goal, "--replace"))
    assert (printed.returncode, printed.stderr) == (0, "")


# Backups


def test_a_backup_beside_a_server_is_restored(server: ServerProcess, tmp_path: Path) -> None:
    file, goal = tmp_path / "monday.backup", tmp_path / "goal"
    with server.client() as client:
        printed = succeed("backup", "--data", str(server.data), str(file))
        assert " rows agree (" in printed
        _create(client, "later")
    assert file.stat().st_mode & 0o777 == 0o600
    assert "is there already" in refuse("backup", "--data", str(server.data), str(file))
    _give_key(server.data, goal)
    key = server.dev_key
    assert server.terminate() == 0
    ledger = ("--ledger", f"{server.data}/memory.db.ledger")
    restored = run("restore", str(file), "--data", str(goal), *ledger)
    assert (restored.returncode, restored.stderr) == (0, "")
    said = refuse("restore", str(file), "--data", str(goal), *ledger)
    assert "is there already; a restore needs an empty directory" in said
    assert sorted(os.listdir(goal)) == ["memory.db", "memory.db.key", "memory.db.ledger"]
    assert verified(goal / "memory.db").problems == []
    with ServerProcess(goal, dev=False) as process, process.client(key) as client:
        page = client.get(MEMORY, params={"agent_id": "dev", "limit": 100}).json()
        assert page["total"] == 6


def test_a_backup_goes_through_postgresql(data: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    ledger = ("--ledger", f"{data}/memory.db.ledger")
    succeed("backup", "--data", str(data), str(first))
    with fresh_database() as url:
        place = ("--data", str(data), "--store", url)
        assert "give --ledger" in refuse("restore", str(first), *place)
        succeed("restore", str(first), *place, *ledger)
        assert "the target is not empty" in refuse("restore", str(first), *place, *ledger)
        succeed("backup", "--store", url, str(second))
    new = tmp_path / "new"
    _give_key(data, new)
    restored = run("restore", str(second), "--data", str(new), *ledger)
    assert (restored.returncode, restored.stderr) == (0, "")
    report = verified(new / "memory.db")
    assert report.problems == []
    assert len(report.segments) == 2
    dumped = dump_file(data / "memory.db")
    assert dump_file(first) == dumped
    for table, rows in dump_file(new / "memory.db").items():
        # A restore adds an event, and a data key that all servers on PostgreSQL agree on.
        added = {"events": 2, "event_contents": 2, "data_keys": 1}.get(table, 0)
        assert (dumped[table] - rows, (rows - dumped[table]).total()) == ({}, added), table


def test_invalid_backup_restores_nothing(data: Path, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("not a backup" * 100)
    assert "not a memorywall backup" in refuse("restore", str(text), "--data", str(tmp_path / "g"))
    assert "there is no file" in refuse("restore", "none", "--data", "g", cwd=tmp_path)
    assert not (tmp_path / "g" / "memory.db").exists()
    assert "there is no database in" in refuse("backup", "--data", "none", "f", cwd=tmp_path)
    assert "give --data" in refuse("backup", "f", cwd=tmp_path)


def test_a_backup_that_is_stopped_leaves_nothing(data: Path, tmp_path: Path) -> None:
    """SIGTERM while it waits for a reader of its own, so that it is surely in the middle."""
    room = tmp_path / "backups"
    room.mkdir()
    file = room / "monday.backup"
    os.mkfifo(tmp_path / "gate")
    code = (
        "import sys, memorywall.cli.transfers as t;"
        "from memorywall.cli import main;"
        "gate = sys.argv.pop(); t.count_rows = lambda side: open(gate).read(); main()"
    )
    arguments = ["backup", "--data", str(data), str(file), str(tmp_path / "gate")]
    process = start_python("-c", code, *arguments)
    deadline = time.monotonic() + _LIMIT
    while not list(room.iterdir()):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    assert process.wait(_LIMIT) == 128 + signal.SIGTERM
    assert list(room.iterdir()) == []
