"""Opening the file: pragmas, migrations, the lock of the one server."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import apsw

from memorywall.records.errors import ConfigurationError, StoreLockedError
from memorywall.storage.migration import Migration, check_supported, load_migrations

BUSY_TIMEOUT_MILLISECONDS = 10_000
_MIGRATIONS = """
CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT
"""
_APPLIED = "INSERT INTO migrations (number, name) VALUES (?, ?)"
_APPLICATION = 0x6D77616C
"""Stands in the file's header and says whose it is: `mwal`."""
_NOT_OURS = "{} is not a memorywall database"
_PRAGMAS = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA wal_autocheckpoint = 0;
PRAGMA secure_delete = ON;
PRAGMA temp_store = MEMORY;
PRAGMA foreign_keys = ON;
PRAGMA cache_size = -65536;
"""


class FileLock:
    """Held by the one process that serves a database; the system lets it go when that dies."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._descriptor)
            raise StoreLockedError(
                f"another memorywall server has {path.name.removesuffix('.lock')} open;"
                " stop it first, or talk to it with --url"
            ) from error

    def release(self) -> None:
        with suppress(OSError):
            os.close(self._descriptor)


def lock(database: Path) -> FileLock:
    """Takes the server's lock on a database. Raises StoreLockedError when another has it."""
    return FileLock(database.with_name(database.name + ".lock"))


def create_file(database: Path) -> None:
    """Makes an empty database file that only its owner can read, if there is none."""
    try:
        database.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(database, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise ConfigurationError(f"{database} cannot be opened: {error.strerror}") from error


def connect(database: Path, *, read_only: bool = False) -> apsw.Connection:
    """A connection with our pragmas. One that only reads still needs to write the WAL index."""
    try:
        connection = apsw.Connection(os.fspath(database), statementcachesize=256)
        connection.set_busy_timeout(BUSY_TIMEOUT_MILLISECONDS)
        # Otherwise the planner looks at what is bound, such as a limit or a tier, and a statement
        # is prepared anew for each execution, which takes longer than most of them.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        check_ours(connection)
        # Some of these answer with a row, and what comes after one runs only when it is fetched.
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
    """Every migration in order."""
    return tuple(load_migrations(__package__))


def schema_version(connection: apsw.Connection) -> int:
    """The number of the last migration applied."""
    return int(_pragma(connection, "user_version"))


def migrate(connection: apsw.Connection) -> None:
    """Applies what is missing, each migration in a transaction of its own.

    Raises ConfigurationError when the file was written by a newer memorywall, or by something else:
    then nothing in it is changed.
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
    """Raises ConfigurationError unless the schema is this memorywall's, or the next one where that
    only adds."""
    present, known = schema_version(connection), migrations()
    check_supported(present, _name_of_newest(connection), known)
    if present < known[-1].number:
        raise ConfigurationError(
            f"this database has schema {present}, this memorywall knows {known[-1].number}"
        )


def _name_of_newest(connection: apsw.Connection) -> str:
    """The file name of the migration that was applied last; "" where none was noted."""
    there = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'migrations'").fetchone()
    if there is None:
        return ""
    row = connection.execute("SELECT name FROM migrations ORDER BY number DESC LIMIT 1").fetchone()
    return str(row[0]) if row else ""


def check_ours(connection: apsw.Connection, *, empty_too: bool = True) -> None:
    """Raises ConfigurationError unless the database is one of ours, or empty where that will do."""
    if int(_pragma(connection, "application_id")) == _APPLICATION:
        return
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if (tables and tables[0]) or not empty_too:
        raise ConfigurationError(_NOT_OURS.format(connection.filename))


def data_version(connection: apsw.Connection) -> int:
    """Changes whenever another connection has committed."""
    return int(_pragma(connection, "data_version"))


def _pragma(connection: apsw.Connection, name: str) -> Any:
    row = connection.execute(f"PRAGMA {name}").fetchone()
    return row[0] if row else 0
