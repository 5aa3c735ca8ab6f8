"""The form of a backup file and its checksums.

A backup is an SQLite database, followed by a manifest and a footer:

    database   whole pages; SQLite reads no byte after them
    manifest   JSON: see `BackupManifest`
    footer     one line of fixed length: the format, the length of the manifest, and the SHA-256 of
               all bytes of the file before it

The checksum of the footer covers every byte of the file, so a changed, missing or added byte and
parts of another backup are found. The checksums of the manifest, one for each part of the database,
show where the damage is. They find damage and no forgery, because no key is needed to compute them.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import msgspec

from memorywall.records.backup_origin import BackupOrigin, SealedKeys
from memorywall.records.clock import SystemClock, format_instant
from memorywall.records.errors import ConfigurationError
from memorywall.records.feature_errors import BackupDamagedError
from memorywall.records.suppression import LedgerPosition
from memorywall.storage.transfer import ENTRIES, TENANTS, TableDigest
from memorywall.version import __version__

PART_BYTES: Final = 1024 * 1024
"""The number of bytes of the database under one checksum."""

_MARK = b"memorywall backup 1"
_LENGTH_DIGITS, _HEX_DIGITS = 12, 64
_FOOTER_BYTES = len(_MARK) + 1 + _LENGTH_DIGITS + 1 + _HEX_DIGITS + 1
_FOOTER = re.compile(re.escape(_MARK) + rb" ([0-9]{12}) ([0-9a-f]{64})\n").fullmatch
_SQLITE = b"SQLite format 3\0"
_HEADER_BYTES = 100
_APPLICATION = b"mwal"
_WRITE_AHEAD_LOG = 2
_READ_BYTES = 256 * 1024
_LARGEST_PAGE = 65_536
_MOST_NAMED = 3
_USE_ANOTHER = "nothing was restored; use another backup"


class BackupManifest(msgspec.Struct, frozen=True, kw_only=True):
    """The description of a backup, within the file.

    created_at: the instant at which the backup was complete
    version: the version of memorywall that wrote it
    schema: the number of its last migration
    size: the number of bytes of the database
    part_bytes: the number of bytes under each checksum; the last part may be shorter
    parts: the SHA-256 of each part of the database, in order
    tables: the digest of each table that has rows, by tenant
    ledger, began_at, keys: see `BackupOrigin`
    """

    created_at: str
    version: str
    schema: int
    size: int
    part_bytes: int
    parts: list[str]
    tables: list[TableDigest]
    ledger: LedgerPosition | None = None
    began_at: str | None = None
    keys: SealedKeys | None = None

    @property
    def origin(self) -> BackupOrigin:
        """Returns what the backup tells of its store."""
        return BackupOrigin(self.ledger, self.began_at, self.keys)

    @property
    def tenants(self) -> int:
        """Returns the number of tenants."""
        return self._rows_of(TENANTS.name)

    @property
    def entries(self) -> int:
        """Returns the number of entries of all tenants."""
        return self._rows_of(ENTRIES.name)

    def _rows_of(self, table: str) -> int:
        return sum(one.rows for one in self.tables if one.table == table)


class ChecksumState(StrEnum):
    """The result of comparing the bytes of a backup with its checksums."""

    MATCH = "match"
    DAMAGED = "damaged"
    NONE = "none"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True, slots=True)
class ListedBackup:
    """A backup in a directory.

    size: the number of bytes of the file
    schema: None if it cannot be read
    manifest: None if there is none, or it cannot be read
    """

    name: str
    size: int
    schema: int | None
    manifest: BackupManifest | None
    state: ChecksumState


class _Footer(NamedTuple):
    """The footer of a file of `size` bytes.

    start: the position of the manifest
    digest: the SHA-256 of all bytes before the digest
    """

    size: int
    start: int
    length: int
    digest: str

    @property
    def covered(self) -> int:
        """Returns the number of bytes under the checksum of the file."""
        return self.size - _HEX_DIGITS - 1


class _Header(NamedTuple):
    """The header of an SQLite file.

    size: the number of bytes of all pages
    is_live: whether the database has a write-ahead log, as that of a server has
    """

    size: int
    schema: int
    is_ours: bool
    is_live: bool


def append_checksums(
    file: Path, schema: int, tables: Sequence[TableDigest], origin: BackupOrigin
) -> None:
    """Appends the manifest and the footer to a closed database.

    schema: the number of its last migration
    tables: the digests of its tables, as the copy compared them
    """
    size = file.stat().st_size
    with file.open("r+b") as content:
        manifest = msgspec.json.encode(
            BackupManifest(
                created_at=format_instant(SystemClock().now()),
                version=__version__,
                schema=schema,
                size=size,
                part_bytes=PART_BYTES,
                parts=list(_part_digests(content, size, PART_BYTES)),
                tables=sorted(one for one in tables if one.rows),
                **origin._asdict(),
            )
        )
        content.seek(size)
        content.write(manifest)
        content.write(b"%s %0*d " % (_MARK, _LENGTH_DIGITS, len(manifest)))
        whole = _digest_of(content, 0, content.tell())
        content.seek(0, os.SEEK_END)
        content.write(whole.encode() + b"\n")


def check_backup_file(file: Path, *, without_checksums: bool = False) -> BackupManifest | None:
    """Reads the whole file and returns its manifest; None for a file without checksums.

    without_checksums: whether a backup that has no checksums is accepted; default: false

    Raises BackupDamagedError if a byte is changed, missing or added, and ConfigurationError for a
    file that is no backup or has no checksums.
    """
    if not file.is_file():
        raise ConfigurationError(f"there is no file {file}")
    with file.open("rb") as content:
        footer = _read_footer(content)
        if footer is None:
            _check_without_footer(file, _read_header(content), without_checksums)
            return None
        manifest = _read_manifest(content, footer)
        if _digest_of(content, 0, footer.covered) != footer.digest:
            where = _find_damage(content, footer, manifest)
            raise BackupDamagedError(f"{file} is damaged: {where}; {_USE_ANOTHER}")
    if manifest is None:
        raise ConfigurationError(
            f"the manifest of {file} cannot be read by this version of memorywall;"
            " restore it with the version that wrote it or a newer one"
        )
    return manifest


def list_backups(directory: Path, *, check: bool = True) -> list[ListedBackup]:
    """Returns the backups in a directory, by name.

    check: whether to read the files and compare their checksums; default: true
    """
    found = (_list_one(file, check) for file in sorted(directory.iterdir()) if file.is_file())
    return [one for one in found if one is not None]


def _list_one(file: Path, check: bool) -> ListedBackup | None:
    with file.open("rb") as content:
        footer, header = _read_footer(content), _read_header(content)
        if footer is None and (header is None or not header.is_ours or header.is_live):
            return None
        manifest = None if footer is None else _read_manifest(content, footer)
    state = ChecksumState.NOT_CHECKED
    if check or footer is None:
        state = _state_of(file)
    schema = None if header is None else header.schema
    return ListedBackup(
        file.name,
        file.stat().st_size,
        schema if manifest is None else manifest.schema,
        manifest,
        state,
    )


def _state_of(file: Path) -> ChecksumState:
    try:
        manifest = check_backup_file(file, without_checksums=True)
    except BackupDamagedError:
        return ChecksumState.DAMAGED
    return ChecksumState.NONE if manifest is None else ChecksumState.MATCH


def _read_footer(content: BinaryIO) -> _Footer | None:
    size = content.seek(0, os.SEEK_END)
    content.seek(max(0, size - _FOOTER_BYTES))
    found = _FOOTER(content.read(_FOOTER_BYTES))
    if found is None:
        return None
    length = int(found[1])
    return _Footer(size, max(0, size - _FOOTER_BYTES - length), length, found[2].decode())


def _read_manifest(content: BinaryIO, footer: _Footer) -> BackupManifest | None:
    content.seek(footer.start)
    try:
        return msgspec.json.decode(content.read(footer.length), type=BackupManifest)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _read_header(content: BinaryIO) -> _Header | None:
    content.seek(0)
    header = content.read(_HEADER_BYTES)
    if len(header) < _HEADER_BYTES or not header.startswith(_SQLITE):
        return None
    page = int.from_bytes(header[16:18])
    return _Header(
        # A page of 65,536 bytes is written as 1, because two bytes cannot hold its size.
        (_LARGEST_PAGE if page == 1 else page) * int.from_bytes(header[28:32]),
        int.from_bytes(header[60:64]),
        header[68:72] == _APPLICATION,
        header[18] == _WRITE_AHEAD_LOG,
    )


def _check_without_footer(file: Path, header: _Header | None, accepted: bool) -> None:
    """Raises the error of a file whose end is no footer."""
    if header is None:
        raise ConfigurationError(f"{file} is not a memorywall backup")
    if not header.is_ours:
        raise ConfigurationError(f"{file} is not a memorywall database")
    if file.stat().st_size != header.size:
        raise BackupDamagedError(
            f"{file} is damaged: its end is missing or changed; {_USE_ANOTHER}"
        )
    if not accepted:
        raise ConfigurationError(
            f"{file} has no checksums: an earlier version wrote it, or its end is missing;"
            " --without-checksums accepts it, and then damage to values is not found"
        )


def _find_damage(content: BinaryIO, footer: _Footer, manifest: BackupManifest | None) -> str:
    """Describes where the bytes are not those that were written."""
    if manifest is None or manifest.part_bytes < 1:
        return "its manifest is changed, or bytes are missing or added"
    if manifest.size != footer.start:
        return f"its database has {footer.start:,} bytes and must have {manifest.size:,}"
    found = _part_digests(content, manifest.size, manifest.part_bytes)
    changed = [
        number
        for number, (digest, expected) in enumerate(zip(found, manifest.parts, strict=False))
        if digest != expected
    ]
    if not changed:
        return "its manifest or its footer is changed"
    last = manifest.size - 1
    named = [
        f"bytes {one * manifest.part_bytes:,} to {min((one + 1) * manifest.part_bytes - 1, last):,}"
        for one in changed[:_MOST_NAMED]
    ]
    more = len(changed) - len(named)
    return f"changed in {', '.join(named)}" + (f" and {more} more parts" if more else "")


def _part_digests(content: BinaryIO, size: int, part_bytes: int) -> Iterator[str]:
    for start in range(0, size, part_bytes):
        yield _digest_of(content, start, min(part_bytes, size - start))


def _digest_of(content: BinaryIO, start: int, length: int) -> str:
    """Returns the SHA-256 of a range of a file in hexadecimal."""
    digest = hashlib.sha256()
    content.seek(start)
    while length and (read := content.read(min(_READ_BYTES, length))):
        digest.update(read)
        length -= len(read)
    return digest.hexdigest()
