"""HTTP/1.1 connections for blocking requests with whole responses.

A request over httpx takes some 0.6 ms of processor time, several times that of this module, and is
sent in two parts. What is unusual stays with httpx: streams, proxies, credentials in the URL.
"""

from __future__ import annotations

import re
import select
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from urllib.request import getproxies

import httptools
import httpx

_IDLE_SECONDS = 5.0
"""Servers close a connection that is idle for longer; httpx does not use it any more either."""
_MOST_IDLE = 20
_CHUNK = 65_536
_LEAST_FINAL = 200
"""Smaller statuses are those of interim responses."""
_PORTS = {"http": 80, "https": 443}
_SENT_WITH_LENGTH = frozenset({"POST", "PUT", "PATCH"})
_POLL: Callable[[], select.poll] | None = getattr(select, "poll", None)
"""Absent on Windows."""
_HEADER_VALUE = re.compile(rb"(?:[^\x00\s]+(?:[ \t]+[^\x00\s]+)*)?")
"""What a header may have; httpx explains what is wrong with others."""
Headers = Sequence[tuple[bytes, bytes]]


class Connections:
    """The connections of this process to a server, for any number of threads. A thread uses one at
    a time, the one that was used last if it is idle.

    base_url: the URL of the server
    headers: of all requests
    timeout: seconds to connect, and to wait for each part of a request or a response
    verify: the TLS context
    """

    def __init__(
        self,
        base_url: str,
        headers: Mapping[bytes, bytes],
        timeout: float,
        verify: ssl.SSLContext,
    ) -> None:
        self._url = url = httpx.URL(base_url)
        self._prefix = url.raw_path.rstrip(b"/")
        self._defaults = _lines(((b"Host", url.netloc), *headers.items()))
        self._timeout = timeout
        self._context = verify if url.scheme == "https" else None
        self._idle: deque[tuple[socket.socket, float]] = deque()

    def send(
        self, method: str, target: str, headers: Headers, content: bytes | None
    ) -> tuple[int, bytes]:
        """Returns the status and the body of a response. Raises the exceptions of httpx."""
        if content is None and method in _SENT_WITH_LENGTH:
            content = b""
        if content is not None:
            headers = (*headers, (b"Content-Length", b"%d" % len(content)))
        first = b"%s %s%s HTTP/1.1\r\n" % (method.encode(), self._prefix, target.encode())
        message = b"".join((first, self._defaults, _lines(headers), b"\r\n", content or b""))
        try:
            connection = self._take()
            try:
                status, body, stays = _exchange(connection, message)
            except BaseException:
                connection.close()
                raise
        except httpx.RequestError as error:
            error.request = httpx.Request(method, self._url)
            raise
        if stays and len(self._idle) < _MOST_IDLE:
            self._idle.append((connection, time.monotonic()))
        else:
            connection.close()
        return status, body

    def close(self) -> None:
        """Closes the connections that are idle."""
        while self._idle:
            self._idle.pop()[0].close()

    def _take(self) -> socket.socket:
        """Returns a connection that is idle and open, or a new one."""
        while True:
            try:
                connection, since = self._idle.pop()
            except IndexError:
                return self._connect()
            # An idle connection has something to read when the server has closed it.
            if time.monotonic() - since < _IDLE_SECONDS and not _is_readable(connection):
                return connection
            connection.close()

    def _connect(self) -> socket.socket:
        host, port = self._url.raw_host.decode("ascii"), self._url.port
        opened: socket.socket | None = None
        try:
            opened = socket.create_connection(
                (host, port or _PORTS[self._url.scheme]), self._timeout
            )
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._context is None:
                return opened
            return self._context.wrap_socket(opened, server_hostname=host)
        except OSError as error:
            if opened is not None:
                opened.close()
            kind = httpx.ConnectTimeout if isinstance(error, TimeoutError) else httpx.ConnectError
            raise kind(str(error)) from error


def can_connect(
    base_url: str, headers: Mapping[bytes, bytes], timeout: float, verify: ssl.SSLContext
) -> bool:
    """Returns whether `Connections` can be made of these; httpx explains what is wrong with others,
    and knows proxies and credentials."""
    try:
        url = httpx.URL(base_url)
    except (httpx.InvalidURL, TypeError):
        return False
    is_plain = url.scheme in _PORTS and bool(url.host) and not url.userinfo and not url.query
    has_timeout = isinstance(timeout, int | float) and timeout > 0
    return is_plain and has_timeout and are_plain(headers.values()) and not getproxies()


def are_plain(values: Iterable[bytes]) -> bool:
    """Returns whether these can be values of headers."""
    return all(map(_HEADER_VALUE.fullmatch, values))


def _lines(headers: Headers) -> bytes:
    return b"".join([b"%s: %s\r\n" % header for header in headers])


class _ParsedReply:
    """What the parser has found in a response, after interim responses such as 100 Continue."""

    def __init__(self) -> None:
        self.body: list[bytes] = []
        self.on_message_begin()

    def on_message_begin(self) -> None:
        self.has_headers = self.is_whole = self.has_end = self.closes = False

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name in (b"content-length", b"transfer-encoding"):
            self.has_end = True
        elif name == b"connection" and value.lower() == b"close":
            self.closes = True

    def on_headers_complete(self) -> None:
        self.has_headers = True

    def on_body(self, part: bytes) -> None:
        self.body.append(part)

    def on_message_complete(self) -> None:
        self.is_whole = True


def _exchange(connection: socket.socket, message: bytes) -> tuple[int, bytes, bool]:
    """Returns the status and body of a response, and whether the connection can be used again."""
    failed = _write(connection, message)
    reply = _ParsedReply()
    parser = httptools.HttpResponseParser(reply)
    while not (reply.is_whole and parser.get_status_code() >= _LEAST_FINAL):
        received = _read(connection)
        if received:
            try:
                parser.feed_data(received)
            except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
                raise httpx.RemoteProtocolError(str(error)) from error
        elif _ends_here(reply) and parser.get_status_code() >= _LEAST_FINAL:
            break
        else:
            raise httpx.RemoteProtocolError("the connection ended too early") from failed
    is_open = reply.is_whole and not reply.closes and parser.get_http_version() == "1.1"
    return parser.get_status_code(), b"".join(reply.body), is_open and failed is None


def _ends_here(reply: _ParsedReply) -> bool:
    """Returns whether the end of the connection is that of the body, whose length is not told."""
    return reply.has_headers and not reply.has_end


def _write(connection: socket.socket, message: bytes) -> OSError | None:
    """Sends a request. Returns the error of a connection that the server has closed: it may have
    answered before."""
    left = memoryview(message)
    try:
        # Unlike `sendall`, this waits for each part.
        while left:
            left = left[connection.send(left) :]
    except TimeoutError as error:
        raise httpx.WriteTimeout(str(error)) from error
    except OSError as error:
        return error
    return None


def _read(connection: socket.socket) -> bytes:
    try:
        return connection.recv(_CHUNK)
    except TimeoutError as error:
        raise httpx.ReadTimeout(str(error)) from error
    except OSError as error:
        raise httpx.ReadError(str(error)) from error


def _is_readable(connection: socket.socket) -> bool:
    if _POLL is None:
        return bool(select.select([connection], [], [], 0)[0])
    polled = _POLL()
    polled.register(connection, select.POLLIN)
    return bool(polled.poll(0))
