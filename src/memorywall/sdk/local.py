"""A client of a store in this process: `memorywall.open` and `memorywall.open_async`.

The one module of the SDK that knows the server; everything else speaks to it over a transport.
The application is the server's own, so that nothing is less governed for being near.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import httpx

from memorywall.assembly import LocalAuthenticator, open_index, open_memory, settings_for
from memorywall.sdk.asgi import Application, AsgiTransport
from memorywall.sdk.client import AsyncClient, Client
from memorywall.server.app import build_app
from memorywall.server.scheduler import housekeeping
from memorywall.settings import DEFAULT_DATA, DEFAULT_TENANT, Settings

DEFAULT_AGENT = "local"
_SERVERS = ("postgresql://", "postgres://")
_ADDRESS = "http://memorywall.local"
_GRACE_SECONDS = 5.0
_EXIT_SECONDS = 10.0
Result = TypeVar("Result")


def open_local(
    path: str | os.PathLike[str], *, agent: str = DEFAULT_AGENT, task_id: str | None = None
) -> Client:
    """A `Client` of the database at `path`, made if it is missing, with no server.

    path: a file, or the URL of a PostgreSQL database
    agent: whose memory it is
    Closing the client closes the store. Raises StoreLockedError while a server, or another
    client, has the database open.
    """
    return open_settings(_settings(path), agent, task_id)


def open_settings(settings: Settings, agent: str, task_id: str | None = None) -> Client:
    """The same for a store that settings name, with the key that belongs to them."""
    transport = _BlockingTransport(_Host(settings, agent))
    return Client(_ADDRESS, "", agent=agent, task_id=task_id, transport=transport)


@contextmanager
def local_clients(settings: Settings, owner: str) -> Iterator[Callable[[str], Client]]:
    """Opens a store, made if it is missing, for several agents of this process.

    It gives a function from an agent's name to a client of that agent. `owner` administers the
    tenant, the others do not. All clients end with the context.
    """
    transport = _BlockingTransport(_Host(settings, owner))
    try:
        yield lambda agent: Client(_ADDRESS, "", agent=agent, transport=_Borrowed(transport))
    finally:
        transport.close()


@asynccontextmanager
async def open_local_async(
    path: str | os.PathLike[str], *, agent: str = DEFAULT_AGENT, task_id: str | None = None
) -> AsyncIterator[AsyncClient]:
    """The same for `async with`: an `AsyncClient` of the database at `path`, with no server."""
    stopping = asyncio.Event()
    async with _application(_settings(path), agent, stopping) as application:
        client = AsyncClient(
            _ADDRESS, "", agent=agent, task_id=task_id, transport=AsgiTransport(application)
        )
        async with client:
            try:
                yield client
            finally:
                stopping.set()


def _settings(path: str | os.PathLike[str]) -> Settings:
    if isinstance(path, str) and path.startswith(_SERVERS):
        # The key-encryption key lies where a server started here would look for it.
        return settings_for(Path(DEFAULT_DATA), store=path)
    database = Path(path)
    return replace(settings_for(database.parent, store=None), database=database)


@asynccontextmanager
async def _application(
    settings: Settings, agent: str, stopping: asyncio.Event
) -> AsyncIterator[Application]:
    authenticator = LocalAuthenticator(DEFAULT_TENANT, agent)
    async with (
        open_memory(settings) as door,
        open_index(settings, door) as index,
        housekeeping(door, index),
    ):
        yield build_app(door, authenticator, stopping, index)


class _Host:
    """An event loop in a thread of its own, with a store open on it.

    The thread is a daemon: a program that forgets to close its client ends all the same, as if it
    had been killed then. What was acknowledged is on the disk.
    """

    def __init__(self, settings: Settings, agent: str) -> None:
        self._settings = settings
        self._agent = agent
        # Reentrant, because the garbage collector may close this in the midst of a call.
        self._lock = threading.RLock()
        self._closed = False
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._opened: concurrent.futures.Future[Application] = concurrent.futures.Future()
        self._thread = threading.Thread(target=self._run, name="memorywall-local", daemon=True)
        self._thread.start()
        self.application = self._opened.result()

    def call(self, work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """Runs a coroutine on the loop and waits for its result."""
        with self._lock:
            if self._closed:
                raise httpx.ConnectError("the store is closed")
            future = asyncio.run_coroutine_threadsafe(work(), self._loop)
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise httpx.ReadError("the store was closed before it answered") from None
        except BaseException:
            future.cancel()
            raise

    def dismiss(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Runs a coroutine on the loop without waiting for it, unless the store is closed."""
        with self._lock:
            if not self._closed:
                asyncio.run_coroutine_threadsafe(work(), self._loop)

    def close(self) -> None:
        """Lets what is under way finish, and closes the store."""
        with self._lock:
            first, self._closed = not self._closed, True
            if first and self._thread.is_alive():
                self._loop.call_soon_threadsafe(self._stop.set)
        # The garbage collector may call this in any thread, in the loop's own too.
        if threading.current_thread() is not self._thread:
            self._thread.join(_EXIT_SECONDS)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        stopping = asyncio.Event()
        try:
            async with _application(self._settings, self._agent, stopping) as application:
                self._opened.set_result(application)
                standing = asyncio.all_tasks()
                await self._stop.wait()
                stopping.set()
                await _finish(asyncio.all_tasks() - standing)
        except BaseException as error:
            if self._opened.done():
                raise
            self._opened.set_exception(error)


async def _finish(under_way: set[asyncio.Task[Any]]) -> None:
    """Waits a while for requests under way, then cancels what is left of them."""
    if not under_way:
        return
    _, late = await asyncio.wait(under_way, timeout=_GRACE_SECONDS)
    for task in late:
        task.cancel()
    if late:
        await asyncio.wait(late, timeout=_GRACE_SECONDS)


class _BlockingTransport(httpx.BaseTransport):
    """Carries requests to a host's loop. The host closes with it, also when it is forgotten."""

    def __init__(self, host: _Host) -> None:
        self._host = host
        self._inner = AsgiTransport(host.application)
        self._finalizer = weakref.finalize(self, host.close)
        # While the interpreter exits no thread can be started, and closing a store needs one.
        self._finalizer.atexit = False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        async def answer() -> httpx.Response:
            response = await self._inner.handle_async_request(request)
            if "content-length" in response.headers or response.status_code == 204:
                # A whole reply is taken in the same turn; only streams come piece by piece.
                await response.aread()
            return response

        response = self._host.call(answer)
        if response.is_stream_consumed:
            return httpx.Response(
                response.status_code, headers=response.headers, content=response.content
            )
        return httpx.Response(
            response.status_code,
            headers=response.headers,
            stream=_BlockingStream(self._host, response),
        )

    def close(self) -> None:
        self._finalizer()


class _Borrowed(httpx.BaseTransport):
    """A transport that whoever made it closes."""

    def __init__(self, transport: httpx.BaseTransport) -> None:
        self._transport = transport

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return self._transport.handle_request(request)


class _BlockingStream(httpx.SyncByteStream):
    """The body of a reply on another thread's loop."""

    def __init__(self, host: _Host, response: httpx.Response) -> None:
        self._host = host
        self._response = response
        self._pieces = response.aiter_raw()

    def __iter__(self) -> Iterator[bytes]:
        while (piece := self._host.call(self._next)) is not None:
            yield piece

    def close(self) -> None:
        # Without waiting, because the garbage collector may call this in the loop's own thread.
        self._host.dismiss(self._response.aclose)

    async def _next(self) -> bytes | None:
        return await anext(self._pieces, None)
