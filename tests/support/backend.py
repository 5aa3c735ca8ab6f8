"""The store of the tests of the surfaces: SQLite, or PostgreSQL with `--store postgres`.

On PostgreSQL a database stands for each data directory: what is opened in one directory twice is
one store, and what is opened in two are two, as it is with files.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import asyncpg

from memorywall.settings import STORE_ENVIRONMENT
from memorywall.storage.postgres.connection import SCHEMA
from memorywall.storage.postgres.migrate import migrate
from tests.support.postgres import fresh_database, shared_server
from tests.support.postgres_databases import in_own_thread

Result = TypeVar("Result")

_EMPTY = f"""
DO $$ DECLARE name text; BEGIN
    FOR name IN SELECT tablename FROM pg_tables
        WHERE schemaname = '{SCHEMA}' AND tablename <> 'migrations'
    LOOP EXECUTE format('DELETE FROM {SCHEMA}.%I', name); END LOOP;
END $$
"""
_OTHERS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
"""
_USES = 300
"""The number of tests that use one database, which grows by their deleted rows."""
_PATIENCE = 1.0
"""Seconds until connections of a test that has ended are gone, those of killed servers too."""


def prepare(url: str) -> None:
    """Brings the schema of a new database up to date."""
    in_own_thread(lambda: asyncio.run(migrate(url)))


@contextmanager
def own_database() -> Iterator[str]:
    """A new, empty memorywall on PostgreSQL: its URL."""
    with fresh_database(prepare) as url:
        yield url


class _Loop:
    """An event loop in a thread of its own, because tests have theirs."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Waits for work, in whatever thread this is called."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=60)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Database:
    """A database that one test after another uses, and a superuser's connection to it."""

    def __init__(self, loop: _Loop) -> None:
        server = shared_server()
        self.url = server.create_database(server.prepared_database(prepare))
        self.run = loop.run
        self._uses = 0
        self.connection: asyncpg.Connection = self.run(
            asyncpg.connect(self.url, timeout=30, server_settings={"search_path": SCHEMA})
        )

    def empty(self) -> bool:
        """Makes it as good as new. False where that cannot be trusted: somebody is still there."""
        self._uses += 1
        return self._uses < _USES and self.run(self._empty())

    async def _empty(self) -> bool:
        deadline = time.monotonic() + _PATIENCE
        while await self.connection.fetchval(_OTHERS):
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(0.005)
        await self.connection.execute(_EMPTY)
        return True

    def drop(self) -> None:
        self.run(self.connection.close())
        shared_server().drop_database(self.url)


_loop: _Loop | None = None
_of_directory: dict[Path, Database] = {}
_free: list[Database] = []
_lock = threading.Lock()
_chosen = "sqlite"


def choose(backend: str) -> None:
    """Says once what the tests of this process run on, `sqlite` or `postgres`."""
    global _chosen
    _chosen = backend


def is_on_file() -> bool:
    """Whether the tests run on SQLite."""
    return _chosen == "sqlite"


def database_of(data: Path) -> Database | None:
    """The database that stands for a data directory, or None on SQLite."""
    if is_on_file():
        return None
    global _loop
    place = data.absolute()
    with _lock:
        if place not in _of_directory:
            _loop = _loop or _Loop()
            _of_directory[place] = _free.pop() if _free else Database(_loop)
        return _of_directory[place]


def store_of(data: Path) -> str | None:
    """The URL of the database that stands for a data directory, or None on SQLite."""
    database = database_of(data)
    return None if database is None else database.url


def place_options(data: Path) -> list[str]:
    """The options with which a command opens the store of a data directory."""
    store = store_of(data)
    return ["--data", str(data), *([] if store is None else ["--store", store])]


def environment_of(data: Path) -> dict[str, str]:
    """The environment in which a command that is given a data directory finds its store."""
    store = store_of(data)
    return {} if store is None else {STORE_ENVIRONMENT: store}


def give_back(under: Path) -> None:
    """Ends the use of every data directory that lies under this one."""
    with _lock:
        for place in [place for place in _of_directory if place.is_relative_to(under.absolute())]:
            database = _of_directory.pop(place)
            if database.empty():
                _free.append(database)
            else:
                database.drop()


def drop_all() -> None:
    """Drops all databases that stood for directories."""
    global _loop
    for database in (*_of_directory.values(), *_free):
        database.drop()
    _of_directory.clear()
    _free.clear()
    if _loop is not None:
        _loop.close()
        _loop = None


def class_of_store(name: str) -> Any:
    """The chosen store's class for `Store` or for a noun such as `Entries`, to change it."""
    module = import_module(f"memorywall.storage.{_chosen}.{name.lower()}")
    (found,) = (
        kind
        for key, kind in vars(module).items()
        if key.startswith(_chosen.capitalize()) and kind.__module__ == module.__name__
    )
    return found
