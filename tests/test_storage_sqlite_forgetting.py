"""What is special to SQLite in forgetting: old data keys, and removals beside the server."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import anyio
import apsw
import msgspec
import pytest

from memorywall.records.entry import Entry
from memorywall.records.idempotency import DataKey, IdempotencyRecord
from memorywall.storage.port import Store
from memorywall.storage.sqlite.connection import migrate, migrations, schema_version
from memorywall.storage.sqlite.store import SqliteStore
from memorywall_testing.base import NOW, TENANT, make_entry, put, remove, replace
from memorywall_testing.embedding import put_vectors, remove_others, vector_of

pytestmark = pytest.mark.anyio

_MARK = b"mark-of-what-goes"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


def _holds(database: Path, content: bytes) -> bool:
    return any(content in path.read_bytes() for path in database.parent.glob("memory.db*"))


async def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 15
    while not condition():
        assert time.monotonic() < deadline, "it does not come about"
        await anyio.sleep(0.02)


def test_keys_that_are_older_than_subjects_are_the_tenant_s(database: Path) -> None:
    connection = apsw.Connection(str(database))
    for number, _, sql in migrations()[:2]:
        connection.execute(sql)
        connection.execute(f"PRAGMA user_version = {number}; PRAGMA application_id = 0x6D77616C")
    connection.execute(
        "INSERT INTO data_keys VALUES ('acme', 'dek_1', x'01', 'kek', 'then'),"
        " ('globex', 'dek_2', x'02', 'kek', 'later')"
    )
    migrate(connection)
    rows = connection.execute(
        "SELECT tenant, id, subject, wrapped, wrapped_by, created_at FROM data_keys"
    ).fetchall()
    assert rows == [
        ("acme", "dek_1", "", b"\x01", "kek", "then"),
        ("globex", "dek_2", "", b"\x02", "kek", "later"),
    ]
    assert schema_version(connection) == migrations()[-1][0] >= 3
    connection.close()


async def _remove_entry(store: Store) -> Callable[[Store], object]:
    entry = make_entry(value=_MARK * 50)
    await put(store, entry)
    return lambda beside: remove(beside, entry)


async def _remove_key(store: Store) -> Callable[[Store], object]:
    key = DataKey(
        tenant=TENANT, id="dek", owner="ada", wrapped=_MARK, wrapped_by="kek", created_at=NOW
    )
    await store.write(TENANT, lambda to: to.data_keys.add(key))
    return lambda beside: beside.write(TENANT, lambda to: to.data_keys.remove("ada"))


async def _remove_reply(store: Store) -> Callable[[Store], object]:
    kept = IdempotencyRecord(
        tenant=TENANT, principal="ada", key="k", fingerprint=b"f", status=201, reply=_MARK,
        sealing_key="dek", entry_ids=(), created_at=NOW,
    )  # fmt: skip
    await store.write(TENANT, lambda to: to.replies.put(kept))
    return lambda beside: beside.write(TENANT, lambda to: to.replies.remove("ada", 9))


async def _embedded(store: Store) -> Entry:
    entry = make_entry()
    await put(store, entry)
    await put_vectors(store, vector_of(entry, _MARK * 40))
    return entry


async def _remove_what_has_a_vector(store: Store) -> Callable[[Store], object]:
    entry = await _embedded(store)
    return lambda beside: remove(beside, entry)


async def _change_what_has_a_vector(store: Store) -> Callable[[Store], object]:
    entry = await _embedded(store)
    changed = msgspec.structs.replace(entry, version=2, value=b"2", size=1)
    return lambda beside: replace(beside, entry, changed)


async def _relabel_what_has_a_vector(store: Store) -> Callable[[Store], object]:
    entry = await _embedded(store)
    changed = msgspec.structs.replace(entry, version=2, sensitivity="confidential")
    return lambda beside: replace(beside, entry, changed)


async def _use_another_model(store: Store) -> Callable[[Store], object]:
    await _embedded(store)
    return lambda beside: remove_others(beside, 9, model="another")


_REMOVALS = (
    _remove_entry,
    _remove_key,
    _remove_reply,
    _remove_what_has_a_vector,
    _change_what_has_a_vector,
    _relabel_what_has_a_vector,
    _use_another_model,
)


@pytest.mark.parametrize("prepare", _REMOVALS)
@pytest.mark.parametrize("where", ["here", "beside"])
@pytest.mark.sampled(5)
async def test_the_server_erases_what_was_removed_wherever_that_was(
    database: Path, prepare: Callable[[Store], object], where: str
) -> None:
    store = SqliteStore.open(database, erasure_deadline=0.2)
    other = SqliteStore.open(database, exclusive=False)
    # Nothing is left to be erased, so nothing else makes the server cut the log, where it stands.
    await _until(store.is_erasure_complete)
    taking = await prepare(store)  # type: ignore[misc]
    assert _holds(database, _MARK)
    await taking(store if where == "here" else other)
    await _until(lambda: not _holds(database, _MARK))
    await _until(store.is_erasure_complete)
    await other.close()
    await store.close()


async def test_a_server_knows_that_something_was_removed_beside_it(database: Path) -> None:
    store = SqliteStore.open(database, erasure_deadline=4)
    other = SqliteStore.open(database, exclusive=False)
    entry = make_entry(value=_MARK)
    await _until(store.is_erasure_complete)
    await put(store, entry)
    await put(other, make_entry())
    await anyio.sleep(0.5)
    assert store.is_erasure_complete(), "adding something is nothing to erase"
    await remove(other, entry)
    await _until(lambda: not store.is_erasure_complete())
    await _until(store.is_erasure_complete)
    assert not _holds(database, _MARK)
    await other.close()
    await store.close()
