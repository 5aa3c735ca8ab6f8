"""The pages that a checkpoint moves: every one is told, whatever other processes do to the log."""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memorywall.storage.sqlite.connection import connect, migrate
from memorywall.storage.sqlite.wal_pages import WalLostError, WalPages
from tests.support.pages import read_database

pytestmark = pytest.mark.anyio


class _Log:
    """A database with what a checkpointer needs of it."""

    def __init__(self, database: Path) -> None:
        self.database = database
        self.writer = connect(database)
        migrate(self.writer)
        self.reader = connect(database, read_only=True)
        self.mover = connect(database)
        self.pages = WalPages(database.with_name(database.name + "-wal"))
        self.writer.execute("CREATE TABLE t (number INTEGER PRIMARY KEY, value BLOB)")
        self.move()

    def write(self, chance: random.Random) -> None:
        with self.writer:
            for _ in range(chance.randrange(1, 300)):
                row = (chance.randrange(5_000), chance.randbytes(chance.choice((10, 900, 6_000))))
                self.writer.execute("INSERT OR REPLACE INTO t VALUES (?, ?)", row)

    def checkpoint(self, mode: str = "PASSIVE") -> tuple[int, int, int]:
        busy, frames, moved = self.mover.execute(f"PRAGMA wal_checkpoint({mode})").get
        return busy, frames, moved

    @contextmanager
    def reading(self) -> Iterator[None]:
        self.reader.execute("BEGIN; SELECT 1 FROM sqlite_schema").fetchall()
        try:
            yield
        finally:
            self.reader.execute("COMMIT")

    def move(self) -> set[int]:
        with self.reading():
            self.pages.read_header()
            return set(self.pages.moved_until(self.checkpoint()[2]))

    def cut(self) -> None:
        with self.reading():
            assert self.checkpoint("TRUNCATE")[0] == 0
        self.pages.emptied()


@pytest.fixture
def log(tmp_path: Path) -> _Log:
    database = tmp_path / "memory.db"
    database.touch()
    return _Log(database)


def _differences(before: bytes, after: bytes, size: int = 4_096) -> set[int]:
    return {
        place // size + 1
        for place in range(0, len(after), size)
        if before[place : place + size] != after[place : place + size]
    }


def test_every_page_that_a_checkpoint_changes_is_told(log: _Log) -> None:
    seed = secrets.randbits(32)
    chance = random.Random(seed)
    moves = 0
    for _ in range(60):
        before = read_database(log.database)
        for _ in range(chance.randrange(3)):
            log.write(chance)
        if chance.random() < 0.3:
            # A snapshot in the middle of the log: what comes after it is moved later.
            other = connect(log.database, read_only=True)
            other.execute("BEGIN; SELECT 1 FROM sqlite_schema").fetchall()
            log.write(chance)
            told = log.move()
            other.close()
        else:
            told = log.move()
        after = read_database(log.database)
        assert told >= _differences(before, after), f"seed {seed}"
        assert max(told, default=0) <= log.writer.execute("PRAGMA page_count").get, f"seed {seed}"
        moves += bool(told)
        if chance.random() < 0.1:
            log.move()
            log.cut()
            assert log.move() == set(), f"seed {seed}"
    assert moves > 20


def test_reported_pages_are_not_repeated(log: _Log) -> None:
    log.write(random.Random(1))
    assert log.move()
    assert log.move() == set()


@pytest.mark.parametrize("mode", ["PASSIVE", "TRUNCATE"])
def test_log_continued_by_another_process_is_detected(log: _Log, mode: str) -> None:
    chance = random.Random(2)
    log.write(chance)
    log.move()
    log.write(chance)
    for _ in range(2):
        log.checkpoint(mode)
        log.write(chance)
    with pytest.raises(WalLostError):
        log.move()
    assert log.move(), "it goes on from there"
    log.write(chance)
    assert log.move()


def test_log_truncated_by_another_process_is_detected(log: _Log) -> None:
    log.write(random.Random(3))
    log.move()
    log.checkpoint("TRUNCATE")
    with pytest.raises(WalLostError):
        log.move()


# What the log is cut under


async def test_last_write_of_another_process_is_not_missed_by_checkpoints(log: _Log) -> None:
    """The reader under which the log is cut lets nothing be moved that was not looked at."""
    chance = random.Random(4)
    log.write(chance)
    log.move()
    with log.reading():
        log.write(chance)
        log.mover.set_busy_timeout(0)
        before = read_database(log.database)
        assert log.checkpoint("TRUNCATE")[0] == 1
        assert read_database(log.database) == before
    assert log.move()
