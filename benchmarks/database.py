"""PostgreSQL for a run: started from its wheel, durable, and gone afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from tests.support.postgres import PostgresServer, database_of

SETTINGS = {
    # An acknowledged commit is on the disk, as with SQLite's `synchronous=FULL`.
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    # What a small machine would be given; the rest is as PostgreSQL comes.
    "shared_buffers": "256MB",
    "max_wal_size": "2GB",
}


class Database:
    """A server of its own. A context manager that removes it."""

    def __init__(self) -> None:
        self._server = PostgresServer(durable=True, settings=SETTINGS)
        self.version = str(self._server.value("SHOW server_version")).partition(" ")[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()

    @property
    def directory(self) -> Path:
        """The directory of its data."""
        return self._server.directory

    def create(self) -> str:
        """The URL of a new, empty database."""
        return self._server.create_database()

    def processes(self, url: str) -> list[int]:
        """Returns the ids of the processes that serve the connections to a database."""
        found = self._server.value(
            "SELECT coalesce(string_agg(pid::text, ' '), '') FROM pg_stat_activity"
            f" WHERE datname = '{database_of(url)}'"
        )
        return [int(one) for one in str(found).split()]
