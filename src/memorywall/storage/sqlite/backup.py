"""A backup: one SQLite file with memorywall's schema, written and read as one side of a copy."""

from __future__ import annotations

import fcntl
import os
import tempfile
from pathlib import Path

import apsw

from memorywall.records.errors import ConfigurationError
from memorywall.storage.sqlite.connection import check_ours, migrate, migrations, schema_version
from memorywall.storage.sqlite.transfer import SqliteCopySource, SqliteCopyTarget


def open_backup(file: Path) -> SqliteCopySource:
    """Opens a backup read-only. A backup of an older version is migrated in a temporary copy."""
    if not file.is_file():
        raise ConfigurationError(f"there is no file {file}")
    connection = _connect_to_backup(file)
    try:
        if schema_version(connection) == migrations()[-1].number:
            return SqliteCopySource(connection)
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
        return SqliteCopySource(newer, room.cleanup)
    except BaseException:
        if newer is not None:
            newer.close()
        room.cleanup()
        raise
    finally:
        connection.close()


class SqliteBackup(SqliteCopyTarget):
    """`transfer.Target`: a new file, which gets its name only when it is complete and on disk."""

    def __init__(self, connection: apsw.Connection, file: Path, draft: Path, descriptor: int):
        super().__init__(connection, None)
        self._file = file
        self._draft = draft
        self._descriptor = descriptor
        self._finished = False

    @classmethod
    def create(cls, file: Path) -> SqliteBackup:
        """Begins a backup. Raises ConfigurationError if the file exists already, or another process
        is writing it; the file of a killed process is overwritten."""
        if file.exists():
            raise ConfigurationError(f"{file} is there already; a backup is never written over")
        draft = file.with_name(file.name + ".partial")
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

    async def finish(self) -> None:
        self._connection.close()
        os.fsync(self._descriptor)
        # Unlike a rename, a link never replaces a file that was created meanwhile.
        try:
            os.link(self._draft, self._file)
        except FileExistsError:
            raise ConfigurationError(
                f"{self._file} has come to be meanwhile; a backup is never written over"
            ) from None
        self._draft.unlink()
        directory = os.open(self._file.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
        self._finished = True

    async def close(self) -> None:
        self._connection.close()
        if not self._finished:
            self._draft.unlink(missing_ok=True)
            _remove_beside(self._draft)
        os.close(self._descriptor)

    def _cut_log(self) -> None:
        """Only resets the counter: an incomplete backup is invalid, so it has no log."""
        self._written = 0


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
    for suffix in ("-journal", "-wal", "-shm"):
        draft.with_name(draft.name + suffix).unlink(missing_ok=True)
