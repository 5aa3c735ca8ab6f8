"""The suppression ledger through a replacement of the key-encryption key."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from memorywall.records.errors import ConfigurationError
from memorywall.records.event_chain import NO_EVENTS
from memorywall.records.feature_errors import LedgerDamagedError
from memorywall.records.suppression import SuppressionKind, SuppressionLine
from memorywall.service.encryption.ledger_key import needs_older_key, open_ledger
from memorywall.service.encryption.master_keys import MasterKeys
from memorywall.storage.suppression_ledger import SuppressionLedger, ensure_ledger
from tests.cli.shell import refuse, succeed
from tests.support.backend import is_on_file
from tests.support.forgotten import check_restored, world_of

OLD, NEW = bytes(32), b"\1" * 32


def _wrapper(directory: Path) -> str:
    return str(json.loads((directory / "key").read_bytes())["wrapped_by"])


def test_the_forgotten_stay_away_after_a_rotation(tmp_path: Path) -> None:
    """Forget, rotate, retire, restore the backup from before: it needs both keys."""
    world = world_of(tmp_path)
    options = ("--data", str(world.data))
    key_file = world.data / "memory.db.key"
    old = key_file.read_text()
    before = _wrapper(world.ledger)
    rotate = ("keys", "rotate-master", *options)
    environment = {"MEMORYWALL_LEDGER": str(world.ledger)}
    rotated = json.loads(succeed(*rotate, "--json", variables=environment))
    assert rotated["newest"] == _wrapper(world.ledger) != before
    assert (rotated["left"], rotated["ledger_left"]) == (0, False)
    succeed(*rotate, "--retire", variables=environment)
    new = key_file.read_text()
    untouched = _contents(world.ledger)
    for keys, expected in ((new, "needs the old key as well"), (old, "needs another key")):
        key_file.write_text(keys)
        goal = world.room / "refused"
        assert expected in refuse(*world.command(goal))
        assert [file.name for file in goal.iterdir()] == ["memory.db.key"]
        assert _contents(world.ledger) == untouched
    key_file.write_text(old + new)
    goal = world.room / "goal"
    assert world.restore(goal)["forgotten"] == {"agents": 1, "subjects": 2, "entries": 5}
    check_restored(world, goal)
    # The restored store has both keys: the command completes the replacement there as well. A store
    # in a file has a copy of the ledger of its own.
    own = goal / "memory.db.ledger" if is_on_file() else world.ledger
    assert _wrapper(own) == rotated["newest"]
    again = ("keys", "rotate-master", "--data", str(goal))
    environment = {"MEMORYWALL_LEDGER": str(own)}
    assert json.loads(succeed(*again, "--status", "--json", variables=environment))["left"] > 0
    assert json.loads(succeed(*again, "--json", variables=environment))["left"] == 0
    succeed(*again, "--retire", variables=environment)
    assert (goal / "memory.db.key").read_text() == new
    succeed("verify", "--data", str(goal))


@pytest.mark.sqlite("the command; the store does not matter to it")
def test_the_old_key_stays_while_the_ledger_needs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "d"
    options = ("--data", str(data))
    succeed("keys", "create", *options, "--agent", "ada", "--user", "ann")
    succeed("forget", *options, "ann", "--yes")
    file = data / "memory.db.key"
    with monkeypatch.context() as patched:

        def fail(self: SuppressionLedger) -> None:
            raise PermissionError

        patched.setattr(SuppressionLedger, "renew_key", fail)
        said = json.loads(succeed("keys", "rotate-master", *options, "--json"))
        assert said["ledger_left"] is True
        assert "the suppression ledger needs" in refuse(
            "keys", "rotate-master", *options, "--retire"
        )
        assert len(file.read_text().split()) == 2
    succeed("keys", "rotate-master", *options)
    succeed("keys", "rotate-master", *options, "--retire")
    assert len(file.read_text().split()) == 1
    succeed("forget", *options, "bob", "--yes")


def test_the_secret_is_wrapped_anew_and_stays_the_same(tmp_path: Path) -> None:
    ensure_ledger(tmp_path)
    first = open_ledger(tmp_path, MasterKeys([OLD]))
    first.append([])
    digest = first.key.digest_tenant("acme")
    both = MasterKeys([OLD, NEW])
    assert needs_older_key(first, both)
    second = open_ledger(tmp_path, both)
    second.renew_key()
    assert not needs_older_key(second, both)
    third = open_ledger(tmp_path, MasterKeys([NEW]))
    assert third.key.digest_tenant("acme") == digest
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    renewed = (tmp_path / "key").read_bytes()
    third.renew_key()
    assert (tmp_path / "key").read_bytes() == renewed
    with pytest.raises(ConfigurationError, match="another key-encryption key"):
        open_ledger(tmp_path, MasterKeys([OLD])).renew_key()


def test_a_ledger_with_lines_gets_no_new_secret(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "one", MasterKeys([OLD]))
    ledger.append([_line(ledger)])
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    (tmp_path / "two" / "key").unlink()
    other = open_ledger(tmp_path / "two", MasterKeys([OLD]))
    for use in (other.read, lambda: other.key, lambda: other.append([])):
        with pytest.raises(LedgerDamagedError, match="its key is missing"):
            use()
    assert not (tmp_path / "two" / "key").exists()


def test_a_copy_has_the_secret_of_the_ledger(tmp_path: Path) -> None:
    keys = MasterKeys([OLD])
    ledger, copy = (open_ledger(tmp_path / name, keys) for name in ("one", "two"))
    ledger.append([_line(ledger)])
    assert copy.key.id != ledger.key.id
    copy.adopt(ledger)
    assert copy.key.id == ledger.key.id
    assert copy.read() == ledger.read()


def _line(ledger: SuppressionLedger) -> SuppressionLine:
    return ledger.key.make_line("now", SuppressionKind.AGENT, "acme", ["billing"], NO_EVENTS)


def _contents(directory: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(directory.iterdir())}
