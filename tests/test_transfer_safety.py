"""A copy never takes away what only the target knows, survives its own death, and keeps secrets."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from memorywall.assembly import settings_for
from memorywall.jobs.copy import OverwritePolicy, check_key, copy, count_rows, holds_sealed
from memorywall.records.errors import ConfigurationError
from memorywall.service.administration.tenants import list_keys, revoke_key
from memorywall.service.encryption.key_file import load_keys, read_key_file
from memorywall.service.encryption.master_keys import MasterKeys
from memorywall.storage.sqlite.backup import SqliteBackup, open_backup
from memorywall.storage.sqlite.connection import migrations
from memorywall.storage.transfer import API_KEYS, TABLES
from tests.http.checks import MEMORY
from tests.support.extent import extent
from tests.support.postgres import fresh_database
from tests.support.service import RunningService, draft, open_service
from tests.support.transfer import (
    File,
    Place,
    Server,
    copy_of,
    dump_file,
    empty_place,
    filled_directory,
    go_on,
    move,
)
from tests.support.transfer_killed import BETWEEN, WITHIN, kill_copy
from tests.work.crew import CLAIMS, ok

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> File:
    """A store with everything in it; not to be changed."""
    return filled_directory(tmp_path_factory.mktemp("original") / "data", attachment=600_000)


@pytest.fixture
def filled(original: File, tmp_path: Path) -> File:
    """Such a store for one test."""
    return copy_of(original, tmp_path / "filled")


@pytest.fixture(params=["file", "server"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """An empty store of each kind."""
    with empty_place(request.param, tmp_path / "target") as place:
        yield place


# What may be copied over


async def _goes_on(service: RunningService) -> None:
    await go_on(service)


async def _makes_a_key(service: RunningService) -> None:
    await service.key("somebody")


async def _revokes_a_key(service: RunningService) -> None:
    key = next(
        key for key in await list_keys(service.services, "default") if key.revoked_at is None
    )
    assert await revoke_key(service.services, key.prefix)


async def _claims(service: RunningService) -> None:
    agent = await service.agent("billing")
    ok(await agent.post(CLAIMS, json={"key": "mine"}), 201)


async def _makes_a_tenant(service: RunningService) -> None:
    other = await service.agent("billing", tenant="new")
    ok(await other.post(MEMORY, json=draft("only-here")), 201)


@pytest.mark.parametrize(
    ("use", "why"),
    [
        (_goes_on, "its log is not the beginning"),
        (_makes_a_key, "it has an API key that the source has not"),
        (_revokes_a_key, "it has revoked an API key"),
        (_claims, "its log is not the beginning"),
        (_makes_a_tenant, "the tenant new"),
    ],
)
async def test_used_target_is_not_changed(
    filled: File, tmp_path: Path, use: Callable[[RunningService], object], why: str
) -> None:
    """As when `--from` and `--to` are the wrong way round, after the new store has been used."""
    used = copy_of(filled, tmp_path / "used")
    async with open_service(used.directory) as service:
        await use(service)  # type: ignore[misc]
    before = await used.dump()
    with pytest.raises(ConfigurationError, match=f"not an earlier state of the source.*{why}"):
        await move(filled, used)
    assert await used.dump() == before
    back = await move(used, filled)
    assert back.agree
    assert await filled.dump() == before


async def test_a_token_that_only_the_target_has_given_is_not_given_again(
    filled: File, tmp_path: Path
) -> None:
    used = copy_of(filled, tmp_path / "used")
    connection = apsw.Connection(str(used.database))
    connection.execute("UPDATE counters SET value = value + 1").fetchall()
    connection.close()
    with pytest.raises(ConfigurationError, match="fencing tokens"):
        await move(filled, used)


async def test_unrelated_store_is_replaced_only_with_replace(
    original: File, filled: File, target: Place, tmp_path: Path
) -> None:
    stranger = File(tmp_path / "stranger")
    async with open_service(stranger.directory) as service:
        agent = await service.agent("billing")
        ok(await agent.post(MEMORY, json=draft("another", tags=["x"])), 201)
    await move(filled, target)
    before = await target.dump()
    with pytest.raises(ConfigurationError, match=r"not an earlier state.*--replace"):
        await move(stranger, target)
    assert await target.dump() == before
    report = await move(stranger, target, OverwritePolicy.REPLACE)
    assert report.agree
    assert report.removed > 100
    assert await target.dump() == await stranger.dump()
    if isinstance(target, File):
        assert target.problems() == []


async def test_empty_source_removes_nothing(filled: File, target: Place) -> None:
    await move(filled, target)
    before = await target.dump()
    empty = File(filled.directory / "empty")
    async with open_service(empty.directory):
        pass
    with pytest.raises(ConfigurationError, match="not an earlier state"):
        await move(empty, target)
    assert await target.dump() == before


async def test_a_store_that_was_only_started_is_empty(filled: File, tmp_path: Path) -> None:
    started = File(tmp_path / "started")
    async with open_service(started.directory):
        pass
    assert (await move(filled, started, OverwritePolicy.EMPTY_ONLY)).agree


async def test_where_nothing_may_be_an_earlier_state_is_refused_too(
    filled: File, target: Place
) -> None:
    await move(filled, target)
    before = await target.dump()
    with pytest.raises(ConfigurationError, match="the target is not empty"):
        await move(filled, target, OverwritePolicy.EMPTY_ONLY)
    assert await target.dump() == before


# Death in the middle


@pytest.mark.parametrize(
    ("where", "count"),
    extent(
        [(BETWEEN, 1), (BETWEEN, 20), (WITHIN, 22)],
        long=[(BETWEEN, 1), (BETWEEN, 9), (BETWEEN, 20), (BETWEEN, 32), (WITHIN, 4), (WITHIN, 22)],
    ),
)
async def test_a_killed_copy_ends_right_when_it_is_run_again(
    filled: File, target: Place, where: str, count: int
) -> None:
    kill_copy(filled, target, where, count)
    half = await target.dump()
    assert half != await filled.dump()
    assert not half["api_keys"], "nobody gets into half a copy"
    if isinstance(target, File):
        damage = [text for text in target.problems() if "database file" in text or "count" in text]
        assert damage == []
    there = sum(sum(half[table.name].values()) for table in TABLES)
    report = await move(filled, target, OverwritePolicy.EMPTY_ONLY)
    assert report.agree
    whole = sum(one.rows for one in report.compared)
    assert (report.written, report.removed) == (whole - there, 0)
    assert await target.dump() == await filled.dump()
    if isinstance(target, File):
        assert target.problems() == []


@pytest.mark.parametrize("count", extent([3], long=[1, 3, 8]))
async def test_a_killed_second_copy_ends_right_too(filled: File, target: Place, count: int) -> None:
    await move(filled, target)
    async with open_service(filled.directory) as service:
        for _ in range(3):
            await go_on(service)
            service.clock.advance(600)
    kill_copy(filled, target, BETWEEN, count)
    report = await move(filled, target)
    assert report.agree
    assert await target.dump() == await filled.dump()


# Backups


async def _back_up(source: Place, file: Path) -> None:
    origin = await source.origin()
    goal = SqliteBackup.create(file)
    try:
        assert (await copy(origin, goal, OverwritePolicy.EMPTY_ONLY)).agree
    finally:
        await goal.close()
        await origin.close()


async def _restore(file: Path, target: Place, *, without_checksums: bool = False) -> None:
    origin = open_backup(file, without_checksums=without_checksums)
    goal = await target.target()
    try:
        assert (await copy(origin, goal, OverwritePolicy.EMPTY_ONLY)).agree
    finally:
        await goal.close()
        await origin.close()


async def test_a_backup_is_one_private_file_with_everything_but_the_key(
    filled: File, target: Place, tmp_path: Path
) -> None:
    room = tmp_path / "backups"
    room.mkdir()
    file = room / "monday.backup"
    async with open_service(filled.directory) as service:
        expected = await filled.dump()
        await _back_up(filled, file)
        await go_on(service)
    assert os.listdir(room) == [file.name]
    assert file.stat().st_mode & 0o777 == 0o600
    (key,) = read_key_file(settings_for(filled.directory, database_url=None).key_file)
    content = file.read_bytes()
    assert key not in content
    assert (filled.directory / "memory.db.key").read_bytes().strip() not in content
    file.chmod(0o400)
    await _restore(file, target)
    assert file.read_bytes() == content
    assert os.listdir(room) == [file.name]
    assert await target.dump() == expected == dump_file(file)


async def test_a_backup_of_a_database_is_restored_into_a_directory(
    filled: File, tmp_path: Path
) -> None:
    with fresh_database() as url:
        await move(filled, Server(url))
        await _back_up(Server(url), tmp_path / "backup")
    await _restore(tmp_path / "backup", File(tmp_path / "restored"))
    assert await File(tmp_path / "restored").dump() == await filled.dump()
    assert File(tmp_path / "restored").problems() == []


async def test_a_backup_is_never_written_over(filled: File, tmp_path: Path) -> None:
    file = tmp_path / "backup"
    file.write_text("precious")
    with pytest.raises(ConfigurationError, match="is there already"):
        SqliteBackup.create(file)
    other = SqliteBackup.create(tmp_path / "other")
    with pytest.raises(ConfigurationError, match="another process is writing"):
        SqliteBackup.create(tmp_path / "other")
    (tmp_path / "other").write_text("came meanwhile")
    with pytest.raises(ConfigurationError, match="meanwhile"):
        await other.finish([])
    await other.close()
    assert file.read_text() == "precious"
    assert (tmp_path / "other").read_text() == "came meanwhile"
    assert not (tmp_path / "other.partial").exists()


@pytest.mark.parametrize("count", [1, 25])
async def test_killed_backup_leaves_no_backup(filled: File, tmp_path: Path, count: int) -> None:
    file = tmp_path / "backup"
    kill_copy(filled, file, BETWEEN, count)
    assert not file.exists()
    await _back_up(filled, file)
    assert [name for name in os.listdir(tmp_path) if name.startswith("backup")] == ["backup"]
    assert dump_file(file) == await filled.dump()


async def test_a_backup_of_an_older_memorywall_is_brought_up_to_date(tmp_path: Path) -> None:
    """Only in what is restored from it; the file stays as it is."""
    file, goal = tmp_path / "old.backup", File(tmp_path / "goal")
    connection = apsw.Connection(str(file))
    for number, _, sql in migrations()[:1]:
        connection.execute(sql).fetchall()
        connection.execute(f"PRAGMA user_version = {number}").fetchall()
    connection.execute(f"PRAGMA application_id = {0x6D77616C}").fetchall()
    connection.execute("INSERT INTO tenants VALUES ('old', '2026-01-01T00:00:00.000Z')").fetchall()
    connection.execute("INSERT INTO agent_limits VALUES ('old', 'ada', 7)").fetchall()
    connection.close()
    before = file.read_bytes()
    with pytest.raises(ConfigurationError, match=r"has no checksums.*--without-checksums"):
        await _restore(file, goal)
    await _restore(file, goal, without_checksums=True)
    assert file.read_bytes() == before
    (row,) = (await goal.dump())["agent_limits"]
    assert dict(row) == {
        "tenant": "old", "agent": "ada", "episodic_capacity": 7, "pinned_namespaces": "[]",
    }  # fmt: skip
    assert not list(tmp_path.glob("memorywall-*"))


async def test_file_that_is_not_a_backup_is_refused(filled: File, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="there is no file"):
        open_backup(tmp_path / "nothing")
    text = tmp_path / "text"
    text.write_text("not a database" * 100)
    with pytest.raises(ConfigurationError, match="not a memorywall backup"):
        open_backup(text)
    foreign = tmp_path / "foreign.db"
    connection = apsw.Connection(str(foreign))
    connection.execute("CREATE TABLE songs (name)").fetchall()
    connection.close()
    with pytest.raises(ConfigurationError, match="not a memorywall database"):
        open_backup(foreign)
    newer = tmp_path / "newer"
    shutil.copy(filled.database, newer)
    connection = apsw.Connection(str(newer))
    connection.execute("PRAGMA user_version = 999").fetchall()
    connection.close()
    connection.close()
    with pytest.raises(ConfigurationError, match="has schema 999"):
        open_backup(newer, without_checksums=True)


# Secrets


async def test_only_the_key_it_was_sealed_with_fits(filled: File, tmp_path: Path) -> None:
    origin = await filled.origin()
    assert await holds_sealed(origin)
    await check_key(
        origin, load_keys(settings_for(filled.directory, database_url=None), may_create=False)
    )
    with pytest.raises(ConfigurationError, match="key-encryption key is not the one"):
        await check_key(origin, MasterKeys([os.urandom(32)]))
    total = await count_rows(origin)
    await origin.close()
    assert total == sum(
        sum(rows.values())
        for name, rows in (await filled.dump()).items()
        if name in {table.name for table in TABLES}
    )
    empty = File(tmp_path / "empty")
    async with open_service(empty.directory):
        pass
    reading = await empty.origin()
    assert not await holds_sealed(reading)
    assert await reading.count(API_KEYS, "default") == 0
    await reading.close()


async def test_a_copy_that_fails_leaves_the_target_to_others(
    filled: File, target: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(rows: int) -> None:
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        await move(filled, target, progress=stop)
    assert (await move(filled, target)).agree
