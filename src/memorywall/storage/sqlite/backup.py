"""A backup: one SQLite file with memorywall's schema and checksums, written and read as one side of
a copy."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple, Self

import apsw

from memorywall.records.backup_origin import BackupOrigin
from memorywall.records.errors import ConfigurationError
from memorywall.records.feature_errors import BackupDamagedError
from memorywall.storage.backup_file import BackupManifest, append_checksums, check_backup_file
from memorywall.storage.durable_files import sync_directory
from memorywall.storage.sqlite.connection import (
    UNFINISHED,
    check_ours,
    connect,
    migrate,
    migrations,
    schema_version,
)
from memorywall.storage.sqlite.consistency import SqliteConsistencyReader
from memorywall.storage.sqlite.transfer import SqliteCopySide, SqliteCopySource, SqliteCopyTarget
from memorywall.storage.transfer import TableDigest


class SqliteBackupSource(SqliteCopySource):
    """`transfer.BackupSource`."""

    def __init__(self, opened: _OpenedBackup) -> None:
        super().__init__(opened.connection, opened.let_go)
        self.origin = BackupOrigin() if opened.manifest is None else opened.manifest.origin


def open_backup(file: Path, *, without_checksums: bool = False) -> SqliteBackupSource:
    """Opens a backup read-only, after its checksums match. A backup of an older version is migrated
    in a temporary copy.

    without_checksums: whether a backup that has no checksums is accepted; default: false

    Raises BackupDamagedError and ConfigurationError.
    """
    return SqliteBackupSource(_open_database(file, without_checksums))


class SqliteBackupReader(SqliteConsistencyReader):
    """`consistency.ConsistencyReader` over a backup.

    manifest: None for a backup without checksums
    is_migrated: whether an older version wrote the backup, so that its tables have other columns
    rows: the same backup as one side of a copy, which is closed with the reader
    """

    def __init__(self, opened: _OpenedBackup) -> None:
        super().__init__(opened.connection)
        self._let_go = opened.let_go
        self.manifest = manifest = opened.manifest
        self.is_migrated = manifest is not None and manifest.schema != migrations()[-1].number
        self.rows = SqliteCopySide(opened.connection)

    @classmethod
    def open(cls, file: Path, *, without_checksums: bool = False) -> SqliteBackupReader:
        """Opens a backup as `open_backup` does."""
        return cls(_open_database(file, without_checksums))

    def close(self) -> None:
        super().close()
        self._let_go()


class _OpenedBackup(NamedTuple):
    """A backup of which every byte was checked.

    let_go: a function to call after the connection is closed
    """

    manifest: BackupManifest | None
    connection: apsw.Connection
    let_go: Callable[[], object]


def _open_database(file: Path, without_checksums: bool) -> _OpenedBackup:
    manifest = check_backup_file(file, without_checksums=without_checksums)
    connection = _connect_to_backup(file)
    try:
        if manifest is None:
            _check_pages(file, connection)
        if schema_version(connection) == migrations()[-1].number:
            return _OpenedBackup(manifest, connection, lambda: None)
    except BaseException:
        connection.close()
        raise
    room = tempfile.TemporaryDirectory(prefix="memorywall-")
    newer: apsw.Connection | None = None
    try:
        newer = apsw.Connection(os.fspath(Path(room.name) / "newer.db"))
        with newer.backup("main", connection, "main") as copying:
            copying.step()
        migrate(newer)
        return _OpenedBackup(manifest, newer, room.cleanup)
    except BaseException:
        if newer is not None:
            newer.close()
        room.cleanup()
        raise
    finally:
        connection.close()


def _check_pages(file: Path, connection: apsw.Connection) -> None:
    """Raises BackupDamagedError if SQLite finds damage in a backup without checksums."""
    try:
        found = connection.execute("PRAGMA integrity_check(1)").fetchone()
    except apsw.CorruptError as error:
        raise BackupDamagedError(f"{file} is damaged: {error}; use another backup") from error
    if found is None or found[0] != "ok":
        raise BackupDamagedError(
            f"{file} is damaged: {found and found[0]}; nothing was restored; use another backup"
        )


class SqliteNewDatabase(SqliteCopyTarget):
    """`transfer.Target`: a new file, which gets its name only when it is complete and on disk.

    remedy: what to do when the file exists already
    """

    remedy: ClassVar[str] = "a backup is never written over"

    def __init__(self, connection: apsw.Connection, file: Path, draft: Path, descriptor: int):
        super().__init__(connection, None)
        self._file = file
        self._draft = draft
        self._descriptor = descriptor
        self._finished = False

    @classmethod
    def create(cls, file: Path) -> Self:
        """Begins the file. Raises ConfigurationError if it exists already, or another process is
        writing it; the file of a killed process is overwritten."""
        if file.exists():
            raise ConfigurationError(f"{file} is there already; {cls.remedy}")
        draft = file.with_name(file.name + UNFINISHED)
        try:
            descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ConfigurationError(f"{draft} cannot be opened: {error.strerror}") from error
        try:
            # This lock differs from SQLite's locks on the same file and does not affect them.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(descriptor)
            raise ConfigurationError(f"another process is writing {draft}") from error
        os.fchmod(descriptor, 0o600)
        os.ftruncate(descriptor, 0)
        _remove_beside(draft)
        try:
            connection = apsw.Connection(os.fspath(draft))
            # The file is invalid until it is complete, and is synced at the end.
            connection.execute(
                "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; PRAGMA temp_store = MEMORY"
            ).fetchall()
            migrate(connection)
        except BaseException:
            draft.unlink(missing_ok=True)
            os.close(descriptor)
            raise
        return cls(connection, file, draft, descriptor)

    async def finish(self, tables: Sequence[TableDigest]) -> None:
        self._connection.close()
        await self._complete(self._draft, tables)
        os.fsync(self._descriptor)
        # Unlike a rename, a link never replaces a file that was created meanwhile.
        try:
            os.link(self._draft, self._file)
        except FileExistsError:
            raise ConfigurationError(f"{self._file} was created meanwhile; {self.remedy}") from None
        self._draft.unlink()
        sync_directory(self._file.parent)
        self._finished = True

    async def close(self) -> None:
        self._connection.close()
        if not self._finished:
            self._draft.unlink(missing_ok=True)
            _remove_beside(self._draft)
        os.close(self._descriptor)

    async def _complete(self, draft: Path, tables: Sequence[TableDigest]) -> None:
        """Adds to the closed file what is not copied; nothing here."""

    def _cut_log(self) -> None:
        """Only resets the counter: an incomplete file is invalid, so it has no log."""
        self._written = 0


class SqliteBackup(SqliteNewDatabase):
    """`transfer.Target`: a new backup, with checksums and what it tells of its store."""

    origin = BackupOrigin()

    async def _complete(self, draft: Path, tables: Sequence[TableDigest]) -> None:
        append_checksums(draft, migrations()[-1].number, tables, self.origin)


class SqliteRestoredDatabase(SqliteNewDatabase):
    """`transfer.Target`: the database of a new data directory, which gets its name after `complete`
    has changed it. A killed process therefore leaves no database that a server opens.

    complete: is given the file, which is closed
    """

    complete: Callable[[Path], Awaitable[None]]
    remedy: ClassVar[str] = "a restore needs an empty directory"

    async def _complete(self, draft: Path, tables: Sequence[TableDigest]) -> None:
        await self.complete(draft)
        connection = connect(draft)
        # The file must not depend on a log beside it when it gets its name.
        connection.execute("PRAGMA journal_mode = DELETE").fetchall()
        connection.close()
        _remove_beside(draft)


def _connect_to_backup(file: Path) -> apsw.Connection:
    """A read-only connection, so that a backup may be on a read-only file system."""
    try:
        connection = apsw.Connection(os.fspath(file), flags=apsw.SQLITE_OPEN_READONLY)
        check_ours(connection, empty_too=False)
    except (apsw.NotADBError, apsw.CorruptError) as error:
        raise ConfigurationError(f"{file} is not a memorywall backup") from error
    except apsw.CantOpenError as error:
        raise ConfigurationError(f"{file} cannot be opened") from error
    present, known = schema_version(connection), migrations()[-1].number
    if present > known:
        connection.close()
        raise ConfigurationError(
            f"{file} has schema {present}, this memorywall knows {known};"
            " restore it with the version that wrote it or a newer one"
        )
    return connection


def _remove_beside(draft: Path) -> None:
    """Removes the temporary files of a killed process."""
    for suffix in ("-journal", "-wal", "-shm", ".lock"):
        draft.with_name(draft.name + suffix).unlink(missing_ok=True)
