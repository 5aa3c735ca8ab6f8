"""The spool of hooks: an accepted turn survives every kill, and is stored once."""

from __future__ import annotations

import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path
from random import Random

import pytest

from memorywall.adapters.hosts import spool as spools
from memorywall.adapters.hosts.spool import Spool, SpooledTurn
from memorywall.records.errors import ConfigurationError
from tests.support.extent import chosen_seed

_CHILD = """
import sys
from pathlib import Path
from memorywall.adapters.hosts.spool import Spool, SpooledTurn

spool, name = Spool(Path(sys.argv[1])), sys.argv[2]
number = 0
while True:
    number += 1
    client_id, text = f"{name}-{number}", f"{number} " * 3000
    spool.append([SpooledTurn(said_at="2026-01-01T00:00:00.000Z", session="s",
                              client_id=client_id, role="user", text=text)])
    print(number, flush=True)
"""


def _turn(client_id: str, text: str = "hello") -> SpooledTurn:
    return SpooledTurn(
        said_at="2026-01-01T00:00:00.000Z",
        session="s",
        client_id=client_id,
        role="user",
        text=text,
    )


def test_turns_come_back_in_order_from_a_file_of_its_user_alone(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "new" / "folder")
    assert spool.read().turns == []
    given = [_turn("a", "one\ntwo  \x00"), _turn("b", "ü" * 70_000)]
    spool.append(given[:1])
    spool.append(given[1:])
    content = spool.read()
    assert content.turns == given
    path = tmp_path / "new" / "folder" / "spool.jsonl"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert spool.truncate(content.size)
    assert path.stat().st_size == 0
    assert spool.read().turns == []


def test_killed_hooks_lose_no_accepted_turn(tmp_path: Path) -> None:
    seed = chosen_seed()
    random, accepted = Random(seed), 0
    for round_ in range(4):
        command = [sys.executable, "-c", _CHILD, str(tmp_path), f"r{round_}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            last = 0
            for _ in range(random.randint(1, 30)):
                last = int(child.stdout.readline())
            child.send_signal(signal.SIGKILL)
            rest = [int(line) for line in child.stdout.read().split("\n") if line]
        last = max([last, *rest])
        names = [turn.client_id for turn in Spool(tmp_path).read().turns]
        of_round = [name for name in names if name.startswith(f"r{round_}-")]
        # What was killed between the disk and its word may be there as well, and once.
        assert of_round[:last] == [f"r{round_}-{one}" for one in range(1, last + 1)]
        assert len(of_round) <= last + 1
        accepted += len(of_round)
    assert len(Spool(tmp_path).read().turns) == accepted


def test_a_torn_line_spoils_no_other(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.append([_turn("a")])
    path = tmp_path / "spool.jsonl"
    with path.open("ab") as file:
        file.write(b'{"said_at":"\xff"}\n{"said_at":"2026-01-01T00:00')
    spool.append([_turn("b")])
    content = spool.read()
    assert [turn.client_id for turn in content.turns] == ["a", "b"]
    assert content.torn == 2
    assert spool.truncate(content.size)


def test_what_is_appended_while_turns_are_stored_stays(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.append([_turn("a")])
    size = spool.read().size
    spool.append([_turn("b")])
    assert not spool.truncate(size)
    assert [turn.client_id for turn in spool.read().turns] == ["a", "b"]


def test_many_writers_and_one_that_stores_lose_nothing(tmp_path: Path) -> None:
    spool, each, writers = Spool(tmp_path), 40, 4
    spool.append([_turn("begin")])
    stored: set[str] = set()
    is_over = threading.Event()

    def write(name: int) -> None:
        for number in range(each):
            Spool(tmp_path).append([_turn(f"{name}-{number}")])

    def store() -> None:
        while True:
            was_over = is_over.is_set()
            content = spool.read()
            stored.update(turn.client_id for turn in content.turns)
            spool.truncate(content.size)
            if was_over:
                return

    threads = [threading.Thread(target=write, args=[name]) for name in range(writers)]
    storing = threading.Thread(target=store)
    for thread in [*threads, storing]:
        thread.start()
    for thread in threads:
        thread.join()
    is_over.set()
    storing.join()
    assert len(stored) == each * writers + 1


def test_one_process_at_a_time_stores_and_knows_how_far_it_came(tmp_path: Path) -> None:
    spool, turns = Spool(tmp_path), [_turn("a"), _turn("b"), _turn("c")]
    with spool.draining() as progress:
        assert progress is None
    spool.append(turns)
    with spool.draining() as progress:
        assert progress is not None
        assert progress.read(turns) == 0
        progress.write(turns[:2])
        with Spool(tmp_path).draining() as other:
            assert other is None
    with spool.draining() as progress:
        assert progress is not None
        assert progress.read(turns) == 2
        # Of other turns it says nothing, whatever has become of the spool.
        assert progress.read([_turn("d"), _turn("e"), _turn("f")]) == 0
        assert progress.read(turns[:1]) == 0
        progress.write(())
        assert progress.read(turns) == 0


def test_a_full_spool_says_so_and_keeps_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spools, "_MOST_BYTES", 1_000)
    spool = Spool(tmp_path)
    spool.append([_turn("a")])
    with pytest.raises(ConfigurationError, match="wait for memory"):
        spool.append([_turn("b", "x" * 2_000)])
    assert [turn.client_id for turn in spool.read().turns] == ["a"]
