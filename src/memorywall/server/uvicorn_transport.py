"""One system call per response.

uvicorn writes head and body of a response separately, and each write is a system call. For a short
response the second call is as expensive as the rest of the request. This transport sends all writes
of one event-loop iteration together.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from memorywall.server.slow_clients import Stage

_LARGEST_WRITE = 64 * 1024
_LAST_LOOK = 0.05
"""Seconds to read a request that has already arrived."""
LARGEST_HEAD = 64 * 1024
"""Bytes of the head of a request, besides those that arrive with its end."""
_HEAD_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n"
)


class CoalescingTransport:
    """A transport that collects the writes of an event-loop iteration and sends them at its end."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._later = loop.call_soon
        self._pieces: list[bytes] = []
        self._pending = 0

    def write(self, data: bytes) -> None:
        self._pieces.append(data)
        self._pending += len(data)
        if self._pending > _LARGEST_WRITE:
            # The real transport must see the data, so that it can pause writing.
            self._flush()
        elif len(self._pieces) == 1:
            self._later(self._flush)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._pieces:
            # A client that has left takes no more data; uvloop refuses writes after that.
            if not self._transport.is_closing():
                self._transport.write(b"".join(self._pieces))
            self._pieces.clear()
            self._pending = 0

    def __getattr__(self, name: str) -> Any:
        # Other attributes are those of the real transport.
        return getattr(self._transport, name)


class CoalescingProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol over a CoalescingTransport.

    The event loop runs timers before it reads. After a pause of the process, the keep-alive time
    of a connection may end while its next request is unread. The protocol therefore reads once more
    before it closes the connection.

    The protocol also limits the size of a head, which uvicorn does not, and reports what it waits
    for to the guard of slow clients.
    """

    _received = 0
    _head_size = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast(Any, CoalescingTransport(transport, self.loop)))

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_in_head():
            self._head_size += len(data)
            if self._head_size > LARGEST_HEAD:
                self.transport.write(_HEAD_TOO_LARGE)
                self.transport.close()
        elif self._head_size:
            self._head_size = 0

    def on_headers_complete(self) -> None:
        if self.parser.get_http_version() == "1.1" and not any(
            name == b"host" for name, _ in self.headers
        ):
            # RFC 9112 section 3.2. The parser reports the error, and the client gets 400.
            raise ValueError("a request of HTTP/1.1 has no Host")
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._received += len(body)
        super().on_body(body)

    def stage(self) -> tuple[Stage, object, int] | None:
        """See `slow_clients.ClientConnection`."""
        cycle = self.cycle
        if self.flow.write_paused:
            return Stage.REPLY, cycle, self.transport.get_write_buffer_size()
        if self._is_in_head():
            return Stage.HEAD, cycle, 0
        # A paused connection waits until the application takes what has arrived.
        if cycle.more_body and not self.flow.read_paused:
            return Stage.BODY, cycle, self._received
        return None

    def abort(self) -> None:
        """Closes the connection at once."""
        self.transport.abort()

    def _is_in_head(self) -> bool:
        """Whether the head of the next request is incomplete, or of the first not yet begun."""
        return self.cycle is None or self.cycle.scope is not self.scope

    def timeout_keep_alive_handler(self) -> None:
        # A request that is read meanwhile cancels this call, as it would have cancelled the timer.
        self.timeout_keep_alive_task = self.loop.call_later(
            _LAST_LOOK, super().timeout_keep_alive_handler
        )
