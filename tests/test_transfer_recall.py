"""What a copy carries of recall: uses, but no vectors, and none that would not fit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import apsw
import asyncpg
import pytest

from memorywall.jobs.copy import OverwritePolicy
from memorywall.records.entry import Entry
from memorywall.records.recall import ContextOutcomes, EntryVector, UseCounts
from memorywall.records.tier import Tier
from memorywall.storage.port import Store, Transaction, TransactionFunction
from memorywall.storage.postgres.consistency import PostgresConsistencyReader
from memorywall.storage.postgres.store import PostgresStore
from memorywall.storage.sqlite.store import SqliteStore
from memorywall_testing.base import Result, at, make_entry, put
from tests.support.service import open_service
from tests.support.transfer import (
    MODEL,
    OTHER_TENANT,
    File,
    Place,
    Server,
    copy_of,
    empty_place,
    filled_directory,
    go_on,
    move,
)

pytestmark = pytest.mark.anyio

_TENANT = "default"
_ENDLESS = at(10**9)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> File:
    """A store with everything in it; not to be changed."""
    return filled_directory(tmp_path_factory.mktemp("original") / "data", attachment=1_000)


@pytest.fixture
def filled(original: File, tmp_path: Path) -> File:
    """Such a store for one test."""
    return copy_of(original, tmp_path / "filled")


@pytest.fixture(params=["file", "server"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """An empty store of each kind."""
    with empty_place(request.param, tmp_path / "target") as place:
        yield place


@asynccontextmanager
async def _opened(place: Place) -> AsyncIterator[Store]:
    store: Store
    if isinstance(place, File):
        store = SqliteStore.open(place.database)
    else:
        assert isinstance(place, Server)
        store = await PostgresStore.open(place.url)
    try:
        yield store
    finally:
        await store.close()


async def _read(place: Place, script: TransactionFunction[Result], tenant: str = _TENANT) -> Result:
    async with _opened(place) as store:
        return await store.read(tenant, script)


async def _entries(place: Place, tenant: str = _TENANT) -> dict[str, Entry]:
    async def script(to: Transaction) -> dict[str, Entry]:
        found = await to.entries.of_owner(Tier.WORKING, "billing", 99)
        return {entry.id: entry for entry in found}

    return await _read(place, script, tenant)


async def _kept(place: Place, ids: list[str], tenant: str = _TENANT) -> dict[str, bytes]:
    return await _read(place, lambda to: to.recall.vectors(MODEL, ids), tenant)


async def _uses(place: Place, ids: list[str]) -> dict[str, UseCounts]:
    return await _read(place, lambda to: to.recall.uses(ids))


async def _position(place: Place, tenant: str = _TENANT) -> int:
    return await _read(place, lambda to: to.recall.position(MODEL), tenant)


async def _problems(place: Place) -> list[str]:
    if isinstance(place, File):
        return place.problems()
    assert isinstance(place, Server)
    return await asyncio.to_thread(_inspect, place.url)


def _inspect(url: str) -> list[str]:
    inspection = PostgresConsistencyReader(url)
    try:
        return list(inspection.index_problems())
    finally:
        inspection.close()


async def _tenants_in(place: Place, table: str) -> set[str]:
    """Whose rows are in a table."""
    if isinstance(place, File):
        with closing(apsw.Connection(str(place.database))) as connection:
            return {str(row[0]) for row in connection.execute(f"SELECT tenant FROM {table}")}
    assert isinstance(place, Server)
    connected = await asyncpg.connect(place.url)
    found = await connected.fetch(f"SELECT tenant FROM memorywall.{table}")
    await connected.close()
    return {row[0] for row in found}


async def _embed(place: Place, tenant: str = _TENANT) -> dict[str, bytes]:
    """Embeds as a server would that has the target, to the end of the log."""
    entries = await _entries(place, tenant)
    vectors = [EntryVector(one.id, one.version, b"embedded here") for one in entries.values()]

    async def script(to: Transaction) -> None:
        assert await to.recall.acquire_lease(MODEL, "there", at(0), _ENDLESS) == 0
        await to.recall.put_vectors(MODEL, vectors)
        last = await to.events.latest()
        assert last is not None
        assert await to.recall.advance(MODEL, "there", last.seq)

    async with _opened(place) as store:
        await store.write(tenant, script)
    return await _kept(place, list(entries), tenant)


async def test_uses_are_carried_and_vectors_are_not(filled: File, target: Place) -> None:
    entries = await _entries(filled)
    ids = list(entries)
    assert len(await _kept(filled, ids)) > 5
    assert await _position(filled) > 0
    outcomes = {ids[0]: ContextOutcomes(1, 2, 3, 4)}
    async with _opened(filled) as store:
        await store.write(_TENANT, lambda to: to.recall.add_outcomes(outcomes))
    report = await move(filled, target)
    assert report.agree
    assert await _uses(target, ids) == {
        one.id: UseCounts(one.size, outcomes.get(one.id, ContextOutcomes()))
        for one in entries.values()
    }
    assert await _kept(target, ids) == {}
    assert await _position(target) == 0
    assert await _problems(target) == []


async def test_copy_keeps_vectors_of_unchanged_entries(filled: File, target: Place) -> None:
    await move(filled, target)
    before = await _embed(target)
    assert len(before) > 5
    reached = await _position(target)
    async with open_service(filled.directory) as service:
        await go_on(service)
    await move(filled, target)
    now = await _entries(target)
    ids = [*before, *now]
    gone = before.keys() - now.keys()
    assert gone, "nothing was deleted"
    assert now.keys() - before.keys(), "nothing was made"
    assert await _kept(target, ids) == {one: before[one] for one in before if one in now}
    # It walks the log again, for what was written under its old numbers may be another's.
    assert reached > await _position(target) == 0
    assert await _problems(target) == []
    assert len(await _embed(target)) > len(before) - len(gone)


async def test_a_copy_with_nothing_to_do_leaves_embedding_where_it_was(
    filled: File, target: Place
) -> None:
    await move(filled, target)
    before = await _embed(target)
    reached = await _position(target)
    assert (await move(filled, target)).written == 0
    assert await _kept(target, list(before)) == before
    assert await _position(target) == reached


async def test_copy_removes_vectors_of_changed_entries(filled: File, target: Place) -> None:
    """Entries of another content under the same ids, versions and names."""
    await move(filled, target)
    before = await _embed(target)
    changed = [one for one in (await _entries(filled)).values() if one.id in before][:2]
    ids = [one.id for one in changed]

    async def other(to: Transaction) -> None:
        for entry in changed:
            await to.entries.remove(entry)
            assert await to.entries.insert(entry, _ENDLESS)

    async with _opened(filled) as store:
        await store.write(_TENANT, other)
    await move(filled, target, OverwritePolicy.REPLACE)
    assert await _kept(target, list(before)) == {
        one: content for one, content in before.items() if one not in ids
    }
    assert await _position(target) == 0
    assert await _problems(target) == []


async def test_of_a_tenant_that_goes_nothing_stays(
    filled: File, target: Place, tmp_path: Path
) -> None:
    async with _opened(filled) as store:
        await put(store, make_entry(tenant=OTHER_TENANT, owner="billing"))
    await move(filled, target)
    mine = await _embed(target)
    theirs = await _embed(target, OTHER_TENANT)
    assert mine
    assert theirs
    smaller = File(tmp_path / "smaller")
    async with open_service(smaller.directory):
        pass
    await move(smaller, target, OverwritePolicy.REPLACE)
    for table in ("entry_vectors", "entry_uses", "embedding_positions"):
        tenants = await _tenants_in(target, table)
        assert tenants == ({_TENANT} if table == "embedding_positions" else set()), table
    assert await _position(target) == 0
    assert await _problems(target) == []
