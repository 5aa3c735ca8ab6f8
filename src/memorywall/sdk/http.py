"""Drivers that send requests over HTTP, with httpx."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import cache
from urllib.request import getproxies

import httpx

from memorywall.sdk.effects import Open, Request, Response
from memorywall.sdk.errors import MemoryTransportError
from memorywall.sdk.executors import AwaitingDriver, BlockingDriver, steady_clock
from memorywall.sdk.retry import encode

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


class Driver(BlockingDriver):
    """Sends requests over HTTP and blocks until the responses arrive."""

    def __init__(
        self,
        http: httpx.Client,
        *,
        pause: Callable[[float], object] = time.sleep,
        clock: Callable[[], float] = steady_clock,
        subject: str | None = None,
    ) -> None:
        super().__init__(pause=pause, clock=clock, subject=subject)
        self.http = http

    def send(self, request: Request) -> Response:
        with _transport_errors():
            reply = self.http.send(_build(self.http, request, self.subject, self.session))
        return Response(reply.status_code, reply.content)

    def open(self, step: Open) -> tuple[Response, _Stream]:
        with _transport_errors():
            opened = self.http.send(
                _build(self.http, step, self.subject, self.session), stream=True
            )
            body = opened.read() if opened.status_code >= 300 else b""
        return Response(opened.status_code, body), _Stream(opened)

    def close(self) -> None:
        self.http.close()

    @property
    def is_closed(self) -> bool:
        return self.http.is_closed


class AsyncDriver(AwaitingDriver):
    """Sends requests over HTTP and awaits the responses."""

    def __init__(
        self,
        http: httpx.AsyncClient,
        *,
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
        clock: Callable[[], float] = steady_clock,
        subject: str | None = None,
    ) -> None:
        super().__init__(pause=pause, clock=clock, subject=subject)
        self.http = http

    async def send(self, request: Request) -> Response:
        with _transport_errors():
            reply = await self.http.send(_build(self.http, request, self.subject, self.session))
        return Response(reply.status_code, reply.content)

    async def open(self, step: Open) -> tuple[Response, _AsyncStream]:
        with _transport_errors():
            opened = await self.http.send(
                _build(self.http, step, self.subject, self.session), stream=True
            )
            body = await opened.aread() if opened.status_code >= 300 else b""
        return Response(opened.status_code, body), _AsyncStream(opened)

    async def close(self) -> None:
        await self.http.aclose()

    @property
    def is_closed(self) -> bool:
        return self.http.is_closed


class _Stream:
    """The chunks of a response."""

    def __init__(self, opened: httpx.Response) -> None:
        self._opened = opened
        self._pieces = opened.iter_bytes()

    def read(self) -> bytes | None:
        with _transport_errors():
            return next(self._pieces, None)

    def close(self) -> None:
        self._opened.close()


class _AsyncStream:
    """The chunks of a response."""

    def __init__(self, opened: httpx.Response) -> None:
        self._opened = opened
        self._pieces: AsyncIterator[bytes] = opened.aiter_bytes()

    async def read(self) -> bytes | None:
        with _transport_errors():
            return await anext(self._pieces, None)

    async def close(self) -> None:
        await self._opened.aclose()


def _build(
    http: httpx.Client | httpx.AsyncClient,
    step: Request | Open,
    subject: str | None,
    session: str | None,
) -> httpx.Request:
    if isinstance(step, Open):
        request = step.request
        timeout = httpx.Timeout(http.timeout.connect, read=step.silence)
    else:
        request, timeout = step, http.timeout
    # Header values are encoded as UTF-8, because names may be any text.
    headers = [(name.encode(), text.encode()) for name, text in request.headers.items()]
    if subject is not None:
        headers.append((b"X-Subject", subject.encode()))
    if session is not None:
        headers.append((b"X-Session-ID", session.encode()))
    content = None
    if request.body is not None:
        is_json = request.record.content == "json"
        content = encode(request.body) if is_json else request.body
        own = (request.media_type or "application/json").encode()
        headers.append((b"Content-Type", own if is_json else _ANY_BYTES))
    return http.build_request(
        request.method, request.target, content=content, headers=headers, timeout=timeout
    )


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
