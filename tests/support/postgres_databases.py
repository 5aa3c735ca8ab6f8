"""Databases on a PostgreSQL server that is already there: made, prepared once, copied, dropped."""

from __future__ import annotations

import asyncio
import os
import secrets
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import quote, unquote, urlsplit, urlunsplit

import asyncpg

Result = TypeVar("Result")

# It waits for two checkpoints of the whole server, but those cost little without fsync, and
# copying files costs half of writing every page to the log.
_STRATEGY = "file_copy"


def in_own_thread(work: Callable[[], Result]) -> Result:
    """Runs this where no event loop runs, so that it may start one of its own."""
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(work).result()


def database_of(url: str) -> str:
    """The name of the database in a URL."""
    return unquote(urlsplit(url).path.removeprefix("/"))


class DatabaseServer:
    """A server, by the URL of a superuser. The methods may be called where an event loop runs."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._templates: dict[Callable[[str], None], str] = {}
        self._templates_lock = threading.Lock()

    def url(
        self, database: str = "postgres", *, user: str | None = None, password: str | None = None
    ) -> str:
        """The URL of a database, for the superuser or for another role."""
        parts = urlsplit(self.address)
        place = parts.netloc
        if user is not None:
            secret = "" if password is None else f":{quote(password, safe='')}"
            place = f"{quote(user, safe='')}{secret}@{place.rpartition('@')[2]}"
        return urlunsplit(parts._replace(netloc=place, path=f"/{quote(database, safe='')}"))

    def administration_url(self, database: str) -> str:
        """The URL that `execute` and `rows` connect to."""
        return self.url(database)

    def execute(self, script: str, *, database: str = "postgres") -> None:
        """Runs statements as the superuser, each committed by itself if there is only one."""

        async def work(connection: asyncpg.Connection) -> None:
            await connection.execute(script)

        self._administer(database, work)

    def rows(
        self, statement: str, *bindings: object, database: str = "postgres"
    ) -> list[asyncpg.Record]:
        """The rows of one statement, run as the superuser."""

        async def work(connection: asyncpg.Connection) -> list[asyncpg.Record]:
            rows: list[asyncpg.Record] = await connection.fetch(statement, *bindings)
            return rows

        return self._administer(database, work)

    def value(self, statement: str, *bindings: object, database: str = "postgres") -> Any:
        """The first column of the first row."""
        return self.rows(statement, *bindings, database=database)[0][0]

    def _administer(
        self,
        database: str,
        work: Callable[[asyncpg.Connection], Coroutine[Any, Any, Result]],
    ) -> Result:
        async def connect_and_work() -> Result:
            connection = await asyncpg.connect(
                self.administration_url(database), timeout=30, command_timeout=60
            )
            try:
                return await work(connection)
            finally:
                await connection.close(timeout=30)

        return in_own_thread(lambda: asyncio.run(connect_and_work()))

    def create_database(self, template: str | None = None) -> str:
        """A new database with a name of its own, empty or a copy of the one with this URL."""
        name = f"test_{os.getpid()}_{secrets.token_hex(6)}"
        source = "template1" if template is None else database_of(template)
        self.execute(f'CREATE DATABASE "{name}" TEMPLATE "{source}" STRATEGY {_STRATEGY}')
        return self.url(name)

    def drop_database(self, url: str) -> None:
        """Drops it, whoever is connected."""
        self.drop_database_named(database_of(url))

    def drop_database_named(self, name: str) -> None:
        """Drops it, whoever is connected."""
        self.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def prepared_database(self, prepare: Callable[[str], None]) -> str:
        """The database that `prepare` was called with the URL of, once. Only for copying."""
        with self._templates_lock:
            if prepare not in self._templates:
                url = self.create_database()
                try:
                    in_own_thread(lambda: prepare(url))
                except BaseException:
                    self.drop_database(url)
                    raise
                # Nobody may change it now, and a copy is only made of one that nobody uses.
                self.execute(f'ALTER DATABASE "{database_of(url)}" ALLOW_CONNECTIONS false')
                self._templates[prepare] = url
            return self._templates[prepare]

    @contextmanager
    def fresh_database(self, prepare: Callable[[str], None] | None = None) -> Iterator[str]:
        """The URL of a database that is dropped at the end.

        It is empty or as `prepare` left the one it was called with; that is called once for all
        databases, in a thread without an event loop, so give the same function each time. It has
        to close its connections.
        """
        url = self.create_database(None if prepare is None else self.prepared_database(prepare))
        try:
            yield url
        finally:
            self.drop_database(url)

    def prepared_databases(self) -> list[str]:
        """The names of the databases that `prepared_database` made."""
        with self._templates_lock:
            return [database_of(url) for url in self._templates.values()]
