"""Opens a store in this process: `memorywall.open` and `memorywall.open_async`."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path

from memorywall.assembly import settings_for
from memorywall.in_process.drivers import AsyncInProcessDriver, Handle, InProcessDriver
from memorywall.in_process.host import Host, opened_memory
from memorywall.sdk.client import AsyncClient, Client
from memorywall.settings import DEFAULT_DATA, Settings

DEFAULT_AGENT = "local"
_SEPARATORS = tuple(one for one in (os.sep, os.altsep) if one)
_SERVERS = ("postgresql://", "postgres://")


def open_local(
    path: str | os.PathLike[str],
    *,
    agent: str = DEFAULT_AGENT,
    task_id: str | None = None,
    embedder: str | None = None,
) -> Client:
    """Opens the database at `path`, without a server, and returns a `Client` of it. Creates a
    missing database.

    path: a file, a data directory, or the URL of a PostgreSQL database. An existing directory, or
        text that ends in `/`, is the data directory of `memorywall serve --data`
    agent: the agent of the client
    task_id: the task that the client works on; by default none
    embedder: the embedder of recall: `none`, `static`, `local`, `onnx:FOLDER` or the URL of an
        embeddings endpoint with `#MODEL`; by default that of MEMORYWALL_EMBEDDER, else none

    Closing the client closes the store. Raises StoreLockedError while a server, or another
    client, has the database open, and ConfigurationError if the embedder is unknown or its
    package is not installed.
    """
    return open_settings(_settings(path, embedder), agent, task_id)


def open_settings(settings: Settings, agent: str, task_id: str | None = None) -> Client:
    """The same for the store of the settings, with its key."""
    driver = InProcessDriver(Handle(Host(settings, agent), owns=True), agent)
    return Client.over(driver, agent=agent, task_id=task_id)


@contextmanager
def local_clients(settings: Settings, owner: str) -> Iterator[Callable[[str], Client]]:
    """Opens a store, created if it is missing, for several agents of this process.

    Yields a function from an agent's name to a client of that agent. `owner` administers the
    tenant; the other agents do not. All clients are closed at the end of the context.
    """
    driver = InProcessDriver(Handle(Host(settings, owner), owns=True), owner)
    try:
        yield lambda agent: Client.over(driver.for_agent(agent), agent=agent)
    finally:
        driver.close()


@asynccontextmanager
async def open_local_async(
    path: str | os.PathLike[str],
    *,
    agent: str = DEFAULT_AGENT,
    task_id: str | None = None,
    embedder: str | None = None,
) -> AsyncIterator[AsyncClient]:
    """Opens the database at `path`, without a server, and returns an `AsyncClient` of it, for
    `async with`. The parameters are those of `memorywall.open`."""
    async with opened_memory(_settings(path, embedder), agent) as memory:
        driver = AsyncInProcessDriver(memory, agent)
        async with AsyncClient.over(driver, agent=agent, task_id=task_id) as client:
            yield client


def _settings(path: str | os.PathLike[str], embedder: str | None) -> Settings:
    given = {} if embedder is None else {"embedder": embedder}
    if isinstance(path, str) and path.startswith(_SERVERS):
        # The same location as that of a server on this database.
        return settings_for(Path(DEFAULT_DATA), database_url=path, **given)
    if os.path.isdir(path) or str(path).endswith(_SEPARATORS):
        return settings_for(Path(path), database_url=None, **given)
    database = Path(path)
    directory = settings_for(database.parent, database_url=None, **given)
    return replace(directory, sqlite_path=database)
