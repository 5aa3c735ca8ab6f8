"""One write per reply.

uvicorn hands the head and the body of a reply to the transport one after the other, and each
becomes a system call. On a short reply the second call costs as much as all the rest of it, so
what is written within one turn of the event loop is sent together.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_MOST_GATHERED = 64 * 1024
_LAST_LOOK = 0.05
"""Seconds in which a request that has long arrived is read."""


class GatheringTransport:
    """A transport that sends at the end of the turn what was written during it."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._later = loop.call_soon
        self._pieces: list[bytes] = []
        self._pending = 0

    def write(self, data: bytes) -> None:
        self._pieces.append(data)
        self._pending += len(data)
        if self._pending > _MOST_GATHERED:
            # The real transport has to see it, so that it can ask for a pause.
            self._flush()
        elif len(self._pieces) == 1:
            self._later(self._flush)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._pieces:
            self._transport.write(b"".join(self._pieces))
            self._pieces.clear()
            self._pending = 0

    def __getattr__(self, name: str) -> Any:
        # Everything else is the real transport's.
        return getattr(self._transport, name)


class GatheringProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol over a GatheringTransport.

    Timers come before the network. So where a process has stood still, the time of a connection may
    be over while the next request lies there unread; it is looked for before the connection ends.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast(Any, GatheringTransport(transport, self.loop)))

    def timeout_keep_alive_handler(self) -> None:
        # What is read meanwhile cancels this as it would have cancelled the timer.
        self.timeout_keep_alive_task = self.loop.call_later(
            _LAST_LOOK, super().timeout_keep_alive_handler
        )
