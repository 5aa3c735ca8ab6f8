"""Reads and changes of stored rows, directly in the database."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw

from memorywall.settings import DATABASE_NAME
from tests.support.backend import database_of
from tests.support.service import RunningService

_NAME = re.compile(r":(\w+)")
_PLACEHOLDER = re.compile(r"\?(\d*)")


def rows(where: RunningService | Path, statement: str, *bindings: Any) -> list[tuple[Any, ...]]:
    """Returns the rows of a statement on the store of a service or of a data directory.

    The statement has `?`, or `?1`, for what is bound. On PostgreSQL no row-level security applies.
    """
    directory = _directory(where)
    if (database := database_of(directory)) is not None:
        found = database.run(database.connection.fetch(_numbered(statement), *bindings))
        return [tuple(row) for row in found]
    with closing(_connect(directory)) as connection:
        return list(connection.execute(statement, bindings))


def change(where: RunningService | Path, statement: str, *bindings: Any) -> None:
    """Runs a statement that must change something."""
    directory = _directory(where)
    if (database := database_of(directory)) is not None:
        told = database.run(database.connection.execute(_numbered(statement), *bindings))
        changed = int(told.rpartition(" ")[2])
    else:
        with closing(_connect(directory)) as connection:
            connection.execute(statement, bindings)
            changed = connection.changes()
    assert changed > 0, f"nothing is changed by {statement}"


def run_script(where: RunningService | Path, script: str, names: Mapping[str, Any]) -> None:
    """Runs statements one after another, with `:name` in them for what is bound by name."""
    directory = _directory(where)
    database = database_of(directory)
    statements = [one for one in script.split(";") if one.strip()]
    bindings = [{name: names[name] for name in _NAME.findall(one)} for one in statements]
    if database is None:
        with closing(_connect(directory)) as connection:
            for statement, bound in zip(statements, bindings, strict=True):
                connection.execute(statement, bound)
        return
    for statement, bound in zip(statements, bindings, strict=True):
        places = {name: f"${place}" for place, name in enumerate(bound, 1)}
        numbered = _NAME.sub(lambda found, to=places: to[found[1]], statement)  # type: ignore[misc]
        database.run(database.connection.execute(numbered, *bound.values()))


def all_rows(where: RunningService | Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table, in an order of their own."""
    if database_of(_directory(where)) is None:
        names = rows(where, "SELECT name FROM sqlite_schema WHERE type = 'table'")
    else:
        names = rows(where, "SELECT tablename FROM pg_tables WHERE schemaname = 'memorywall'")
    return {name: sorted(rows(where, f"SELECT * FROM {name}"), key=repr) for (name,) in names}


def copy_store(source: Path, target: Path) -> None:
    """Copies a data directory that nobody uses to an empty one, with all that is stored."""
    shutil.copytree(source, target, dirs_exist_ok=True)
    if (database := database_of(target)) is not None:
        for name, held in all_rows(source).items():
            if name != "migrations":
                database.run(database.connection.copy_records_to_table(name, records=held))


def places_holding(directory: Path, content: bytes) -> list[str]:
    """The files of a data directory in which these bytes stand, and on PostgreSQL the tables."""
    files = [
        path.name
        for path in directory.rglob("*")
        if path.is_file() and content in path.read_bytes()
    ]
    if database_of(directory) is None:
        return sorted(files)
    tables = [
        name
        for name, held in all_rows(directory).items()
        if any(content in _bytes(value) for row in held for value in row)
    ]
    return sorted(files + tables)


def is_connected(directory: Path) -> bool:
    """Whether a server has the PostgreSQL database of a data directory open."""
    statement = """SELECT 1 FROM pg_stat_activity
        WHERE datname = current_database() AND application_name LIKE 'memorywall/%'"""
    return bool(rows(directory, statement))


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _directory(where: RunningService | Path) -> Path:
    return (
        where.services.settings.sqlite_path.parent if isinstance(where, RunningService) else where
    )


def _connect(directory: Path) -> apsw.Connection:
    connection = apsw.Connection(str(directory / DATABASE_NAME), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_timeout(10_000)
    return connection


def _numbered(statement: str) -> str:
    """The statement with PostgreSQL's placeholders."""
    numbers = iter(range(1, 100))
    return _PLACEHOLDER.sub(lambda found: f"${found[1] or next(numbers)}", statement)
