"""`backup --with-keys` and the restore of such a backup."""

from __future__ import annotations

import json
import os
import pty
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memorywall.records.errors import ConfigurationError
from memorywall.service.encryption import sealed_keys
from memorywall.service.encryption.key_file import read_key_file, write_key_file
from memorywall.service.encryption.sealed_keys import open_sealed_keys, seal_keys
from memorywall.storage.backup_file import check_backup_file
from tests.cli.shell import Shell, environment, new_directory, refuse, run, succeed

PASSPHRASE = "correct horse"
GIVEN = {"MEMORYWALL_PASSPHRASE": PASSPHRASE}
SECRET = {"text": "only with the key"}
KEY = "memory.db.key"


@pytest.fixture(autouse=True)
def _cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Derives keys in little time; one test leaves the cost as it is."""
    monkeypatch.setattr(sealed_keys, "_COST", 1 << 10)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    directory = tmp_path / "data"
    new_directory(directory, "a")
    _shell(directory).succeed("set", "n", "k", json.dumps(SECRET), "--sensitivity", "restricted")
    return directory


@pytest.fixture
def file(data: Path, tmp_path: Path) -> Path:
    written = tmp_path / "with-keys"
    told = run("backup", "--data", str(data), str(written), "--with-keys", variables=GIVEN)
    assert told.returncode == 0, told.stderr
    assert "besides it: the passphrase, and the newest suppression ledger" in told.stderr
    return written


def test_a_backup_with_keys_is_restored_with_the_passphrase_alone(
    data: Path, file: Path, tmp_path: Path
) -> None:
    key = (data / KEY).read_bytes()
    assert key.strip() not in file.read_bytes()
    assert PASSPHRASE.encode() not in file.read_bytes()
    goal = tmp_path / "goal"
    told = _restore(file, goal)
    assert f"the key-encryption key of the backup is in {goal / KEY}\n" in told
    assert (goal / KEY).read_bytes() == key
    assert stat.S_IMODE((goal / KEY).stat().st_mode) == 0o600
    assert _secret(goal) == SECRET


def test_without_the_passphrase_nothing_is_restored(file: Path, tmp_path: Path) -> None:
    goal = tmp_path / "goal"
    command = ("restore", str(file), "--data", str(goal), "--without-ledger")
    wrong = {"MEMORYWALL_PASSPHRASE": "wrong horse"}
    assert "is not the one that seals the keys" in refuse(*command, variables=wrong)
    assert "MEMORYWALL_PASSPHRASE" in refuse(*command)
    assert not goal.exists()


def test_a_restore_asks_for_the_ledger_or_tells_since_when_erasures_are_unknown(
    file: Path, tmp_path: Path
) -> None:
    goal = tmp_path / "goal"
    missing = ("--ledger", str(tmp_path / "nowhere"))
    command = ("restore", str(file), "--data", str(goal))
    assert "--without-ledger" in refuse(*command, *missing, variables=GIVEN)
    assert not goal.exists()
    manifest = check_backup_file(file)
    assert manifest is not None
    assert manifest.began_at is not None
    assert manifest.began_at <= manifest.created_at
    assert f"erasures since {manifest.began_at} are unknown" in _restore(file, goal)


def test_other_keys_stay_and_are_named(data: Path, file: Path, tmp_path: Path) -> None:
    goal = tmp_path / "goal"
    other = os.urandom(32)
    write_key_file(goal / KEY, [other])
    told = _restore(file, goal)
    assert "beside the keys that were there; run `memorywall keys rotate-master`" in told
    assert read_key_file(goal / KEY) == (*read_key_file(data / KEY), other)
    assert _secret(goal) == SECRET
    succeed("keys", "rotate-master", "--data", str(goal))
    succeed("keys", "rotate-master", "--data", str(goal), "--retire")
    assert read_key_file(goal / KEY) == (other,)
    assert _secret(goal) == SECRET


def test_keys_at_hand_need_no_passphrase(data: Path, file: Path, tmp_path: Path) -> None:
    for name, variables in (("file", {}), ("variable", _in_environment(data))):
        goal = tmp_path / name
        if not variables:
            write_key_file(goal / KEY, read_key_file(data / KEY))
        command = ("restore", str(file), "--data", str(goal), "--without-ledger")
        succeed(*command, variables=variables)
        assert (goal / KEY).exists() is not bool(variables)
    wrong = {**GIVEN, "MEMORYWALL_KEY": "A" * 43 + "="}
    third = ("restore", str(file), "--data", str(tmp_path / "third"), "--without-ledger")
    assert "is not the one this database was sealed with" in refuse(*third, variables=wrong)


def test_every_key_of_a_rotation_that_has_begun_is_in_the_backup(
    data: Path, tmp_path: Path
) -> None:
    write_key_file(data / KEY, (*read_key_file(data / KEY), os.urandom(32)))
    file = tmp_path / "rotating"
    succeed("backup", "--data", str(data), str(file), "--with-keys", variables=GIVEN)
    goal = tmp_path / "goal"
    write_key_file(goal / KEY, read_key_file(data / KEY)[1:])
    _restore(file, goal)
    assert read_key_file(goal / KEY) == read_key_file(data / KEY)
    assert _secret(goal) == SECRET


def test_the_passphrase_comes_from_a_file_that_nobody_else_reads(
    data: Path, tmp_path: Path
) -> None:
    given = tmp_path / "passphrase"
    given.write_text(f"{PASSPHRASE}\n")
    command = ("backup", "--data", str(data), "--with-keys", "--passphrase-file", str(given))
    given.chmod(0o644)
    assert "can be read by others" in refuse(*command, str(tmp_path / "file"))
    given.chmod(0o600)
    succeed(*command, str(tmp_path / "file"))
    _restore(tmp_path / "file", tmp_path / "goal")
    given.write_text("short\n")
    assert "8 characters" in refuse(*command, str(tmp_path / "second"))
    given.write_text("\n")
    assert "first line" in refuse(*command, str(tmp_path / "second"))
    assert not (tmp_path / "second").exists()
    unused = run("backup", "--data", str(data), str(tmp_path / "x"), *command[-2:])
    assert unused.returncode == 2
    assert "needs --with-keys" in unused.stderr


def test_a_terminal_asks_twice_and_shows_nothing(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    command = ("backup", "--data", str(data), str(file), "--with-keys")
    assert _on_a_terminal(command, [PASSPHRASE, "something else", PASSPHRASE, PASSPHRASE]) == 4
    manifest = check_backup_file(file)
    assert manifest is not None
    assert manifest.keys is not None
    assert open_sealed_keys(manifest.keys, PASSPHRASE) == read_key_file(data / KEY)


def test_what_seals_the_keys_is_covered_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    keys = (os.urandom(32), os.urandom(32))
    sealed = seal_keys(keys, "Jos\u00e9 likes horses")
    assert sealed.cost >= 1 << 17
    assert open_sealed_keys(sealed, "Jose\u0301 likes horses") == keys
    changes: list[dict[str, Any]] = [
        {"format": 2},
        {"cost": 1 << 40},
        {"cost": 3},
        {"parallelization": 0},
        {"salt": bytes(16)},
        {"nonce": bytes(12)},
        {"content": sealed.content[:-1] + bytes([sealed.content[-1] ^ 1])},
    ]
    for change in changes:
        fields = {name: getattr(sealed, name) for name in sealed.__struct_fields__}
        with pytest.raises(ConfigurationError):
            open_sealed_keys(type(sealed)(**{**fields, **change}), "Jos\u00e9 likes horses")


def test_lists_tell_which_backups_have_keys(data: Path, file: Path) -> None:
    succeed("backup", "--data", str(data), str(file.parent / "without"))
    told = json.loads(succeed("backup", "list", str(file.parent), "--json"))
    assert [(one["file"], one["keys"]) for one in told] == [("with-keys", True), ("without", False)]


def _shell(data: Path) -> Shell:
    return Shell("a", ("--data", str(data), "--agent", "a"))


def _secret(data: Path) -> Any:
    return _shell(data).json("get", "n", "k")["value"]


def _restore(file: Path, goal: Path) -> str:
    """Restores with the passphrase; returns what the command says besides the comparison."""
    command = ("restore", str(file), "--data", str(goal), "--without-ledger")
    told = run(*command, variables=GIVEN)
    assert told.returncode == 0, told.stderr
    return told.stderr


def _in_environment(data: Path) -> dict[str, str]:
    return {"MEMORYWALL_KEY": (data / KEY).read_text().strip()}


def _on_a_terminal(command: tuple[str, ...], answers: list[str]) -> int:
    """Runs a command whose input is a terminal; returns how many answers it has asked for. The
    answers must not be shown."""
    ours, theirs = pty.openpty()
    program = (
        "import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
        "os.execv(sys.executable, [sys.executable, '-m', 'memorywall', *sys.argv[1:]])"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, *command],
        stdin=theirs, stdout=theirs, stderr=theirs, env=environment(*command),
    ) as process:  # fmt: skip
        os.close(theirs)
        shown, asked = b"", 0
        # A read fails when the last process has closed the terminal.
        while chunk := _read(ours):
            shown += chunk
            if shown.count(b"assphrase of the keys: ") + shown.count(b"confirmation: ") > asked:
                os.write(ours, answers[asked].encode() + b"\n")
                asked += 1
        assert process.wait(timeout=120) == 0, shown
    os.close(ours)
    assert not [one for one in answers if one.encode() in shown], shown
    return asked


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""
