"""Everything is copied byte for byte, from every backend to every backend, and only once."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import apsw
import asyncpg
import pytest

from memorywall.jobs import copy as copying
from memorywall.jobs.copy import OverwritePolicy
from memorywall.records.errors import StoreLockedError
from memorywall.storage import transfer
from memorywall.storage.postgres import transfer_statements
from memorywall.storage.postgres.connection import make_pool
from memorywall.storage.sqlite import transfer as sqlite_transfer
from memorywall.storage.transfer import (
    DERIVED,
    ENTRIES,
    EVENTS,
    LOCAL,
    TABLES,
    CopySide,
    Key,
    Row,
    Table,
)
from tests.support.postgres import fresh_database
from tests.support.service import open_service
from tests.support.transfer import (
    ATTACHMENT,
    File,
    Place,
    Server,
    copy_of,
    filled_directory,
    go_on,
    move,
)

pytestmark = pytest.mark.anyio

_OTHER = {
    transfer.ColumnType.TEXT: "other",
    transfer.ColumnType.INTEGER: 7,
    transfer.ColumnType.BYTES: b"other",
}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> File:
    """A store with everything in it; not to be changed."""
    return filled_directory(tmp_path_factory.mktemp("original") / "data", attachment=600_000)


@pytest.fixture
def filled(original: File, tmp_path: Path) -> File:
    """Such a store for one test."""
    return copy_of(original, tmp_path / "filled")


@pytest.fixture
def database() -> Iterator[Server]:
    """An empty PostgreSQL database."""
    with fresh_database() as url:
        yield Server(url)


@pytest.fixture(params=["file", "server"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """An empty store of each kind."""
    if request.param == "file":
        return File(tmp_path / "target")
    server: Server = request.getfixturevalue("database")
    return server


@pytest.fixture(params=["file", "server"])
async def source(request: pytest.FixtureRequest, filled: File) -> AsyncIterator[Place]:
    """A store of each kind with everything in it."""
    with contextlib.ExitStack() as stack:
        if request.param == "file":
            yield filled
        else:
            server = Server(stack.enter_context(fresh_database()))
            await move(filled, server)
            yield server


# The tables


def test_every_table_and_column_of_a_file_is_carried(original: File) -> None:
    connection = apsw.Connection(str(original.database))
    found: dict[str, tuple[set[str], set[str]]] = {}
    for (name,) in connection.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    ).fetchall():
        information = connection.execute(f"PRAGMA table_info({name})").fetchall()
        found[str(name)] = (
            {str(row[1]) for row in information},
            {str(row[1]) for row in information if row[5]},
        )
    connection.close()
    assert set(found) == (
        {table.name for table in TABLES}
        | DERIVED - {"heads"}
        | LOCAL - {"writers", "restores"}
        | {"migrations"}
    )
    for table in TABLES:
        columns, key = found[table.name]
        assert set(table.columns) == columns - {"number"}, table.name
        if table is not ENTRIES:
            assert {table.tenant, *table.key} == key | {table.tenant}, table.name


async def test_every_table_and_column_of_a_database_is_carried(
    original: File, database: Server
) -> None:
    await move(original, database)
    connection = await asyncpg.connect(database.url)
    columns = await connection.fetch(
        "SELECT table_name::text, column_name::text, data_type::text"
        " FROM information_schema.columns WHERE table_schema = 'memorywall'"
    )
    keys = await connection.fetch(
        "SELECT i.indrelid::regclass::text, a.attname::text FROM pg_index i"
        " JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey)"
        " WHERE i.indisprimary AND i.indrelid::regclass::text LIKE 'memorywall.%'"
    )
    await connection.close()
    known = {table.name for table in TABLES} | (DERIVED - {"tags"}) | LOCAL | {"migrations"}
    assert {row[0] for row in columns} == known
    kinds = {"text": transfer.ColumnType.TEXT, "bytea": transfer.ColumnType.BYTES}
    for table in TABLES:
        found = {
            row[1]: kinds.get(row[2], transfer.ColumnType.INTEGER)
            for row in columns
            if row[0] == table.name
        }
        found.pop("key_changes", None)
        assert {name: table.kind(name) for name in table.columns} == found, table.name
        key = {row[1] for row in keys if row[0] == f"memorywall.{table.name}"}
        assert {table.tenant, *table.key} == key, table.name


async def test_the_store_that_is_copied_here_has_rows_in_every_table(original: File) -> None:
    dumped = await original.dump()
    assert {name for name, rows in dumped.items() if rows} == set(dumped)
    assert set(dumped) == {table.name for table in TABLES} | {"entry_tags", "usage", "edges"}


# Whole copies


async def test_a_copy_is_the_same_and_a_second_one_has_nothing_to_do(
    source: Place, target: Place
) -> None:
    expected = await source.dump()
    told: list[int] = []
    report = await move(source, target, progress=told.append)
    assert await target.dump() == expected
    assert report.agree
    assert not report.source_changed
    carried = sum(sum(expected[table.name].values()) for table in TABLES)
    assert (report.written, report.removed, sum(told)) == (carried, 0, carried)
    counted: Counter[str] = Counter()
    for one in report.compared:
        counted[one.table] += one.target_rows
    assert counted == Counter({table.name: sum(expected[table.name].values()) for table in TABLES})
    again = await move(source, target)
    assert (again.written, again.removed, again.agree) == (0, 0, True)
    assert again.compared == report.compared
    assert await target.dump() == await source.dump() == expected


async def test_sixteen_megabytes_go_there_and_come_back(tmp_path: Path, database: Server) -> None:
    large = filled_directory(tmp_path / "large", attachment=ATTACHMENT)
    back = File(tmp_path / "back")
    there = await move(large, database)
    home = await move(database, back)
    assert there.agree
    assert there.compared == home.compared
    assert await back.dump() == await large.dump()
    assert back.problems() == []
    pieces = [one.rows for one in home.compared if one.table == "attachment_pieces"]
    assert sum(pieces) > ATTACHMENT // (256 * 1024)


async def test_a_copy_is_served_as_the_original_was(filled: File, tmp_path: Path) -> None:
    goal = File(tmp_path / "goal")
    await move(filled, goal)
    assert goal.problems() == []
    (goal.directory / "memory.db.key").write_bytes(
        (filled.directory / "memory.db.key").read_bytes()
    )
    (goal.directory / "memory.db.key").chmod(0o600)
    async with open_service(goal.directory) as service:
        await go_on(service)
    assert goal.problems() == []
    assert await goal.dump() != await filled.dump()


async def test_server_continues_at_the_end_of_the_log(original: File, database: Server) -> None:
    await move(original, database)
    connection = await asyncpg.connect(database.url)
    heads = await connection.fetch("SELECT tenant, seq FROM memorywall.heads")
    ends = await connection.fetch("SELECT tenant, max(seq) FROM memorywall.events GROUP BY tenant")
    await connection.close()
    assert {row[0]: row[1] for row in heads} == {row[0]: row[1] for row in ends}
    assert all(row[1] > 0 for row in heads)


async def test_second_copy_transfers_only_the_changes(filled: File, target: Place) -> None:
    first = await move(filled, target)
    async with open_service(filled.directory) as service:
        await go_on(service)
    second = await move(filled, target)
    assert second.agree
    assert 5 < second.written + second.removed < 40 < first.written
    assert await target.dump() == await filled.dump()
    if isinstance(target, File):
        assert target.problems() == []


# Differences of every kind, in pages and batches of every size


@pytest.fixture(params=[1, 3, 512])
def pages(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """How many rows a page has; with the smallest, batches have one row as well."""
    monkeypatch.setattr(sqlite_transfer, "PAGE", request.param)
    monkeypatch.setattr(transfer_statements, "PAGE", request.param)
    if request.param == 1:
        monkeypatch.setattr(copying, "BATCH_BYTES", 1)
    transfer_statements.page_of_lines.cache_clear()
    yield request.param
    transfer_statements.page_of_lines.cache_clear()


def _changed(table: Table, row: Row) -> Row | None:
    """The row with another content under its key, where it has any."""
    kept = {table.tenant, *table.key, *(name for other in table.others for name in other)}
    # These are read by what derives other rows from them.
    kept |= {"tags", "size", "pinned"}
    for place, name in enumerate(table.columns):
        if name not in kept:
            return (*row[:place], _OTHER[table.kind(name)], *row[place + 1 :])
    return None


async def _keys(side: CopySide, table: Table, tenant: str) -> list[Key]:
    """All keys of a table, in order."""
    keys: list[Key] = []
    while page := await side.lines(table, tenant, keys[-1] if keys else None):
        keys.extend(line.key for line in page)
    assert keys == sorted(keys)
    return keys


async def _damage(place: Place) -> int:
    """Takes the first row of each table of each tenant away, changes the second and adds one."""
    target = await place.target()
    done = 0
    try:
        for tenant in await target.tenants():
            for table in TABLES:
                keys = await _keys(target, table, tenant) if table.key else []
                found = {table.key_of(row): row for row in await target.rows(table, tenant, keys)}
                put = [_changed(table, found[key]) for key in keys[1:2]]
                if keys:
                    row = list(found[keys[-1]])
                    for name in {name for unique in (table.key, *table.others) for name in unique}:
                        kind = table.kind(name)
                        row[table.indexes[name]] = {"text": f"~{tenant}", "integer": 10**6}[kind]
                    put.append(tuple(row))
                await target.apply(table, tenant, [row for row in put if row], keys[:1])
                done += len([row for row in put if row]) + len(keys[:1])
    finally:
        await target.close()
    return done


@pytest.mark.sampled(3)
async def test_only_different_rows_are_written(filled: File, target: Place, pages: int) -> None:
    await move(filled, target)
    damaged = await _damage(target)
    assert damaged > 60
    assert await target.dump() != await filled.dump()
    report = await move(filled, target, OverwritePolicy.REPLACE)
    assert report.agree
    assert report.written + report.removed == damaged
    assert await target.dump() == await filled.dump()
    if isinstance(target, File):
        assert target.problems() == []


@pytest.mark.sampled(3)
async def test_rows_in_the_way_go(filled: File, target: Place, pages: int) -> None:
    """Names that are taken under other ids, before and behind the one that comes."""
    await move(filled, target)
    writing = await target.target()
    moved = 0
    for name, column in (("entries", "id"), ("leases", "name")):
        (table,) = (table for table in TABLES if table.name == name)
        keys = await _keys(writing, table, "default")
        for key, other in zip(keys, ["0", "~0", "1", "~1"], strict=False):
            (row,) = await writing.rows(table, "default", [key])
            place = table.indexes[column]
            await writing.apply(table, "default", [], [key])
            changed = (*row[:place], other, *row[place + 1 :])
            await writing.apply(table, "default", [changed], [])
            moved += 1
    await writing.close()
    assert moved > 5
    assert await target.dump() != await filled.dump()
    report = await move(filled, target, OverwritePolicy.REPLACE)
    assert report.agree
    assert await target.dump() == await filled.dump()
    if isinstance(target, File):
        assert target.problems() == []


async def test_replace_removes_tenants_absent_from_the_source(
    filled: File, target: Place, tmp_path: Path
) -> None:
    await move(filled, target)
    smaller = File(tmp_path / "smaller")
    async with open_service(smaller.directory):
        pass
    report = await move(smaller, target, OverwritePolicy.REPLACE)
    assert report.agree
    assert await target.dump() == await smaller.dump()
    if isinstance(target, Server):
        connection = await asyncpg.connect(target.url)
        for table in ("heads", "usage", "writers"):
            left = f"SELECT count(*) FROM memorywall.{table} WHERE tenant <> 'default'"
            assert await connection.fetchval(left) == 0, table
        await connection.close()


# One snapshot


async def test_a_copy_is_of_one_moment_and_says_when_that_is_over(
    filled: File, target: Place
) -> None:
    """The source goes on in the middle of the copy, before the pages that would show it."""
    expected = await filled.dump()
    async with open_service(filled.directory) as service:
        origin, goal = await filled.origin(), await target.target()
        before = await filled.dump()
        await go_on(service)
        report = await copying.copy(origin, goal, OverwritePolicy.FAST_FORWARD)
        await goal.close()
        await origin.close()
        assert report.agree
        assert report.source_changed
        assert await target.dump() == before == expected
    # The background work of an open memorywall may commit at any time.
    again = await move(filled, target)
    assert not again.source_changed
    assert await target.dump() == await filled.dump() != before


async def test_the_snapshot_of_a_database_is_of_one_moment_too(
    filled: File, database: Server, tmp_path: Path
) -> None:
    await move(filled, database)
    expected = await database.dump()
    origin = await database.origin()
    async with open_service(filled.directory) as service:
        await go_on(service)
    await move(filled, database)
    goal = File(tmp_path / "goal")
    writing = await goal.target()
    report = await copying.copy(origin, writing, OverwritePolicy.FAST_FORWARD)
    await writing.close()
    await origin.close()
    assert report.agree
    assert report.source_changed
    assert await goal.dump() == expected
    assert not (await move(database, goal)).source_changed
    assert await goal.dump() == await database.dump() == await filled.dump()


# Only one writes


async def test_directory_in_use_is_refused_as_target(filled: File, tmp_path: Path) -> None:
    served = File(tmp_path / "served")
    async with open_service(served.directory):
        with pytest.raises(StoreLockedError, match="stop it first"):
            await move(filled, served)


async def test_database_in_use_is_refused_as_target(filled: File, database: Server) -> None:
    await move(filled, database)
    pool = await make_pool(database.url, 1)
    async with pool.use():
        with pytest.raises(StoreLockedError, match="stop its servers first"):
            await move(filled, database)
    await pool.close()
    assert (await move(filled, database)).agree


async def test_two_copies_to_one_target_do_not_meet(filled: File, target: Place) -> None:
    first = await target.target()
    try:
        with pytest.raises(StoreLockedError):
            await target.target()
    finally:
        await first.close()
    assert (await move(filled, target)).agree


async def test_events_keep_their_places(source: Place, target: Place) -> None:
    await move(source, target)
    origin, goal = await source.origin(), await target.origin()
    for tenant in await origin.tenants():
        end = await origin.end_of_log(tenant)
        assert await goal.end_of_log(tenant) == end > 0
        keys = [(seq,) for seq in range(1, end + 1)]
        rows = await goal.rows(EVENTS, tenant, keys)
        assert sorted(rows, key=EVENTS.key_of) == sorted(
            await origin.rows(EVENTS, tenant, keys), key=EVENTS.key_of
        )
        assert len(rows) == end
    await asyncio.gather(origin.close(), goal.close())
