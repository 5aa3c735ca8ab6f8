"""Drivers that send requests over HTTP, with httpx or over connections of their own."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Generic, TypeVar
from urllib.request import getproxies

import httpx

from memorywall.records.forks import FORK_LOCK, ProcessBound
from memorywall.sdk.connections import Connections, are_plain
from memorywall.sdk.effects import Open, Request, Response
from memorywall.sdk.errors import MemoryTransportError
from memorywall.sdk.executors import AwaitingDriver, BlockingDriver, RequestBinding, steady_clock
from memorywall.sdk.retry import encode

Http = TypeVar("Http")
_ANY_BYTES = b"application/octet-stream"
_NEVER_SENT = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
    httpx.LocalProtocolError,
)


def tls_context(url: str) -> ssl.SSLContext:
    """Returns the TLS context for a server, shared by the clients of this process.

    Loading the certificate authorities takes some 40 ms, which is most of the time of creating a
    client. A client of an `http` URL gets a context that trusts nothing, unless a proxy, which may
    use TLS, is set in the environment.
    """
    if url.lower().startswith("http://") and not getproxies():
        return _context_that_trusts_nothing()
    return _context_with_authorities()


@cache
def _context_that_trusts_nothing() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@cache
def _context_with_authorities() -> ssl.SSLContext:
    return httpx.create_ssl_context()


class _Pool(ProcessBound, Generic[Http]):
    """An httpx client with its connections.

    end: an asynchronous generator that closes the client when it ends, for one of an event loop
    """

    def __init__(self, http: Http) -> None:
        super().__init__()
        self.http = http
        self.end: AsyncGenerator[None, None] | None = None


class _Pools(Generic[Http]):
    """The pools of a driver and of its copies: one for each process and event loop.

    Two processes that read from one connection get each other's responses, and a connection works
    only on the event loop that opened it.
    """

    def __init__(self, connect: Callable[[], Http]) -> None:
        self.connect = connect
        # Wrong arguments fail here, and not at the first request.
        self.unused: Http | None = connect()
        self.open: dict[asyncio.AbstractEventLoop | None, _Pool[Http]] = {}
        self.is_closed = False

    def current(self, loop: asyncio.AbstractEventLoop | None = None) -> _Pool[Http]:
        """Returns the pool of this process and of the loop."""
        with FORK_LOCK:
            if self.is_closed:
                raise RuntimeError("the client is closed")
            pool = self.open.get(loop)
            if pool is None or pool.is_inherited:
                self.open = {
                    other: its_pool
                    for other, its_pool in self.open.items()
                    if other is None or not other.is_closed()
                }
                pool = self.open[loop] = _Pool(self.unused or self.connect())
                self.unused = None
            return pool

    def close(self) -> dict[asyncio.AbstractEventLoop | None, _Pool[Http]]:
        """Ends the use of the pools. Returns those of this process, to be closed."""
        with FORK_LOCK:
            self.is_closed = True
            own = {loop: pool for loop, pool in self.open.items() if not pool.is_inherited}
            if self.unused is not None:
                own[None] = _Pool(self.unused)
            self.open, self.unused = {}, None
            return own


class Driver(BlockingDriver):
    """Sends requests over HTTP and blocks until the responses arrive.

    connect: returns an httpx client; it is called once for each process
    connect_directly: returns connections for requests with whole responses, likewise; default: the
        httpx client sends them too
    """

    def __init__(
        self,
        connect: Callable[[], httpx.Client],
        *,
        connect_directly: Callable[[], Connections] | None = None,
        pause: Callable[[float], object] = time.sleep,
        clock: Callable[[], float] = steady_clock,
    ) -> None:
        super().__init__(pause=pause, clock=clock)
        self._pools = _Pools(connect)
        self._direct = None if connect_directly is None else _Pools(connect_directly)

    def send(self, request: Request) -> Response:
        if self._direct is not None:
            connections = self._direct.current().http
            headers, content = _headers_and_content(request, self.binding)
            if are_plain([value for _, value in headers]):
                with _transport_errors():
                    return Response(
                        *connections.send(request.method, request.target, headers, content)
                    )
        http = self._pools.current().http
        with _transport_errors():
            reply = http.send(_build(http, request, self.binding))
        return Response(reply.status_code, reply.content)

    def open(self, step: Open) -> tuple[Response, _Stream]:
        http = self._pools.current().http
        with _transport_errors():
            opened = http.send(_build(http, step, self.binding), stream=True)
            body = opened.read() if opened.status_code >= 300 else b""
        return Response(opened.status_code, body), _Stream(opened)

    def close(self) -> None:
        for pool in self._pools.close().values():
            pool.http.close()
        if self._direct is not None:
            for direct in self._direct.close().values():
                direct.http.close()

    @property
    def is_closed(self) -> bool:
        return self._pools.is_closed


class AsyncDriver(AwaitingDriver):
    """Sends requests over HTTP and awaits the responses.

    connect: returns an httpx client; it is called once for each process and event loop
    """

    def __init__(
        self,
        connect: Callable[[], httpx.AsyncClient],
        *,
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
        clock: Callable[[], float] = steady_clock,
    ) -> None:
        super().__init__(pause=pause, clock=clock)
        self._pools = _Pools(connect)

    async def send(self, request: Request) -> Response:
        http = await self._http()
        with _transport_errors():
            reply = await http.send(_build(http, request, self.binding))
        return Response(reply.status_code, reply.content)

    async def open(self, step: Open) -> tuple[Response, _AsyncStream]:
        http = await self._http()
        with _transport_errors():
            opened = await http.send(_build(http, step, self.binding), stream=True)
            body = await opened.aread() if opened.status_code >= 300 else b""
        return Response(opened.status_code, body), _AsyncStream(opened)

    async def close(self) -> None:
        here = asyncio.get_running_loop()
        for loop, pool in self._pools.close().items():
            if loop is None or loop is here:
                await _close(pool)
                continue
            # A closed loop has closed its pool.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(
                    lambda owner, closing: owner.create_task(_close(closing)), loop, pool
                )

    @property
    def is_closed(self) -> bool:
        return self._pools.is_closed

    async def _http(self) -> httpx.AsyncClient:
        """Returns the client of this event loop. It is closed when the loop ends, because asyncio
        ends the asynchronous generators of a loop then."""
        loop = asyncio.get_running_loop()
        pool = self._pools.current(loop)
        if pool.end is None:
            pool.end = self._closing(loop, pool)
            await anext(pool.end)
        return pool.http

    async def _closing(
        self, loop: asyncio.AbstractEventLoop, pool: _Pool[httpx.AsyncClient]
    ) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            # What a loop inherits over a fork are the connections of the parent.
            if not pool.is_inherited:
                self._pools.open.pop(loop, None)
                await pool.http.aclose()


async def _close(pool: _Pool[httpx.AsyncClient]) -> None:
    """Closes a pool on the event loop that opened it."""
    await (pool.http if pool.end is None else pool.end).aclose()


class _Stream(ProcessBound):
    """The chunks of a response."""

    def __init__(self, opened: httpx.Response) -> None:
        super().__init__()
        self._opened = opened
        self._pieces = opened.iter_bytes()

    def read(self) -> bytes | None:
        _check_process(self)
        with _transport_errors():
            return next(self._pieces, None)

    def close(self) -> None:
        if not self.is_inherited:
            self._opened.close()


class _AsyncStream(ProcessBound):
    """The chunks of a response."""

    def __init__(self, opened: httpx.Response) -> None:
        super().__init__()
        self._opened = opened
        self._pieces: AsyncIterator[bytes] = opened.aiter_bytes()

    async def read(self) -> bytes | None:
        _check_process(self)
        with _transport_errors():
            return await anext(self._pieces, None)

    async def close(self) -> None:
        if not self.is_inherited:
            await self._opened.aclose()


def _check_process(stream: ProcessBound) -> None:
    """Raises MemoryTransportError in a forked process, which then opens a stream of its own."""
    if stream.is_inherited:
        raise MemoryTransportError("the process that forked this one has the stream")


def _build(
    http: httpx.Client | httpx.AsyncClient,
    step: Request | Open,
    binding: RequestBinding,
) -> httpx.Request:
    if isinstance(step, Open):
        request = step.request
        timeout = httpx.Timeout(http.timeout.connect, read=step.silence)
    else:
        request, timeout = step, http.timeout
    headers, content = _headers_and_content(request, binding)
    return http.build_request(
        request.method, request.target, content=content, headers=headers, timeout=timeout
    )


def _headers_and_content(
    request: Request, binding: RequestBinding
) -> tuple[list[tuple[bytes, bytes]], bytes | None]:
    # Header values are encoded as UTF-8, because names may be any text.
    headers = [(name.encode(), text.encode()) for name, text in request.headers.items()]
    if binding.subject is not None:
        headers.append((b"X-Subject", binding.subject.encode()))
    if binding.session is not None:
        headers.append((b"X-Session-ID", binding.session.encode()))
    if binding.said_at is not None:
        headers.append((b"X-Said-At", binding.said_at.encode()))
    content = None
    if request.body is not None:
        is_json = request.record.content == "json"
        content = encode(request.body) if is_json else request.body
        own = (request.media_type or "application/json").encode()
        headers.append((b"Content-Type", own if is_json else _ANY_BYTES))
    return headers, content


@contextmanager
def _transport_errors() -> Iterator[None]:
    """Replaces httpx's exceptions by MemoryTransportError."""
    try:
        yield
    except (httpx.RequestError, httpx.InvalidURL) as error:
        never_sent = isinstance(error, (*_NEVER_SENT, httpx.InvalidURL))
        raise MemoryTransportError(_describe(error), sent=not never_sent) from error


def _describe(error: httpx.RequestError | httpx.InvalidURL) -> str:
    """Describes the server and the failure, without httpx's text, which may contain the API key."""
    if isinstance(error, httpx.InvalidURL):
        return "the server's address is not a URL"
    kind = type(error).__name__
    try:
        url = error.request.url
    except RuntimeError:
        return kind
    if isinstance(error, httpx.UnsupportedProtocol):
        return "the URL of the server must begin with http:// or https://"
    where = f"{url.scheme}://{url.netloc.decode('ascii', 'replace')}"
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return f"{where} cannot be reached; is the server running? ({kind})"
    return f"no whole reply came from {where} ({kind})"
