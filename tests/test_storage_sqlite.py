"""The embedded store passes the whole suite, and keeps its own promises besides."""

from __future__ import annotations

import asyncio
import stat
import threading
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import apsw
import msgspec
import pytest

from memorywall.records.decision import VisibilityFilter
from memorywall.records.entry import Scope
from memorywall.records.errors import ConfigurationError, StoreLockedError, UnavailableError
from memorywall.records.filter import EntryFilter
from memorywall.records.tier import Tier
from memorywall.storage.port import Store, Transaction
from memorywall.storage.sqlite.connection import connect
from memorywall.storage.sqlite.entries import SqliteEntryRepository
from memorywall.storage.sqlite.store import SqliteStore
from memorywall.storage.sqlite.transaction import SqliteTransaction
from memorywall_testing.base import (
    AGENT,
    DEADLINE,
    NOW,
    TENANT,
    Opener,
    append,
    at,
    find,
    get,
    make_entry,
    make_shared,
    newest_first,
    put,
    remove,
    replace,
    search,
    visibility,
)
from memorywall_testing.suite import StoreConformance
from tests.support.sqlite_files import create_database

pytestmark = pytest.mark.anyio

_MARKER = b"REMEMBER-ME-AND-THEN-FORGET-ME"


class TestSqliteStore(StoreConformance):
    @pytest.fixture
    def opener(self, tmp_path: Path) -> Opener:
        async def opened(*, beside: bool = False) -> Store:
            path = tmp_path / "memory.db"
            if not path.exists():
                create_database(path)
            return SqliteStore.open(path, exclusive=not beside, erasure_deadline=1.0)

        return opened


def test_no_case_of_the_suite_hides_another() -> None:
    """Two parts with a case of one name would run it once."""
    seen: dict[str, type] = {}
    for part in StoreConformance.__mro__:
        for name in vars(part):
            if name.startswith("test_"):
                assert name not in seen, f"{name} is both in {seen.get(name)} and in {part}"
                seen[name] = part
    assert len(seen) > 100


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "data" / "memory.db"


@pytest.fixture
async def store(database: Path) -> AsyncIterator[SqliteStore]:
    create_database(database)
    store = SqliteStore.open(database, erasure_deadline=1.0)
    yield store
    await store.close()


async def _until(condition: Callable[[], bool]) -> None:
    """Waits for something that must come about."""
    until = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < until, "it did not come about"
        await asyncio.sleep(0.02)


# Scripts


async def _suspend(transaction: Transaction) -> None:
    await transaction.entries.insert(make_entry(key="suspended"), NOW)
    await asyncio.sleep(0)


async def test_a_script_that_suspends_is_refused_and_undone(store: SqliteStore) -> None:
    neighbours = [make_entry() for _ in range(20)]
    outcomes = await asyncio.gather(
        *(put(store, entry) for entry in neighbours[:10]),
        store.write(TENANT, _suspend),
        *(put(store, entry) for entry in neighbours[10:]),
        return_exceptions=True,
    )
    refusal = outcomes.pop(10)
    assert isinstance(refusal, RuntimeError)
    assert "awaited something other than its transaction" in str(refusal)
    assert outcomes == [None] * 20
    assert await search(store) == newest_first(neighbours)


async def test_a_reading_script_that_suspends_is_refused(store: SqliteStore) -> None:
    async def suspend(transaction: Transaction) -> None:
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="awaited something other"):
        await store.read(TENANT, suspend)
    assert await search(store) == []


async def test_a_reading_script_cannot_write(store: SqliteStore) -> None:
    with pytest.raises(apsw.ReadOnlyError):
        await store.read(TENANT, lambda to: to.entries.insert(make_entry(), NOW))
    assert await search(store) == []


async def test_a_read_that_takes_too_long_begins_again_in_a_thread(store: SqliteStore) -> None:
    await put(store, make_entry())
    threads: list[int] = []

    async def read(transaction: Transaction) -> int:
        threads.append(threading.get_ident())
        for _ in range(20_000):
            found, _ = await transaction.entries.search(
                EntryFilter(tenant=TENANT), visibility(AGENT), NOW
            )
            if len(threads) == 2:
                break
        return len(found)

    assert await store.read(TENANT, read) == 1
    assert threads[0] == threading.get_ident() != threads[1]
    # The limit is that of a function: the next one has its own.
    assert len(await search(store)) == 1


# The writer


@pytest.mark.parametrize("changes_first", [False, True])
async def test_a_write_that_takes_too_long_begins_again_in_a_thread(
    store: SqliteStore, changes_first: bool
) -> None:
    """What it has changed is undone, and what shares its commit is stored."""
    entries = [make_entry(), make_entry()]
    threads: list[int] = []

    async def write(transaction: Transaction) -> None:
        threads.append(threading.get_ident())
        if changes_first:
            await transaction.entries.insert(entries[0], NOW)
        until = time.thread_time() + 0.02
        while time.thread_time() < until:
            await transaction.give_way()
        if not changes_first:
            await transaction.entries.insert(entries[0], NOW)

    await asyncio.gather(store.write(TENANT, write), put(store, entries[1]))
    assert threads[0] == threading.get_ident() != threads[-1]
    assert await search(store) == newest_first(entries)


async def test_too_many_waiting_writes_are_refused_and_the_others_done(store: SqliteStore) -> None:
    entered, gate = threading.Event(), threading.Event()

    async def hold(transaction: Transaction) -> None:
        entered.set()
        assert gate.wait(DEADLINE)

    holding = asyncio.ensure_future(store.write(TENANT, hold, long=True))
    await _until(entered.is_set)
    entries = [make_entry() for _ in range(5_000)]
    writes = [asyncio.ensure_future(put(store, entry)) for entry in entries]
    await _until(lambda: any(write.done() for write in writes))
    gate.set()
    await holding
    outcomes = await asyncio.gather(*writes, return_exceptions=True)
    refused = [outcome for outcome in outcomes if outcome is not None]
    assert refused
    assert all(isinstance(outcome, UnavailableError) for outcome in refused)
    done = [entry for entry, outcome in zip(entries, outcomes, strict=True) if outcome is None]
    assert len(done) >= 4_096
    assert {entry.id for entry in await search(store)} == {entry.id for entry in done}
    await put(store, make_entry())


async def test_a_write_is_finished_though_its_caller_goes_away(store: SqliteStore) -> None:
    entered, gate = threading.Event(), threading.Event()
    entry = make_entry()

    async def hold(transaction: Transaction) -> None:
        entered.set()
        assert gate.wait(DEADLINE)
        await transaction.entries.insert(entry, NOW)

    writing = asyncio.ensure_future(store.write(TENANT, hold, long=True))
    await _until(entered.is_set)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    gate.set()
    await append(store)
    assert await get(store, entry) == entry


async def test_no_caller_is_notified_before_the_commit(store: SqliteStore, database: Path) -> None:
    """A second connection finds each write at the moment its caller hears of it."""
    other = connect(database, read_only=True)

    async def write() -> None:
        entry = make_entry()
        await put(store, entry)
        row = other.execute("SELECT 1 FROM entries WHERE id = ?", (entry.id,)).fetchone()
        assert row == (1,)

    await asyncio.gather(*(write() for _ in range(200)))
    other.close()


async def test_closed_store_refuses_writes(database: Path) -> None:
    store = SqliteStore.open(database)
    await store.close()
    await store.close()
    with pytest.raises(UnavailableError):
        await put(store, make_entry())


# The files


async def test_second_server_is_refused_and_the_first_continues(
    store: SqliteStore, database: Path
) -> None:
    with pytest.raises(StoreLockedError, match=r"another process .* has memory\.db open"):
        SqliteStore.open(database)
    beside = SqliteStore.open(database, exclusive=False)
    entry = make_entry()
    await put(beside, entry)
    assert await find(store, entry) == entry
    await beside.close()
    await store.close()
    again = SqliteStore.open(database)
    assert await find(again, entry) == entry
    await again.close()


async def test_a_store_that_is_not_exclusive_leaves_the_lock(database: Path) -> None:
    beside = SqliteStore.open(database, exclusive=False)
    server = SqliteStore.open(database)
    entry = make_entry()
    await put(beside, entry)
    assert await find(server, entry) == entry
    await beside.close()
    await server.close()


async def test_only_its_owner_can_read_the_files(store: SqliteStore, database: Path) -> None:
    await put(store, make_entry())
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in database.parent.iterdir()}
    assert "memory.db-wal" in modes
    assert set(modes.values()) == {0o600}


def test_non_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database\n" * 500)
    with pytest.raises(ConfigurationError, match="is not a memorywall database"):
        SqliteStore.open(path)
    assert path.read_text() == "not a database\n" * 500


async def test_a_database_of_a_newer_version_is_refused(database: Path) -> None:
    await SqliteStore.open(database).close()
    connection = apsw.Connection(str(database))
    connection.execute("PRAGMA user_version = 999")
    connection.close()
    with pytest.raises(ConfigurationError, match="schema 999"):
        SqliteStore.open(database)


def _files_with(marker: bytes, database: Path) -> list[str]:
    return [path.name for path in database.parent.iterdir() if marker in path.read_bytes()]


async def test_bytes_of_removed_or_replaced_data_are_in_no_file(
    store: SqliteStore, database: Path
) -> None:
    removed = make_entry(value=_MARKER * 300, tags=("removed",))
    replaced = make_entry(value=_MARKER * 300)
    kept = [make_entry(value=b"kept" * 900) for _ in range(20)]
    await put(store, *kept[:10], removed, replaced, *kept[10:])
    # What is cut at the start in any case must not be what erases it.
    await _until(store.is_erasure_complete)
    assert _files_with(_MARKER, database)
    await remove(store, removed)
    await replace(store, replaced, msgspec.structs.replace(replaced, version=2, value=b"", size=0))
    await _until(store.is_erasure_complete)
    assert _files_with(_MARKER, database) == []
    assert len(await search(store)) == 21


# The plans

_PARTS = ("owners", "namespaces", "tasks", "intents", "coordinated", "episodic")


def _entries(connection: apsw.Connection) -> SqliteEntryRepository:
    transaction = SqliteTransaction(connection)
    transaction.rows.bound = TENANT
    return transaction.entries


@pytest.mark.parametrize(
    "conditions",
    [
        {},
        {"tiers": (Tier.EPISODIC,)},
        {"tiers": tuple(Tier)},
        {"tags": ("a",)},
        {"tags": ("a", "b")},
        {"tags_any": ("a", "b")},
        {"task_id": "t"},
        {"intent_id": "i"},
        {"namespace": "n"},
        {"namespace_prefix": "n"},
        {"key": "k", "namespace": "n", "tiers": (Tier.WORKING,)},
        {"pinned": True},
        {"kind": "core"},
        {"updated_after": at(1), "before": "mem_9"},
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "within",
    [
        visibility(AGENT),
        visibility("a", "b"),
        visibility(*(f"agent-{number}" for number in range(9))),
        visibility(namespaces=["n"]),
        visibility(AGENT, namespaces=["n", "m"]),
        visibility(AGENT, namespaces=[f"space-{number}" for number in range(50)]),
        VisibilityFilter(owners=(AGENT,), tasks=("t",)),
        VisibilityFilter(namespaces=("n",), intents=("i", "j")),
        VisibilityFilter(coordinated=("i",), episodic=("a", "b")),
        VisibilityFilter(
            owners=(AGENT,),
            namespaces=("n",),
            tasks=tuple(f"t{number}" for number in range(9)),
            intents=("i",),
            coordinated=("i", "j"),
            episodic=tuple(f"agent-{number}" for number in range(9)),
        ),
    ],
    ids=lambda one: " ".join(f"{name[:3]}{len(getattr(one, name))}" for name in _PARTS),
)
async def test_a_search_goes_through_an_index_led_by_the_tenant(
    store: SqliteStore, database: Path, within: VisibilityFilter, conditions: dict[str, object]
) -> None:
    """No statement of a search may walk a table: its time would grow with the memory of others."""
    await put(store, make_entry(tags=("a", "b"), scope=Scope(task_id="t")), make_shared("n"))
    connection = connect(database, read_only=True)
    asked: list[tuple[str, object]] = []

    def note(_: apsw.Cursor, statement: str, bindings: object) -> bool:
        asked.append((statement, bindings))
        return True

    connection.exec_trace = note
    wanted = EntryFilter(tenant=TENANT, limit=1, **conditions)  # type: ignore[arg-type]
    await _entries(connection).search(wanted, within, NOW)
    connection.exec_trace = None
    plans = [
        str(row[3])
        for statement, bindings in asked
        for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", bindings)  # type: ignore[arg-type]
    ]
    connection.close()
    results = {line.split()[1] for line in plans if line.startswith(("CO-ROUTINE", "MATERIALIZE"))}
    lines = [line for line in plans if line.startswith(("SCAN", "SEARCH"))]
    assert lines
    for line in lines:
        values = "json_each" in line or line.split()[1] in results
        by_number = "USING INTEGER PRIMARY KEY (rowid=?)" in line
        assert values or by_number or "(tenant=?" in line, plans


@pytest.mark.parametrize("count", [2, 65])
async def test_few_entries_of_a_kind_are_found_by_their_kind(
    store: SqliteStore, database: Path, count: int
) -> None:
    for number in range(count):
        await put(store, make_entry(id=f"mem_{number:03}", key=f"k{number}", kind="core"))
    await put(store, make_entry(id="mem_other", key="other"))
    connection = connect(database, read_only=True)
    asked: list[str] = []

    def note(_: apsw.Cursor, statement: str, __: object) -> bool:
        asked.append(statement)
        return True

    connection.exec_trace = note
    wanted = EntryFilter(tenant=TENANT, kind="core", limit=3, counted=False)
    found, _ = await _entries(connection).search(wanted, visibility(AGENT), NOW)
    connection.close()
    assert [one.id for one in found] == [f"mem_{count - 1 - at:03}" for at in range(min(count, 3))]
    assert ("entries e INDEXED BY entries_by_kind" in asked[-1]) == (count == 2)
