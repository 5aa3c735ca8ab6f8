"""New SQLite databases, as copies of a migrated one, because most tests need one of their own."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from memorywall.settings import DATABASE_NAME
from memorywall.storage.sqlite.connection import connect, create_file, migrate


def create_database(path: Path) -> None:
    """Creates an empty database with the current schema, as the first start of a server does."""
    create_file(path)
    path.write_bytes(_empty())


@cache
def _empty() -> bytes:
    with TemporaryDirectory() as directory:
        path = Path(directory, DATABASE_NAME)
        connection = connect(path)
        migrate(connection)
        connection.close()
        return path.read_bytes()
