"""A keep-alive HTTP connection that costs little, so that two cores carry server and clients."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Protocol, cast

import msgspec

_HEAD_END = b"\r\n\r\n"
_LENGTH = b"content-length:"


class Unanswered(Exception):
    """The request was sent, and no reply came: nobody knows what became of it."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request; headers beside those every request of its client has."""

    method: str
    path: str
    body: dict[str, Any] | None = None
    if_match: int | None = None
    token: int | None = None
    idempotency_key: str | None = None

    def headers(self) -> dict[str, str]:
        """The headers that are its own."""
        headers = {}
        if self.if_match is not None:
            headers["If-Match"] = str(self.if_match)
        if self.token is not None:
            headers["Fencing-Token"] = str(self.token)
        if self.idempotency_key is not None:
            headers["Idempotency-Key"] = self.idempotency_key
        if self.body is not None:
            headers["Content-Type"] = "application/json"
        return headers

    def content(self) -> bytes:
        return b"" if self.body is None else msgspec.json.encode(self.body)


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole reply."""

    status: int
    body: bytes


class Channel(Protocol):
    """A way to a server, which one client uses for one request at a time."""

    async def ready(self) -> None:
        """Comes back when a request can be sent."""
        ...

    async def exchange(self, request: Request) -> Reply:
        """Sends a request. Raises Unanswered."""
        ...


class _Connection(asyncio.Protocol):
    """Puts replies together. Only ever waits for one."""

    def __init__(self) -> None:
        self.transport: asyncio.WriteTransport | None = None
        self.waiting: asyncio.Future[Reply] | None = None
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # The transports of uvloop do not inherit from those of asyncio.
        self.transport = cast(asyncio.WriteTransport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        if self.waiting is not None and not self.waiting.done():
            self.waiting.set_exception(Unanswered())

    def data_received(self, data: bytes) -> None:
        self._received += data
        head_end = self._received.find(_HEAD_END)
        if head_end < 0:
            return
        end = head_end + len(_HEAD_END) + self._length(head_end)
        if len(self._received) < end:
            return
        body = self._received[head_end + len(_HEAD_END) : end]
        reply = Reply(int(self._received[9:12]), body)
        self._received = self._received[end:]
        assert self.waiting is not None, "the server answered what was not asked"
        if not self.waiting.done():
            self.waiting.set_result(reply)

    def _length(self, head_end: int) -> int:
        start = self._received.lower().find(_LENGTH, 0, head_end)
        if start < 0:
            return 0
        end = self._received.index(b"\r\n", start)
        return int(self._received[start + len(_LENGTH) : end])


class Line:
    """A client's connection to a server process that may be gone at any moment and come back."""

    REPLY_LIMIT = 60.0
    CONNECT_LIMIT = 60.0

    def __init__(self, port: int, key: str, up: asyncio.Event) -> None:
        self._port = port
        self._up = up
        self._always = f"Host: 127.0.0.1\r\nX-API-Key: {key}\r\n"
        self._connection = _Connection()

    async def ready(self) -> None:
        """Comes back with a connection, once the server is up."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.CONNECT_LIMIT
        while self._connection.transport is None:
            async with asyncio.timeout_at(deadline):
                await self._up.wait()
                try:
                    _, self._connection = await loop.create_connection(
                        _Connection, "127.0.0.1", self._port
                    )
                except OSError:
                    # It has just been killed, which is about to be noticed.
                    await asyncio.sleep(0.01)

    async def exchange(self, request: Request) -> Reply:
        """Sends a request. Raises Unanswered; after REPLY_LIMIT, TimeoutError."""
        connection = self._connection
        transport = connection.transport
        assert transport is not None, "ready() was awaited just before"
        connection.waiting = asyncio.get_running_loop().create_future()
        transport.write(self._encode(request))
        async with asyncio.timeout(self.REPLY_LIMIT):
            return await connection.waiting

    def close(self) -> None:
        if self._connection.transport is not None:
            self._connection.transport.close()

    def _encode(self, request: Request) -> bytes:
        content = request.content()
        own = "".join(f"{name}: {text}\r\n" for name, text in request.headers().items())
        length = f"Content-Length: {len(content)}\r\n" if request.body is not None else ""
        head = f"{request.method} {request.path} HTTP/1.1\r\n{self._always}{own}{length}\r\n"
        return head.encode() + content
