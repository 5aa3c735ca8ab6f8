"""What was removed leaves the database as well as the log, whatever moved between pages."""

from __future__ import annotations

import asyncio
import random
import re
import secrets
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from memorywall.records.entry import Entry
from memorywall.records.recall import EntryVector, StoredSegment
from memorywall.storage.port import Transaction
from memorywall.storage.sqlite import checkpointer
from memorywall.storage.sqlite.connection import connect
from memorywall.storage.sqlite.scrub import DirtyPages, Scrubber
from memorywall.storage.sqlite.store import SqliteStore
from memorywall_testing.base import (
    DEADLINE,
    NOW,
    TENANT,
    get,
    make_entry,
    put,
    remove,
    replace,
)
from memorywall_testing.embedding import put_vectors
from tests.support.extent import extent
from tests.support.pages import all_rows, is_soiled, marks, read_database, soil
from tests.support.programs import start_python

pytestmark = pytest.mark.anyio

_MARK = re.compile(rb"mark-[0-9a-f]{16}")
_CHURNED = extent(100, long=300)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
async def store(database: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore.open(database, erasure_deadline=0.2)
    yield store
    await store.close()


async def _until(condition: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < until, f"{what} within {DEADLINE} seconds"
        await asyncio.sleep(0.02)


# Remains


class _Churn:
    """Entries that come, change their size and go, and their vectors with them, so that pages are
    split and merged."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.live: dict[str, Entry] = {}
        self._vectors: dict[str, bytes] = {}
        self._chance = random.Random(seed)

    async def run(self, store: SqliteStore, rounds: int, entries: int = 1_000) -> None:
        for _ in range(rounds):
            made = [self._make() for _ in range(entries)]
            await put(store, *made)
            self.live.update((entry.id, entry) for entry in made)
            await self._embed(store)
            for entry in self._third():
                value = self._value()
                changed = msgspec.structs.replace(
                    entry, version=entry.version + 1, value=value, size=len(value)
                )
                await replace(store, entry, changed)
                self.live[entry.id] = changed
                self._vectors.pop(entry.id, None)
            await self._embed(store)
            gone = self._third()
            await remove(store, *gone)
            for entry in gone:
                del self.live[entry.id]
                self._vectors.pop(entry.id, None)

    async def _embed(self, store: SqliteStore) -> None:
        """Makes vectors of some that have none."""
        made = [
            EntryVector(entry.id, entry.version, self._mark().encode() + b"-" * 747)
            for entry in self._third()
            if entry.id not in self._vectors
        ]
        await put_vectors(store, *made)
        self._vectors.update((one.entry_id, one.vector) for one in made)

    def marks(self) -> set[str]:
        """Those of what is there."""
        every = b"".join(entry.key.encode() + entry.value for entry in self.live.values())
        every += b"".join(self._vectors.values())
        return marks(every, _MARK)

    def _third(self) -> list[Entry]:
        return self._chance.sample(list(self.live.values()), len(self.live) // 3)

    def _make(self) -> Entry:
        return make_entry(key=self._mark() + "-" * self._chance.randrange(900), value=self._value())

    def _value(self) -> bytes:
        return (self._mark() + "." * self._chance.choice((0, 0, 400, 3_000))).encode()

    def _mark(self) -> str:
        return f"mark-{self._chance.randbytes(8).hex()}"


async def test_no_copy_remains_of_cells_moved_between_pages(
    store: SqliteStore, database: Path
) -> None:
    churn = _Churn(secrets.randbits(32))
    await churn.run(store, 6)
    await _until(store.is_erasure_complete, "everything is erased")
    assert marks(read_database(database), _MARK) == churn.marks(), f"seed {churn.seed}"
    await churn.run(store, 2)
    await store.close()
    assert marks(read_database(database), _MARK) == churn.marks(), f"seed {churn.seed}"
    rows = all_rows(database)["entries"]
    assert len(rows) == len(churn.live)


async def test_no_byte_of_an_index_segment_outlives_one_of_its_entries(
    store: SqliteStore, database: Path
) -> None:
    entries = [make_entry() for _ in range(6)]
    await put(store, *entries)
    content = [f"mark-{number:016x}".encode() * 4_000 for number in range(2)]
    for one, some in zip(content, (entries[:3], entries[3:]), strict=True):
        segment = StoredSegment(some[0].id, some[-1].id, "1", one)
        versions = {entry.id: entry.version for entry in some}
        place = some[0].tier, some[0].owner, segment, versions
        assert await store.write(TENANT, lambda to, place=place: to.recall.put_segment(*place))  # type: ignore[misc]
    await _until(store.is_erasure_complete, "the log is cut")
    assert content[0][:21] in read_database(database)
    await remove(store, entries[1])
    await _until(store.is_erasure_complete, "everything is erased")
    assert marks(read_database(database), _MARK) == {content[1][:21].decode()}


async def test_copies_are_left_when_nothing_overwrites_them(
    store: SqliteStore, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same churn leaves remains when all but the overwriting is done: the case above would see
    them."""

    def scrub(scrubber: Scrubber, suspects: DirtyPages, *_: object, **__: object) -> None:
        suspects.clear()

    monkeypatch.setattr(Scrubber, "scrub", scrub)
    churn = _Churn(1)
    await churn.run(store, 6)
    await _until(store.is_erasure_complete, "the log is cut")
    assert marks(read_database(database), _MARK) > churn.marks()


async def _fill(database: Path) -> list[Entry]:
    store = SqliteStore.open(database)
    entries = [make_entry(value=b"kept" * 200) for _ in range(400)]
    await put(store, *entries)
    await store.close()
    return entries


async def test_a_start_overwrites_what_an_earlier_process_left(database: Path) -> None:
    await _fill(database)
    rows = all_rows(database)
    assert soil(database) > 20
    store = SqliteStore.open(database, erasure_deadline=0.2)
    assert not store.is_erasure_complete()
    await _until(store.is_erasure_complete, "everything is erased")
    assert not is_soiled(database)
    await store.close()
    assert all_rows(database) == rows


async def test_a_small_file_is_clean_after_the_shortest_use(database: Path) -> None:
    await _fill(database)
    soil(database)
    await SqliteStore.open(database).close()
    assert not is_soiled(database)


async def test_removed_data_is_erased_from_a_large_file_after_a_short_use(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no time to go through such a file, but the pages that were changed are known."""
    await _fill(database)
    assert soil(database) > 20
    monkeypatch.setattr(checkpointer, "_INTERVAL", 60)
    monkeypatch.setattr(checkpointer, "_SCRUB_AT_THE_END", 0)
    store = SqliteStore.open(database)
    churn = _Churn(secrets.randbits(32))
    await churn.run(store, 4)
    await store.close()
    assert marks(read_database(database), _MARK) == churn.marks(), f"seed {churn.seed}"
    assert is_soiled(database), "the other pages were gone through"


async def test_a_log_that_is_cut_for_its_size_keeps_nothing_from_being_erased(
    store: SqliteStore, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _until(store.is_erasure_complete, "everything is erased")
    monkeypatch.setattr(checkpointer, "_LARGEST_LOG", 0)
    monkeypatch.setattr(checkpointer, "_INTERVAL", 0.01)
    churn = _Churn(secrets.randbits(32))
    await churn.run(store, 4)
    await _until(store.is_erasure_complete, "everything is erased")
    assert marks(read_database(database), _MARK) == churn.marks(), f"seed {churn.seed}"


async def test_cached_page_of_a_connection_is_not_written_back(
    store: SqliteStore, database: Path
) -> None:
    """The writer keeps pages in memory as they were before they were overwritten in the file."""
    entries = [make_entry(value=b"kept" * 200) for _ in range(400)]
    await put(store, *entries)
    await remove(store, entries.pop())
    await _until(store.is_erasure_complete, "everything is erased")
    soil(database)
    read: list[Entry] = []

    async def read_and_remove(transaction: Transaction) -> None:
        for entry in entries:
            found = await transaction.entries.get(entry.id, NOW)
            assert found is not None
            read.append(found)
        await transaction.entries.remove(entries.pop())

    await store.write(TENANT, read_and_remove)
    assert len(read) == 399
    assert is_soiled(database)
    # It takes another look at every page, since these were not soiled by writing.
    assert store._checkpointer is not None
    store._checkpointer._dirty_pages.add_all()
    await _until(store.is_erasure_complete, "everything is erased")
    assert not is_soiled(database)
    for entry in entries[::7]:
        changed = msgspec.structs.replace(entry, version=2, value=b"more" * 250, size=1_000)
        await replace(store, entry, changed)
    assert not is_soiled(database), "pages were written back as they had been read"


async def test_nothing_is_called_erased_while_a_reader_holds_it(
    store: SqliteStore, database: Path
) -> None:
    entry = make_entry(value=b"mark-0123456789abcdef")
    await put(store, entry)
    await _until(store.is_erasure_complete, "everything is erased")
    reader = connect(database, read_only=True)
    await put(store, make_entry())
    reader.execute("BEGIN; SELECT count(*) FROM entries").fetchall()
    await remove(store, entry)
    until = time.monotonic() + 1.0
    while time.monotonic() < until:
        assert not store.is_erasure_complete()
        await asyncio.sleep(0.02)
    assert "mark-0123456789abcdef" in marks(read_database(database), _MARK)
    reader.execute("COMMIT")
    await _until(store.is_erasure_complete, "everything is erased")
    assert not marks(read_database(database), _MARK)
    reader.close()


async def test_checkpoint_of_another_process_marks_every_page_dirty(
    store: SqliteStore, database: Path
) -> None:
    await put(store, *[make_entry(value=b"kept" * 200) for _ in range(400)])
    await _until(store.is_erasure_complete, "everything is erased")
    await put(store, make_entry())
    other = connect(database)
    other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    soil(database)
    until = time.monotonic() + DEADLINE
    while is_soiled(database):
        assert time.monotonic() < until, "it was never noticed"
        entry = make_entry()
        await put(store, entry)
        await asyncio.sleep(0.3)
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        await remove(store, entry)
    other.close()


# Beside others

_READ_ON = """
import sys
from pathlib import Path
from memorywall.storage.sqlite.connection import connect
connection = connect(Path(sys.argv[1]), read_only=True)
rounds = 0
while True:
    connection.execute("BEGIN")
    for (answer,) in connection.execute("PRAGMA integrity_check"):
        assert answer == "ok", answer
    for key, value in connection.execute("SELECT key, value FROM entries NOT INDEXED"):
        assert value.startswith(b"mark-"), value
    connection.execute("COMMIT")
    rounds += 1
    if Path(sys.argv[2]).exists():
        break
print(rounds)
"""


@contextmanager
def _reading_processes(database: Path, end: Path) -> Iterator[None]:
    """Two of them, until the file `end` is there. They must not have seen anything amiss."""
    command = ["-c", _READ_ON, str(database), str(end)]
    readers = [
        start_python(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)
    ]
    try:
        yield
    finally:
        end.touch()
        outcomes = [(*reader.communicate(timeout=DEADLINE), reader) for reader in readers]
    for printed, errors, reader in outcomes:
        assert reader.returncode == 0, errors
        assert int(printed) > 0, "it never came to read"


async def test_writers_and_readers_continue(
    store: SqliteStore, database: Path, tmp_path: Path
) -> None:
    end = tmp_path / "end"
    beside = SqliteStore.open(database, exclusive=False)
    churns = [_Churn(secrets.randbits(32)) for _ in range(3)]
    seeds = f"seeds {[churn.seed for churn in churns]}"

    async def read() -> None:
        while not end.exists():
            for churn in churns:
                for entry in list(churn.live.values())[::50]:
                    found = await get(store, entry)
                    # It may have been changed or removed since it was looked up.
                    assert found is None or found.key == entry.key, seeds
            await asyncio.sleep(0)

    reading = asyncio.create_task(read())
    with _reading_processes(database, end):
        await asyncio.gather(
            churns[0].run(store, 4, _CHURNED),
            churns[1].run(store, 4, _CHURNED),
            churns[2].run(beside, 2, _CHURNED),
        )
    await reading
    await beside.close()
    await _until(store.is_erasure_complete, "everything is erased")
    await store.close()
    live = [entry for churn in churns for entry in churn.live.values()]
    assert marks(read_database(database), _MARK) == set().union(
        *(churn.marks() for churn in churns)
    ), seeds
    all_rows(database)
    assert _keys_and_values(database) == {entry.key: entry.value for entry in live}, seeds


def _keys_and_values(database: Path) -> dict[str, bytes]:
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        rows: Any = connection.execute("SELECT key, value FROM entries")
        return dict(rows)
    finally:
        connection.close()
