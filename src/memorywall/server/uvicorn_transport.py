"""One system call per response.

uvicorn writes head and body of a response separately, and each write is a system call. For a short
response the second call is as expensive as the rest of the request. This transport sends all writes
of one event-loop iteration together.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_LARGEST_WRITE = 64 * 1024
_LAST_LOOK = 0.05
"""Seconds to read a request that has already arrived."""


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
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast(Any, CoalescingTransport(transport, self.loop)))

    def timeout_keep_alive_handler(self) -> None:
        # A request that is read meanwhile cancels this call, as it would have cancelled the timer.
        self.timeout_keep_alive_task = self.loop.call_later(
            _LAST_LOOK, super().timeout_keep_alive_handler
        )
