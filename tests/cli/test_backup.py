"""`backup create`, `backup verify`, `backup list`, and `restore` of a damaged backup."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.cli.shell import Shell, columns, misuse, new_directory, refuse, run, succeed
from tests.support.backend import is_on_file
from tests.support.damage import verified
from tests.support.stored import change


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A directory with two entries, nothing of it in use."""
    directory = tmp_path / "data"
    new_directory(directory, "a")
    shell = Shell("a", ("--data", str(directory), "--agent", "a"))
    shell.succeed("set", "n", "first", '{"text": "one"}')
    shell.succeed("set", "n", "second", '{"text": "two"}')
    return directory


@pytest.fixture
def file(data: Path, tmp_path: Path) -> Path:
    """A backup of the directory."""
    written = tmp_path / "backups" / "monday.backup"
    written.parent.mkdir()
    succeed("backup", "--data", str(data), str(written))
    return written


def _flip(file: Path, place: int) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= 1
    file.write_bytes(content)


def test_create_may_be_left_out(data: Path, file: Path, tmp_path: Path) -> None:
    succeed("backup", "create", str(tmp_path / "second"), "--data", str(data))
    one, other = (
        json.loads(succeed("backup", "verify", str(path), "--json"))
        for path in (file, tmp_path / "second")
    )
    assert one == other
    assert "Missing argument 'FILE'" in misuse("backup", "--data", str(data))
    assert "Commands:" in misuse("backup")


def test_a_backup_says_what_a_restore_needs(data: Path, tmp_path: Path) -> None:
    printed = run("backup", str(tmp_path / "one"), "--data", str(data), "--json")
    json.loads(printed.stdout)
    assert "memory.db.key" in printed.stderr
    assert "suppression ledger" in printed.stderr
    assert ("memory.db.ledger" in printed.stderr) is is_on_file()
    with_key = {"MEMORYWALL_KEY": (data / "memory.db.key").read_text().strip()}
    printed = run("backup", str(tmp_path / "two"), "--data", str(data), variables=with_key)
    assert "the key of MEMORYWALL_KEY" in printed.stderr


def test_verify_compares_everything(data: Path, file: Path) -> None:
    before = file.read_bytes()
    printed = run("backup", "verify", str(file), "--data", str(data))
    assert (printed.returncode, printed.stderr) == (0, "")
    first, second = printed.stdout.splitlines()
    assert first == "2 entries and 2 events agree"
    assert second.startswith("the checksums of ")
    told = json.loads(succeed("backup", "verify", str(file), "--json"))
    assert (told["entries"], told["events"], told["problems"]) == (2, 2, [])
    assert told["checksums"] >= 2
    assert told["tables"] >= 5
    assert file.read_bytes() == before
    assert os.listdir(file.parent) == [file.name]


def test_verify_tells_that_digests_need_the_key(file: Path, tmp_path: Path) -> None:
    printed = run("backup", "verify", str(file), cwd=tmp_path)
    assert printed.returncode == 0
    assert "the key-encryption key is missing" in printed.stderr


def test_damaged_backup_restores_nothing(data: Path, file: Path, tmp_path: Path) -> None:
    _flip(file, 20_000)
    goal = tmp_path / "goal"
    for command in (
        ("restore", str(file), "--data", str(goal)),
        ("restore", str(file), "--data", str(goal), "--without-checksums"),
        ("backup", "verify", str(file), "--data", str(data)),
    ):
        said = refuse(*command)
        assert "is damaged: changed in bytes 0 to" in said
        assert "use another backup" in said
    assert not goal.exists()


def test_verify_finds_rows_that_were_wrong_before_the_backup(data: Path, tmp_path: Path) -> None:
    """The checksums are those of the bytes, so only the digests of the log show it."""
    change(data, "UPDATE entries SET pinned = 1 - pinned WHERE key = 'first'")
    file = tmp_path / "wrong"
    succeed("backup", "--data", str(data), str(file))
    printed = run("backup", "verify", str(file), "--data", str(data))
    assert printed.returncode == 1
    assert "has another row than its log says" in printed.stdout


def test_backup_of_an_earlier_version_needs_an_option(
    data: Path, file: Path, tmp_path: Path
) -> None:
    told = json.loads(succeed("backup", "list", str(file.parent), "--json"))
    content = file.read_bytes()
    file.write_bytes(content[: int.from_bytes(content[28:32]) * 4096])
    assert "--without-checksums" in refuse("restore", str(file), "--data", str(tmp_path / "goal"))
    assert "--without-checksums" in refuse("backup", "verify", str(file))
    printed = succeed("backup", "verify", str(file), "--without-checksums")
    assert printed.endswith("the backup has no checksums\n")
    goal = tmp_path / "goal"
    goal.mkdir()
    shutil.copy(data / "memory.db.key", goal)
    arguments = ("restore", str(file), "--data", str(goal), "--without-checksums")
    succeed(*arguments, "--without-ledger")
    if is_on_file():
        assert verified(tmp_path / "goal" / "memory.db").entries == told[0]["entries"]


def test_backups_are_listed(file: Path) -> None:
    (file.parent / "tuesday.backup").write_bytes(file.read_bytes())
    (file.parent / "notes.txt").write_text("no backup")
    printed = succeed("backup", "list", str(file.parent))
    headers = ["file", "time", "size", "tenants", "entries", "schema", "keys", "checksums"]
    assert columns(printed) == headers
    assert [line.split()[0] for line in printed.splitlines()[2:]] == [
        "monday.backup",
        "tuesday.backup",
    ]
    _flip(file, 20_000)
    damaged = run("backup", "list", str(file.parent), "--json")
    assert damaged.returncode == 1
    told = json.loads(damaged.stdout)
    assert [one["checksums"] for one in told] == ["damaged", "match"]
    assert told[1]["size"] == file.stat().st_size
    assert (told[1]["tenants"], told[1]["entries"]) == (1, 2)
    assert told[1]["time"].endswith("Z")
    quick = json.loads(succeed("backup", "list", str(file.parent), "--quick", "--json"))
    assert {one["checksums"] for one in quick} == {"not checked"}
