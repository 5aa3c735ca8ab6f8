"""Opens a store in this process: `memorywall.open` and `memorywall.open_async`."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from memorywall.assembly import settings_for
from memorywall.in_process.drivers import (
    AsyncHandle,
    AsyncInProcessDriver,
    Handle,
    InProcessDriver,
)
from memorywall.in_process.host import AsyncHost, Host, SharedHost
from memorywall.records.errors import ConfigurationError, StoreLockedError
from memorywall.records.forks import FORK_LOCK
from memorywall.sdk.client import AsyncClient, Client
from memorywall.settings import DEFAULT_DATA, Settings

DEFAULT_AGENT = "local"
_IN_MEMORY = ":memory:"
_SEPARATORS = tuple(one for one in (os.sep, os.altsep) if one)
_SERVERS = ("postgresql://", "postgres://")
_OTHER_WAY = (
    "this process has the database open in another way (`open` and `open_async`, or another"
    " embedder); close that client first"
)
AnyHost = TypeVar("AnyHost", bound=SharedHost)
_open_files: WeakValueDictionary[Path, SharedHost] = WeakValueDictionary()
"""The hosts of the SQLite files that this process has open."""


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
        text that ends in `/`, is the data directory of `memorywall serve --data`. `:memory:` is a
        new store, whose files are removed when the client closes
    agent: the agent of the client
    task_id: the task that the client works on; by default none
    embedder: the embedder of recall: `none`, `static`, `local`, `onnx:FOLDER` or the URL of an
        embeddings endpoint with `#MODEL`; by default that of MEMORYWALL_EMBEDDER, else none

    A file that this process has open already is shared; closing the last client closes the store.
    Raises StoreLockedError while another process has the database open, and ConfigurationError if
    the directory that would contain the file or the data directory does not exist, or the embedder
    is unknown or its package is not installed.
    """
    host = acquire_host(Host, path, embedder)
    try:
        host.open()
    except BaseException:
        host.release()
        raise
    driver = InProcessDriver(Handle(host, host.release), agent)
    return Client.over(driver, agent=agent, task_id=task_id)


def open_settings(settings: Settings, agent: str, task_id: str | None = None) -> Client:
    """The same for the store of the settings, with its key."""
    host = Host(settings).open()
    driver = InProcessDriver(Handle(host, host.release), agent)
    return Client.over(driver, agent=agent, task_id=task_id)


@contextmanager
def local_clients(settings: Settings, owner: str) -> Iterator[Callable[[str], Client]]:
    """Opens a store, created if it is missing, for several agents of this process.

    Yields a function from an agent's name to a client of that agent. `owner` administers the
    tenant; the other agents do not. All clients are closed at the end of the context.
    """
    host = Host(settings).open()
    driver = InProcessDriver(Handle(host, host.release), owner)
    try:
        yield lambda agent: Client.over(driver.for_agent(agent), agent=agent)
    finally:
        driver.close()


class LocalAsyncClient(AsyncClient):
    """An `AsyncClient` of a store in this process. `await` returns it when the store is open."""

    driver: AsyncInProcessDriver

    def __await__(self) -> Generator[Any, None, LocalAsyncClient]:
        return self.__aenter__().__await__()

    async def __aenter__(self) -> LocalAsyncClient:
        await self.driver.handle.open()
        return self


def open_local_async(
    path: str | os.PathLike[str],
    *,
    agent: str = DEFAULT_AGENT,
    task_id: str | None = None,
    embedder: str | None = None,
) -> LocalAsyncClient:
    """Opens the database at `path`, without a server, and returns an `AsyncClient` of it. The
    parameters are those of `memorywall.open`.

    `async with memorywall.open_async(path) as client` closes the store at the end; `client = await
    memorywall.open_async(path)` needs `await client.close()`. Without either, the first request
    opens the store. The end of the event loop closes it too.
    """
    handle = AsyncHandle(partial(acquire_host, AsyncHost, path, embedder))
    driver = AsyncInProcessDriver(handle, agent)
    return LocalAsyncClient.over(driver, agent=agent, task_id=task_id)


def acquire_host(
    kind: type[AnyHost],
    path: str | os.PathLike[str],
    embedder: str | None,
) -> AnyHost:
    """Returns the host of a path for one more client: that of this process, or a new one. Raises
    StoreLockedError if this process has the file open for the other kind of host, or with another
    embedder."""
    if os.fspath(path) == _IN_MEMORY:
        directory = tempfile.mkdtemp(prefix="memorywall-")
        remove = partial(_remove_files, directory, os.getpid())
        host = kind(_settings(directory, embedder), remove)
        # A program that does not close the client leaves no files either.
        weakref.finalize(host, remove)
        return host
    settings = _settings(path, embedder)
    if settings.database_url is not None:
        return kind(settings)
    file = settings.sqlite_path.resolve()
    with FORK_LOCK:
        found = _open_files.get(file)
        if found is None or found.is_closed or found.is_inherited:
            host = _open_files[file] = kind(settings)
            return host
        if not isinstance(found, kind) or embedder not in (None, found.settings.embedder):
            raise StoreLockedError(_OTHER_WAY)
        found.users += 1
        return found


def _remove_files(directory: str, owner: int) -> None:
    """Removes the files of a store in memory, except at the end of a fork of the process that
    opened it.

    owner: the id of that process
    """
    if os.getpid() == owner:
        shutil.rmtree(directory, ignore_errors=True)


def _settings(path: str | os.PathLike[str], embedder: str | None) -> Settings:
    given = {} if embedder is None else {"embedder": embedder}
    if isinstance(path, str) and path.startswith(_SERVERS):
        # The same location as that of a server on this database.
        return settings_for(Path(DEFAULT_DATA), database_url=path, **given)
    if os.path.isdir(path) or str(path).endswith(_SEPARATORS):
        _check_parent(Path(path))
        return settings_for(Path(path), database_url=None, **given)
    database = Path(path)
    _check_parent(database)
    directory = settings_for(database.parent, database_url=None, **given)
    return replace(directory, sqlite_path=database)


def _check_parent(path: Path) -> None:
    """Raises ConfigurationError for a path in a directory that does not exist: a mistyped path
    would become an empty store."""
    if not path.parent.is_dir():
        raise ConfigurationError(
            f"there is no directory {path.parent}; create it, or correct the path"
        )
