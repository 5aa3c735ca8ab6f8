"""Looks at a database file without a change, also beside a server."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

import apsw

from memorywall.records.errors import ConfigurationError
from memorywall.storage.description import StoreHealth
from memorywall.storage.sqlite.connection import check_ours, connect, describe, migrations

_MOST_DEFECTS = 5


def check_health(database: Path) -> StoreHealth:
    """Returns the state of a database file. Takes as long as reading the file once.

    Raises ConfigurationError if there is no file, or if it is not a readable memorywall database.
    """
    if not database.exists():
        raise ConfigurationError(f"there is no database in {database.parent}")
    try:
        connection = connect(database, read_only=True)
    except apsw.Error as error:
        raise ConfigurationError(f"{database} cannot be opened ({type(error).__name__})") from None
    try:
        check_ours(connection, empty_too=False)
        described = describe(connection)
        return StoreHealth(
            engine=described.engine,
            version=described.version,
            schema=described.schema,
            newest_schema=migrations()[-1].number,
            is_served=is_served(database),
            damage=tuple(_defects(connection)),
            log_bytes=_size(database.with_name(database.name + "-wal")),
        )
    finally:
        connection.close()


def _defects(connection: apsw.Connection) -> list[str]:
    try:
        rows = connection.execute(f"PRAGMA quick_check({_MOST_DEFECTS})").fetchall()
    except apsw.Error as error:
        return [type(error).__name__]
    return [str(message) for (message,) in rows if message != "ok"]


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def is_served(database: Path) -> bool:
    """Returns whether a process has the server's lock. The lock file is not created."""
    try:
        descriptor = os.open(database.with_name(database.name + ".lock"), os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        with suppress(OSError):
            os.close(descriptor)
