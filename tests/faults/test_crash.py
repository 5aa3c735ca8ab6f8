"""kill -9 at many points under load: everything acknowledged is there, nothing is torn."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

from tests.faults.load import Load
from tests.faults.support import acting_key, assert_verified, spawn, wait_until
from tests.support.extent import chosen_seed, extent
from tests.support.process import START_LIMIT, ServerProcess

_READY_WITHIN = extent(START_LIMIT, long=2.0)
_EXTRA_ROUNDS = extent(0, long=103)
_WRITES_BEFORE_A_KILL = 50


def test_a_killed_server_has_lost_nothing_and_is_soon_back(tmp_path: Path) -> None:
    seed = chosen_seed()
    chance = random.Random(seed)
    data = tmp_path / "data"
    # Killed while it makes its files for the first time, too.
    for _ in range(extent(1, long=3)):
        _kill_soon_after_start(data, chance)
    with ServerProcess(data, dev=False) as server:
        load = Load(seed, acting_key(server))
        _kill_under_load(server, load, chance)
    manners = [_kill_when_the_log_is_cut, _kill_while_stopping, _kill_under_load]
    usual = [_kill_under_load] * 12 + [_kill_while_stopping] * 6 + [_kill_when_the_log_is_cut]
    manners += chance.choices(usual, k=_EXTRA_ROUNDS)
    for number, manner in enumerate(manners):
        if chance.random() < 0.4:
            _kill_soon_after_start(data, chance)
        with ServerProcess(data, dev=False) as server:
            context = f"round {number}, seed {seed}"
            assert server.started_in < _READY_WITHIN, f"{server.started_in:.2f} s: {context}"
            _hold_to_its_word(server, load, context)
            acknowledged = load.acknowledged
            manner(server, load, chance)
            print(f"{manner.__name__}: {load.acknowledged - acknowledged} acknowledged")
    with ServerProcess(data, dev=False) as server:
        assert server.started_in < _READY_WITHIN, f"{server.started_in:.2f} s: seed {seed}"
        _hold_to_its_word(server, load, f"the end, seed {seed}")
        assert server.terminate() == 0
    assert_verified(data)


def _start_and_wait(server: ServerProcess, load: Load) -> None:
    """A kill shows something only where writes were acknowledged since the server started."""
    acknowledged = load.acknowledged
    load.start(server.url)
    load.wait_for(acknowledged + _WRITES_BEFORE_A_KILL)


def _hold_to_its_word(server: ServerProcess, load: Load, context: str) -> None:
    try:
        assert_verified(server.data)
        load.settle(server.url)
    except AssertionError as error:
        raise AssertionError(f"{context}: {error}") from error


def _kill_soon_after_start(data: Path, chance: random.Random) -> None:
    """At any moment from the first instruction until it serves."""
    process = spawn(data)
    time.sleep(chance.uniform(0.0, 0.8))
    process.kill()
    process.communicate()


def _kill_under_load(server: ServerProcess, load: Load, chance: random.Random) -> None:
    _start_and_wait(server, load)
    time.sleep(chance.uniform(0.0, 1.8))
    server.kill()
    load.stop()


def _kill_while_stopping(server: ServerProcess, load: Load, chance: random.Random) -> None:
    """While it answers the last requests, merges, and cuts the log."""
    _start_and_wait(server, load)
    time.sleep(chance.uniform(0.0, 0.8))
    server.process.send_signal(signal.SIGTERM)
    time.sleep(chance.uniform(0.0, 0.25))
    server.kill()
    load.stop()


def _kill_when_the_log_is_cut(server: ServerProcess, load: Load, chance: random.Random) -> None:
    """Right after what was deleted has left the write-ahead log, which takes some seconds."""
    log = server.data / "memory.db-wal"
    largest = 0

    def was_cut() -> bool:
        nonlocal largest
        size = log.stat().st_size
        largest = max(largest, size)
        return size < largest / 2

    load.start(server.url)
    wait_until(was_cut, 45, "the write-ahead log is cut under load")
    time.sleep(chance.uniform(0.0, 0.03))
    server.kill()
    load.stop()
