"""The access log: one JSON object per request, on a line of its own.

A line names the principal and the operation. It contains no path, query, header, body or API key,
because those may hold names and values of memory.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

import msgspec

from memorywall.records.clock import Clock, format_instant
from memorywall.server.exchange import Exchange

ACCESS_LOGGER = "memorywall.access"
_LATEST = 0.1
"""Seconds that a line waits at most. The lines of that time are written together, because a system
call per request would cost more than the line."""
_log = logging.getLogger(ACCESS_LOGGER)


class AccessLine(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One request.

    time: the end of the request
    operation: the operation's name; `rpc` for JSON-RPC; null for pages and unknown paths
    calls: the operations of a JSON-RPC request
    principal, tenant: the caller, null for a request without a valid key and for public operations
    acting: the principal of the key, if it acts for another one
    status: the status of the reply; 499 if the client left before
    ms: milliseconds until the end of the reply
    bytes: bytes of the reply's body
    """

    time: str
    level: str
    logger: str
    message: str
    request_id: str
    operation: str | None
    calls: Sequence[str] = ()
    tenant: str | None
    principal: str | None
    acting: str = ""
    status: int
    ms: float
    bytes: int
    trace_id: str | None = None
    parent_id: str | None = None
    span_id: str | None = None


class AccessLog:
    """Writes the line of each request to the logger `memorywall.access`, at the level INFO.

    A record of the logger has the lines of up to a tenth of a second.

    write_lines: writes complete lines; by default to the logger
    """

    def __init__(
        self, clock: Clock, write_lines: Callable[[str], None] = lambda lines: _log.info(lines)
    ) -> None:
        self._clock = clock
        self._write_lines = write_lines
        self._encode = msgspec.json.Encoder().encode
        self._lines: list[bytes] = []

    def write(self, exchange: Exchange, seconds: float) -> None:
        """Adds the line of a request that has ended.

        seconds: the duration of the request
        """
        principal, trace = exchange.principal, exchange.trace
        line = AccessLine(
            time=format_instant(self._clock.now()),
            level="info",
            logger=ACCESS_LOGGER,
            message="request",
            request_id=exchange.request_id,
            operation=exchange.operation or None,
            calls=exchange.calls,
            tenant=None if principal is None else principal.tenant,
            principal=None if principal is None else principal.id,
            acting="" if principal is None else principal.acting,
            status=exchange.status,
            ms=round(seconds * 1000, 3),
            bytes=exchange.size,
        )
        if trace is not None:
            line.trace_id, line.parent_id, line.span_id = trace[:3]
        if not self._lines:
            asyncio.get_running_loop().call_later(_LATEST, self.flush)
        self._lines.append(self._encode(line))

    def flush(self) -> None:
        """Writes the waiting lines; the server calls it at its end."""
        if self._lines:
            lines, self._lines = self._lines, []
            self._write_lines(b"\n".join(lines).decode())
