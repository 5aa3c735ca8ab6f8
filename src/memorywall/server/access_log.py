"""The access log: one JSON object per request, on a line of its own.

A line names the principal and the operation. It contains no path, query, header, body or API key,
because those may hold names and values of memory.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import lru_cache

import msgspec

from memorywall.records.clock import Clock, format_instant
from memorywall.server.exchange import Exchange

ACCESS_LOGGER = "memorywall.access"
_LATEST = 0.1
"""Seconds that a line waits at most. The lines of that time are written together, because a system
call per request would cost more than the line."""
_MOST_CACHED = 1024
_log = logging.getLogger(ACCESS_LOGGER)


class _Request(msgspec.Struct, frozen=True, omit_defaults=True):
    """The fields of a line for a request besides its ids and its reply.

    operation: the operation's name; `rpc` for JSON-RPC; null for pages and unknown paths
    tenant, principal: the caller, null for a request without a valid key and for public operations
    calls: the operations of a JSON-RPC request
    acting: the principal of the key, if it acts for another one
    """

    operation: str | None
    tenant: str | None
    principal: str | None
    calls: Sequence[str] = ()
    acting: str = ""


class AccessLog:
    """Writes the line of each request to the logger `memorywall.access`, at the level INFO.

    A line has the fields of `_Request` and

    time: the end of the request
    request_id, trace_id, parent_id, span_id: its ids; those of a trace only if it belongs to one
    status: the status of the reply; 499 if the client left before
    ms: milliseconds until the end of the reply
    bytes: bytes of the reply's body

    A record of the logger has the lines of up to a tenth of a second.

    write_lines: writes complete lines; by default to the logger
    """

    def __init__(
        self, clock: Clock, write_lines: Callable[[str], None] = lambda lines: _log.info(lines)
    ) -> None:
        self._clock = clock
        self._write_lines = write_lines
        self._lines: list[str] = []
        # Most requests repeat the operation and the caller of an earlier one.
        self._texts = lru_cache(_MOST_CACHED)(_text)

    def write(self, exchange: Exchange, seconds: float) -> None:
        """Adds the line of a request that has ended.

        seconds: the duration of the request
        """
        principal, trace = exchange.principal, exchange.trace
        operation, calls = exchange.operation or None, exchange.calls
        if principal is None:
            text = self._texts(operation, None, None, calls, "")
        else:
            text = self._texts(operation, principal.tenant, principal.id, calls, principal.acting)
        # Ids consist of characters that stand for themselves in JSON.
        line = (
            f'{{"time":"{format_instant(self._clock.now())}","level":"info",'
            f'"logger":"{ACCESS_LOGGER}","message":"request","request_id":"{exchange.request_id}",'
            f'{text},"status":{exchange.status},"ms":{seconds * 1000:.3f},"bytes":{exchange.size}'
        )
        if trace is not None:
            line += (
                f',"trace_id":"{trace.trace_id}","parent_id":"{trace.parent_id}",'
                f'"span_id":"{trace.span_id}"'
            )
        if not self._lines:
            asyncio.get_running_loop().call_later(_LATEST, self.flush)
        self._lines.append(line + "}")

    def flush(self) -> None:
        """Writes the waiting lines; the server calls it at its end."""
        if self._lines:
            lines, self._lines = self._lines, []
            self._write_lines("\n".join(lines))


def _text(
    operation: str | None,
    tenant: str | None,
    principal: str | None,
    calls: Sequence[str],
    acting: str,
) -> str:
    """The fields of `_Request` as JSON without the braces."""
    return msgspec.json.encode(_Request(operation, tenant, principal, calls, acting))[1:-1].decode()
