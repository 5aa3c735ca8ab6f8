"""Stores to measure on: each in a directory of its own, on SQLite or with a PostgreSQL database."""

from __future__ import annotations

import json
import shutil
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from tqdm import tqdm

from benchmarks.plan import HOST, Endpoint
from benchmarks.servers import Recipe, Server, ServerError, Servers
from memorywall.settings import DATABASE_NAME, EMBEDDER_ENVIRONMENT, Settings
from tests.support.postgres import PostgresServer

_STUCK_SECONDS = 120.0
_SETTLED_SECONDS = 1.0
_POLL_SECONDS = 0.1


class ApiError(Exception):
    """A request was refused."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DataDirectory:
    """A store: a data directory, and the URL of a database where that is not a file in it."""

    directory: Path
    store: str | None = None

    def settings(self, embedder: str) -> Settings:
        """The settings with which to open it in this process."""
        database = self.directory / DATABASE_NAME
        return Settings(sqlite_path=database, database_url=self.store, embedder=embedder)


class DataDirectories:
    """Makes stores below a directory, all of one kind.

    postgres: the server for their databases; None for SQLite
    """

    def __init__(self, directory: Path, postgres: PostgresServer | None = None) -> None:
        self._directory = directory
        self._postgres = postgres
        self._numbers = count(1)

    def new(self) -> DataDirectory:
        """Creates an empty store."""
        store = None if self._postgres is None else self._postgres.create_database()
        directory = self._next()
        directory.mkdir(parents=True)
        return DataDirectory(directory=directory, store=store)

    def copy(self, place: DataDirectory) -> DataDirectory:
        """Copies a store, which must not be open."""
        directory = self._next()
        shutil.copytree(place.directory, directory)
        store = None
        if self._postgres is not None:
            store = self._postgres.create_database(template=place.store)
        return DataDirectory(directory=directory, store=store)

    def remove(self, place: DataDirectory) -> None:
        """Deletes a store."""
        shutil.rmtree(place.directory)
        if self._postgres is not None and place.store is not None:
            self._postgres.drop_database(place.store)

    def _next(self) -> Path:
        return self._directory / f"place-{next(self._numbers)}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Running:
    """A running server of memorywall."""

    server: Server
    endpoint: Endpoint

    @property
    def pid(self) -> int:
        """The id of its process."""
        return self.server.process.pid

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://{HOST}:{self.endpoint.port}"

    def headers(self, agent: str) -> dict[str, str]:
        """Returns the headers of a request of an agent."""
        return {"X-API-Key": self.endpoint.api_key, "X-Agent-ID": agent}


@contextmanager
def running(servers: Servers, place: DataDirectory, embedder: str) -> Iterator[Running]:
    """A server on a place, as a process of its own, until the context ends."""
    server = servers.start(_recipe(place, embedder))
    try:
        yield Running(server=server, endpoint=server.endpoint())
    except ApiError as error:
        raise ServerError(server.complaint(str(error))) from error
    finally:
        servers.stop(server)


def _recipe(place: DataDirectory, embedder: str) -> Recipe:
    def arguments(_: Path, port: int) -> list[str]:
        # `env` becomes the server, so that no process stands between.
        named = ["env", f"{EMBEDDER_ENVIRONMENT}={embedder}"]
        serve = [*named, sys.executable, "-m", "memorywall", "serve", "--dev"]
        serve += ["--data", str(place.directory), "--port", str(port)]
        return serve if place.store is None else [*serve, "--store", place.store]

    return Recipe(
        name=f"memorywall-{embedder}",
        arguments=arguments,
        alive_path="/health",
        ready_path="/ready",
        api_key=lambda _: (place.directory / "dev-key").read_text().strip(),
    )


def backlog(server: Running) -> int:
    """Returns the number of changes that a server has not embedded yet."""
    try:
        with urllib.request.urlopen(server.url + "/ready", timeout=30) as reply:
            content = json.load(reply)
    except urllib.error.URLError as error:
        raise ServerError(f"the request of /ready failed: {error.reason}") from error
    waiting: int = content["embedding"]["backlog"]
    return waiting


def wait_until_embedded(server: Running) -> float:
    """Waits, with a progress bar, until a server has embedded everything; returns when that was,
    by `time.perf_counter`."""
    waiting = backlog(server)
    moved_at = time.perf_counter()
    with tqdm(total=waiting, desc="embedding", unit=" texts", leave=False) as bar:
        # The response of /ready may be older than the last write.
        while waiting or time.perf_counter() - moved_at < _SETTLED_SECONDS:
            time.sleep(_POLL_SECONDS)
            before, waiting = waiting, backlog(server)
            if waiting != before:
                moved_at = time.perf_counter()
                bar.update(max(0, before - waiting))
            elif time.perf_counter() - moved_at > _STUCK_SECONDS:
                raise ServerError(f"embedding makes no progress; {waiting:,} changes are left")
    return moved_at
