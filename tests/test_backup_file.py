"""The checksums of a backup find every changed, missing and added byte, before a restore."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from memorywall.jobs.copy import OverwritePolicy, copy, digest_tables
from memorywall.records.errors import ConfigurationError
from memorywall.records.feature_errors import BackupDamagedError
from memorywall.storage import backup_file
from memorywall.storage.backup_file import (
    BackupManifest,
    ChecksumState,
    check_backup_file,
    list_backups,
)
from memorywall.storage.sqlite.backup import SqliteBackup, open_backup
from memorywall.storage.sqlite.connection import migrations
from tests.support.postgres_databases import in_own_thread
from tests.support.service import draft, open_service
from tests.support.transfer import File

_STEP = 1_000
_FOOTER = 160
"""More bytes than the footer has."""


async def _make(directory: Path, texts: list[str]) -> Path:
    """Writes a backup of a store with these entries."""
    place, file = File(directory / "data"), directory / "backup"
    async with open_service(place.directory) as service:
        agent = await service.agent("billing")
        for text in texts:
            made = await agent.post("/api/v1/memory", json=draft(text, value={"text": text}))
            assert made.status_code == 201, made.text
        origin, goal = await place.origin(), SqliteBackup.create(file)
        try:
            assert (await copy(origin, goal, OverwritePolicy.EMPTY_ONLY)).agree
        finally:
            await goal.close()
            await origin.close()
    return file


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two backups of the same size and of different stores; not to be changed."""
    with pytest.MonkeyPatch.context() as patch:
        # A small backup then has several parts.
        patch.setattr(backup_file, "PART_BYTES", 65_536)
        files = [
            in_own_thread(
                lambda name=name: asyncio.run(  # type: ignore[misc]
                    _make(tmp_path_factory.mktemp(name), [f"{name}-{n}" for n in range(3)])
                )
            )
            for name in ("first", "other")
        ]
    return files[0], files[1]


@pytest.fixture
def file(pair: tuple[Path, Path], tmp_path: Path) -> Path:
    """A backup for one test."""
    return Path(shutil.copy(pair[0], tmp_path / "backup"))


def _manifest(file: Path) -> BackupManifest:
    manifest = check_backup_file(file)
    assert manifest is not None
    return manifest


def _is_refused(file: Path) -> bool:
    try:
        check_backup_file(file)
    except ConfigurationError:
        return True
    return False


def test_a_whole_backup_is_described(file: Path) -> None:
    manifest = _manifest(file)
    assert (manifest.tenants, manifest.entries) == (1, 3)
    assert manifest.schema == migrations()[-1].number
    assert manifest.size % 4096 == 0
    assert len(manifest.parts) == -(-manifest.size // 65_536) > 1
    assert manifest.size < file.stat().st_size


@pytest.mark.anyio
async def test_manifest_has_digests_of_all_rows(file: Path) -> None:
    source = open_backup(file)
    assert await digest_tables(source) == _manifest(file).tables
    await source.close()


def test_every_thousandth_byte_is_covered(file: Path) -> None:
    """And each byte of the footer, of which most tell where the checksums are."""
    content = file.read_bytes()
    places = {*range(0, len(content), _STEP), *range(len(content) - _FOOTER, len(content))}
    accepted = []
    with file.open("r+b", buffering=0) as opened:
        for place in sorted(places):
            os.pwrite(opened.fileno(), bytes([content[place] ^ 0x20]), place)
            if not _is_refused(file):
                accepted.append(place)
            os.pwrite(opened.fileno(), content[place : place + 1], place)
    assert accepted == []
    assert file.read_bytes() == content
    assert _manifest(file).entries == 3


def _cut_end(content: bytes, _: bytes) -> bytes:
    return content[:-1]


def _cut_half(content: bytes, _: bytes) -> bytes:
    return content[: len(content) // 2]


def _append(content: bytes, _: bytes) -> bytes:
    return content + b"\n"


def _prepend(content: bytes, _: bytes) -> bytes:
    return b"\0" + content


def _insert(content: bytes, _: bytes) -> bytes:
    return content[:8192] + bytes(4096) + content[8192:]


def _leave_out(content: bytes, _: bytes) -> bytes:
    return content[:8192] + content[12288:]


def _mix_halves(content: bytes, other: bytes) -> bytes:
    return content[:65_536] + other[65_536:]


def _mix_pages(content: bytes, other: bytes) -> bytes:
    changed = next(
        n for n in range(1, 99) if content[n * 4096 :][:4096] != other[n * 4096 :][:4096]
    )
    start = changed * 4096
    return content[:start] + other[start : start + 4096] + content[start + 4096 :]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_cut_end, "its end is missing or changed"),
        (_cut_half, "its end is missing or changed"),
        (_append, "its end is missing or changed"),
        (_prepend, r"its database has [\d,]+ bytes and must have [\d,]+"),
        (_insert, r"its database has [\d,]+ bytes and must have [\d,]+"),
        (_leave_out, r"its database has [\d,]+ bytes and must have [\d,]+"),
        (_mix_halves, r"changed in bytes 0 to 65,535"),
        (_mix_pages, r"changed in bytes [\d,]+ to [\d,]+;"),
    ],
)
def test_a_backup_with_other_bytes_is_refused_with_the_place(
    pair: tuple[Path, Path], file: Path, change: Callable[[bytes, bytes], bytes], said: str
) -> None:
    file.write_bytes(change(file.read_bytes(), pair[1].read_bytes()))
    for accepted in (False, True):
        with pytest.raises(BackupDamagedError, match=said) as refused:
            open_backup(file, without_checksums=accepted)
        assert "nothing was restored; use another backup" in refused.value.detail


def test_manifest_of_another_backup_does_not_fit(pair: tuple[Path, Path], file: Path) -> None:
    sizes = [_manifest(one).size for one in pair]
    contents = [one.read_bytes() for one in pair]
    file.write_bytes(contents[0][: sizes[0]] + contents[1][sizes[1] :])
    with pytest.raises(BackupDamagedError, match="is damaged"):
        open_backup(file)


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (70_000, "changed in bytes 65,536 to 131,071;"),
        (-_FOOTER - 5, "its manifest or its footer is changed"),
    ],
)
def test_changed_byte_is_placed(file: Path, place: int, said: str) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= 1
    file.write_bytes(content)
    with pytest.raises(BackupDamagedError, match=said):
        check_backup_file(file)


def test_backup_without_checksums_is_accepted_only_on_demand(file: Path) -> None:
    with file.open("r+b") as opened:
        opened.truncate(_manifest(file).size)
    with pytest.raises(ConfigurationError, match=r"has no checksums.*--without-checksums"):
        check_backup_file(file)
    assert check_backup_file(file, without_checksums=True) is None
    asyncio.run(open_backup(file, without_checksums=True).close())


def test_pages_of_a_backup_without_checksums_are_checked(file: Path) -> None:
    size = _manifest(file).size
    content = bytearray(file.read_bytes()[:size])
    connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    row = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'entries'").fetchone()
    connection.close()
    assert row is not None
    start = (row[0] - 1) * 4096
    content[start : start + 4096] = os.urandom(4096)
    file.write_bytes(content)
    with pytest.raises(BackupDamagedError, match="is damaged"):
        open_backup(file, without_checksums=True)


def test_the_backups_of_a_directory_are_listed(pair: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no backup")
    (tmp_path / "directory").mkdir()
    good = tmp_path / "good"
    shutil.copy(pair[0], good)
    manifest, content = _manifest(good), good.read_bytes()
    (tmp_path / "old").write_bytes(content[: manifest.size])
    (tmp_path / "broken").write_bytes(b"\0" + content[1:])
    (tmp_path / "cut").write_bytes(content[:-5])
    live = bytearray(content[: manifest.size])
    live[18:20] = b"\2\2"
    (tmp_path / "live.db").write_bytes(live)
    listed = {one.name: one for one in list_backups(tmp_path)}
    assert {name: one.state for name, one in listed.items()} == {
        "broken": ChecksumState.DAMAGED,
        "cut": ChecksumState.DAMAGED,
        "good": ChecksumState.MATCH,
        "old": ChecksumState.NONE,
    }
    assert listed["good"].manifest == manifest
    assert listed["good"].size == len(content)
    assert listed["old"].manifest is None
    assert {one.schema for one in listed.values()} == {manifest.schema}
    quick = {one.name: one.state for one in list_backups(tmp_path, check=False)}
    assert quick["good"] == quick["broken"] == ChecksumState.NOT_CHECKED
    assert quick["old"] == ChecksumState.NONE
