"""Opens the file: pragmas, migrations, and the lock of the server."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import apsw

from memorywall.records.errors import ConfigurationError, StoreLockedError
from memorywall.records.forks import ProcessBound
from memorywall.storage.description import StoreDescription
from memorywall.storage.migration import Migration, check_supported, load_migrations

BUSY_TIMEOUT_MILLISECONDS = 10_000
_MIGRATIONS = """
CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT
"""
_APPLIED = "INSERT INTO migrations (number, name) VALUES (?, ?)"
_APPLICATION = 0x6D77616C
"""The application id in the file's header: `mwal`."""
_NOT_OURS = "{} is not a memorywall database"
UNFINISHED = ".partial"
"""Added to the name of a database that a restore or backup has not completed."""
_PRAGMAS = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA wal_autocheckpoint = 0;
PRAGMA secure_delete = ON;
PRAGMA temp_store = MEMORY;
PRAGMA foreign_keys = ON;
PRAGMA cache_size = -32768;
"""


class FileLock(ProcessBound):
    """The lock of the process that serves a database; the system releases it when the process
    dies."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._descriptor)
            raise StoreLockedError(
                "another process (a server or memorywall.open) has"
                f" {path.name.removesuffix('.lock')} open; stop it first, or ask a server with"
                " --url, in Python with Client(url)"
            ) from error
        super().__init__()

    def release(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        with suppress(OSError):
            os.close(descriptor)

    def let_go(self) -> None:
        # The lock stays until every process that inherited the descriptor has closed it.
        self.release()


def lock(database: Path) -> FileLock:
    """Acquires the server's lock on a database. Raises StoreLockedError if another process has
    it."""
    return FileLock(database.with_name(database.name + ".lock"))


def create_file(database: Path) -> None:
    """Creates an empty database file with mode 0600, if there is none.

    Raises ConfigurationError if it cannot be created, and in place of one that a restore has not
    completed.
    """
    if not database.exists() and database.with_name(database.name + UNFINISHED).exists():
        raise ConfigurationError(
            f"a restore of {database} is running or was interrupted; run `memorywall restore` again"
            f" to complete it, or delete {database.name}{UNFINISHED} to give it up"
        )
    try:
        database.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(database, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise ConfigurationError(f"{database} cannot be opened: {error.strerror}") from error


def connect(database: Path, *, read_only: bool = False) -> apsw.Connection:
    """Opens a connection with memorywall's pragmas. Even a read-only connection must write the WAL
    index."""
    try:
        connection = apsw.Connection(os.fspath(database), statementcachesize=256)
        connection.set_busy_timeout(BUSY_TIMEOUT_MILLISECONDS)
        # Otherwise the planner looks at what is bound, such as a limit or a tier, and a statement
        # is prepared anew for each execution, which takes longer than most of them.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        check_ours(connection)
        # Some pragmas return a row, and later statements run only after the row is fetched.
        connection.execute(_PRAGMAS).fetchall()
        if read_only:
            connection.execute("PRAGMA query_only = ON")
    except (apsw.NotADBError, apsw.CorruptError) as error:
        raise ConfigurationError(_NOT_OURS.format(database)) from error
    except apsw.CantOpenError as error:
        raise ConfigurationError(f"{database} cannot be opened") from error
    return connection


@cache
def migrations() -> tuple[Migration, ...]:
    """Returns every migration in order."""
    return tuple(load_migrations(__package__))


def schema_version(connection: apsw.Connection) -> int:
    """Returns the number of the last applied migration."""
    return int(_pragma(connection, "user_version"))


def describe(connection: apsw.Connection) -> StoreDescription:
    """Returns the version of SQLite and the number of the schema."""
    return StoreDescription(
        engine="SQLite", version=apsw.sqlite_lib_version(), schema=schema_version(connection)
    )


def migrate(connection: apsw.Connection) -> None:
    """Applies missing migrations, each in its own transaction.

    Raises ConfigurationError, without a change, if a newer version of memorywall or another program
    wrote the file.
    """
    known = migrations()
    present = schema_version(connection)
    check_ours(connection)
    check_supported(present, _name_of_newest(connection), known)
    for migration in known:
        if migration.number > present:
            with connection:
                connection.execute(migration.sql).fetchall()
                connection.execute(_MIGRATIONS)
                connection.execute(_APPLIED, (migration.number, migration.name))
                connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                connection.execute(f"PRAGMA user_version = {migration.number}")


def check_schema(connection: apsw.Connection) -> None:
    """Raises ConfigurationError unless the schema is that of this version, or one expanding step
    newer."""
    present, known = schema_version(connection), migrations()
    check_supported(present, _name_of_newest(connection), known)
    if present < known[-1].number:
        raise ConfigurationError(
            f"this database has schema {present}, this memorywall knows {known[-1].number}"
        )


def _name_of_newest(connection: apsw.Connection) -> str:
    """Returns the file name of the last applied migration; "" if it is unknown."""
    there = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'migrations'").fetchone()
    if there is None:
        return ""
    row = connection.execute("SELECT name FROM migrations ORDER BY number DESC LIMIT 1").fetchone()
    return str(row[0]) if row else ""


def check_ours(connection: apsw.Connection, *, empty_too: bool = True) -> None:
    """Raises ConfigurationError unless the database is one of memorywall, or empty if that is
    allowed."""
    if int(_pragma(connection, "application_id")) == _APPLICATION:
        return
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if (tables and tables[0]) or not empty_too:
        raise ConfigurationError(_NOT_OURS.format(connection.filename))


def data_version(connection: apsw.Connection) -> int:
    """Returns a number that changes when another connection has committed."""
    return int(_pragma(connection, "data_version"))


def _pragma(connection: apsw.Connection, name: str) -> Any:
    row = connection.execute(f"PRAGMA {name}").fetchone()
    return row[0] if row else 0
