"""A record that is declared in this file alone is stored, copied, verified and erased on both
stores, with nothing else touched."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from memorywall.records.sealed import SealedPart
from memorywall.storage.consistency import ConsistencyReader
from memorywall.storage.port import Store
from memorywall.storage.postgres.connection import SCHEMA
from memorywall.storage.postgres.consistency import PostgresConsistencyReader
from memorywall.storage.postgres.store import PostgresStore
from memorywall.storage.sql.record_spec import (
    ColumnType,
    RecordColumn,
    RecordIndex,
    RecordParent,
    RecordSpec,
)
from memorywall.storage.sql.record_statements import create_table
from memorywall.storage.sql.record_table import RECORDS
from memorywall.storage.sqlite.connection import connect, create_file, migrate
from memorywall.storage.sqlite.consistency import SqliteConsistencyReader
from memorywall.storage.sqlite.store import SqliteStore
from memorywall_testing.base import DEADLINE, NOW, TENANT, Opener, Stores
from memorywall_testing.records import (
    RecordsConformance,
    Spec,
    add_data_key,
    get_record,
    make_record,
    put_records,
)
from memorywall_testing.work import make_intent
from tests.support.backend import own_database
from tests.support.postgres import database_of, shared_server
from tests.support.transfer import File, Place, Server, move

pytestmark = pytest.mark.anyio

MARKER = b"WHAT-THE-NOTE-SAYS-TO-NOBODY"


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """What the tests below store."""

    tenant: str
    id: str
    intent_id: str
    status: str = "open"
    pages: int = 1
    source: str | None = None
    text: str = ""
    created_by: str
    version: int = 1
    sealed: SealedPart | None = None


NOTES = RecordSpec(
    noun="note",
    table="notes",
    struct=Note,
    columns=(
        RecordColumn(name="id"),
        RecordColumn(name="intent_id"),
        RecordColumn(name="status"),
        RecordColumn(name="pages", type=ColumnType.INTEGER),
        RecordColumn(name="source", required=False),
    ),
    indexes=(RecordIndex(name="notes_by_intent", columns=("intent_id", "id", "status")),),
    parents=(RecordParent(noun="intent", table="intents", column="intent_id"),),
    status="status",
    sealed=("text",),
)


@pytest.fixture(autouse=True)
def _declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RECORDS, NOTES.table, NOTES)


def _make_file(path: Path) -> Path:
    """A file with the table in it."""
    create_file(path)
    connection = connect(path)
    migrate(connection)
    connection.execute(create_table(NOTES, "sqlite"))
    connection.close()
    return path


def _make_table(url: str) -> str:
    """A database with the table in it."""
    statement = f"SET search_path = {SCHEMA}; {create_table(NOTES, 'postgres')}"
    shared_server().execute(statement, database=database_of(url))
    return url


@pytest.fixture
def file(tmp_path: Path) -> File:
    """A data directory with the table."""
    _make_file(tmp_path / "data" / "memory.db")
    return File(tmp_path / "data")


@pytest.fixture
def server() -> Iterator[Server]:
    """A database with the table."""
    with own_database() as url:
        yield Server(_make_table(url))


class _OfNotes(RecordsConformance):
    @pytest.fixture
    def spec(self) -> Spec:
        return NOTES


class TestOnSqlite(_OfNotes):
    @pytest.fixture
    def opener(self, file: File) -> Opener:
        async def opened(*, beside: bool = False) -> Store:
            return SqliteStore.open(file.database, exclusive=not beside, erasure_deadline=1.0)

        return opened

    async def test_its_bytes_leave_the_files(self, stores: Stores, file: File) -> None:
        store = await stores.open()
        sealed = make_record(NOTES, sealed=SealedPart("dek_1", MARKER * 20))
        await add_data_key(store, "dek_1", "ada")
        removed = make_record(NOTES, source=MARKER.decode())
        await put_records(store, NOTES, sealed, removed)
        await _until_erased(store)
        assert _files_with_marker(file)
        await store.write(TENANT, lambda to: to.records(NOTES).erase_sealed("ada", 9))
        await store.write(TENANT, lambda to: to.records(NOTES).remove(removed.id))
        await _until_erased(store)
        assert _files_with_marker(file) == []


class TestOnPostgres(_OfNotes):
    @pytest.fixture
    def opener(self, server: Server) -> Opener:
        async def opened(*, beside: bool = False) -> Store:
            return await PostgresStore.open(server.url)

        return opened


def _files_with_marker(file: File) -> list[str]:
    return [one.name for one in file.directory.iterdir() if MARKER in one.read_bytes()]


async def _until_erased(store: Store) -> None:
    until = time.monotonic() + DEADLINE
    while not store.is_erasure_complete():
        assert time.monotonic() < until
        await asyncio.sleep(0.02)


# Copy and verify


async def _open(place: Place) -> Store:
    if isinstance(place, File):
        return SqliteStore.open(place.database)
    assert isinstance(place, Server)
    return await PostgresStore.open(place.url)


def _inspect(place: Place) -> ConsistencyReader:
    if isinstance(place, File):
        return SqliteConsistencyReader(place.database)
    assert isinstance(place, Server)
    return PostgresConsistencyReader(place.url)


def _problems(place: Place) -> list[str]:
    inspection = _inspect(place)
    try:
        return list(inspection.index_problems())
    finally:
        inspection.close()


def _damage(place: Place, statement: str) -> None:
    if isinstance(place, File):
        connection = connect(place.database)
        connection.execute(statement)
        connection.close()
    else:
        assert isinstance(place, Server)
        script = f"SET search_path = {SCHEMA}; {statement}"
        shared_server().execute(script, database=database_of(place.url))


@pytest.fixture(params=["file", "server"])
async def filled(request: pytest.FixtureRequest) -> tuple[Place, list[Note]]:
    """A store of each kind with two notes of an intent, and the notes."""
    place: Place = request.getfixturevalue(request.param)
    store = await _open(place)
    intent = make_intent()
    notes = [
        make_record(NOTES, intent_id=intent.id, text="\0 é", source="s"),
        make_record(NOTES, intent_id=intent.id, sealed=SealedPart("dek_1", bytes(range(256)))),
    ]
    await store.write(TENANT, lambda to: to.identities.add_tenant(TENANT, NOW))
    await store.write(TENANT, lambda to: to.intents.insert(intent))
    await add_data_key(store, "dek_1", "ada")
    await put_records(store, NOTES, *notes)
    await store.close()
    return place, notes


@pytest.mark.parametrize("kind", ["file", "server"])
async def test_it_is_copied_to_every_store(
    filled: tuple[Place, list[Note]], kind: str, tmp_path: Path
) -> None:
    place, notes = filled
    if kind == "file":
        await asyncio.to_thread(_make_file, tmp_path / "target" / "memory.db")
        await _check_copy(place, File(tmp_path / "target"), notes)
        return
    with own_database() as url:
        await _check_copy(place, Server(_make_table(url)), notes)


async def _check_copy(place: Place, target: Place, notes: list[Note]) -> None:
    await move(place, target)
    store = await _open(target)
    assert [await get_record(store, NOTES, note) for note in notes] == notes
    await store.close()
    assert _problems(target) == []
    assert (await target.dump())["notes"] == (await place.dump())["notes"]


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        ("UPDATE notes SET status = 'shut'", "the columns of a note are not what it says"),
        ("DELETE FROM intents", "a note belongs to no intent"),
        ("DELETE FROM data_keys", "a note is sealed with a key that is gone"),
    ],
)
async def test_damage_to_it_is_found(
    filled: tuple[Place, list[Note]], damage: str, found: str
) -> None:
    place, _ = filled
    assert _problems(place) == []
    _damage(place, damage)
    assert {problem.partition(":")[0] for problem in _problems(place)} == {found}
