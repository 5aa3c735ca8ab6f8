"""The load generator's engine: a closed loop over keep-alive connections, as cheap as it gets.

Every connection has one request outstanding. A general HTTP client would cost several times what
the measured server does, so replies are read by hand: status line, `content-length`, body.
"""

from __future__ import annotations

import asyncio
import math
from array import array
from collections.abc import Sequence
from itertools import cycle, islice
from time import perf_counter
from typing import Protocol, cast

from benchmarks.plan import HOST, LoadResult

GRACE_SECONDS = 15.0
_HEAD_END = b"\r\n\r\n"
_LENGTH = b"content-length:"


class Conversation(Protocol):
    """The requests of one connection, and the checks of the responses."""

    def next_request(self) -> bytes | None:
        """Returns the next request; None at the end."""

    def accept_response(self, status: int, body: bytes) -> bool:
        """Reads the response to the last request; returns whether it is the expected one."""


class _Tally:
    """The counts of all connections of one run."""

    def __init__(self, callers: int, done: asyncio.Future[None]) -> None:
        self.latencies = array("d")
        self.deadline = math.inf
        self.errors = 0
        self.first_error = ""
        self._talking = callers
        self._done = done

    def fail(self, reason: str) -> None:
        """Count an error; the first one is kept to be shown."""
        self.errors += 1
        self.first_error = self.first_error or reason

    def leave(self) -> None:
        """One connection has said all it had to say."""
        self._talking -= 1
        if not self._talking and not self._done.done():
            self._done.set_result(None)


class _Caller(asyncio.Protocol):
    """One connection with at most one request outstanding."""

    __slots__ = ("_buffer", "_conversation", "_sent_at", "_talking", "_tally", "_transport")

    def __init__(self, conversation: Conversation, tally: _Tally) -> None:
        self._conversation = conversation
        self._tally = tally
        self._buffer = b""
        self._sent_at = 0.0
        self._talking = True
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # The transports of uvloop do not inherit from those of asyncio.
        self._transport = cast(asyncio.WriteTransport, transport)

    def speak(self) -> None:
        """Send the next request."""
        if self._transport is None:
            self._give_up("never connected")
            return
        request = self._conversation.next_request()
        if request is None:
            self._leave()
            return
        self._sent_at = perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        arrived_at = perf_counter()
        if self._buffer:
            data = self._buffer + data
        head_end = data.find(_HEAD_END)
        if head_end < 0:
            self._buffer = data
            return
        body_start = head_end + 4
        status = int(data[9:12])
        # A reply without content has no length either.
        body_end = body_start + (0 if status == 204 else _content_length(data, head_end))
        if body_end < body_start:
            self._give_up("a reply without content-length")
            return
        if len(data) < body_end:
            self._buffer = data
            return
        self._buffer = b""
        tally = self._tally
        tally.latencies.append(arrived_at - self._sent_at)
        if not self._conversation.accept_response(status, data[body_start:body_end]):
            tally.fail(f"status {status}: {data[body_start : body_start + 200]!r}")
        if arrived_at < tally.deadline:
            self.speak()
        else:
            self._leave()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._talking:
            self._give_up(f"connection lost: {exc or 'closed by the server'}")

    def close(self) -> None:
        """Hang up. A connection that is still waiting for its reply counts as an error."""
        if self._talking:
            self._give_up("no reply in time")
        if self._transport is not None:
            self._transport.close()

    def _give_up(self, reason: str) -> None:
        self._tally.fail(reason)
        self._leave()

    def _leave(self) -> None:
        if self._talking:
            self._talking = False
            self._tally.leave()


def _content_length(data: bytes, head_end: int) -> int:
    """The length a reply's head announces, or -1."""
    start = data.find(_LENGTH, 0, head_end)
    if start < 0:
        # Servers we measure write names in lower case, so the copy below is the rare way.
        start = data[:head_end].lower().find(_LENGTH)
        if start < 0:
            return -1
    return int(data[start + len(_LENGTH) : data.index(b"\r\n", start)])


async def drive(
    ports: Sequence[int],
    conversations: Sequence[Conversation],
    seconds: float,
    at_most: float = math.inf,
) -> LoadResult:
    """Hold all conversations at once, as many on each port as on the others, and count.

    No new request is sent after `seconds`. With `math.inf` the conversations run until they have
    nothing left to say; `at_most` bounds even those.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()
    tally = _Tally(len(conversations), done)
    callers = [_Caller(conversation, tally) for conversation in conversations]
    waiting = iter(callers)
    await asyncio.gather(
        *(
            loop.create_connection(lambda: next(waiting), HOST, port)
            for port in islice(cycle(ports), len(callers))
        )
    )
    start = perf_counter()
    tally.deadline = start + seconds
    for caller in callers:
        caller.speak()
    # The wait ends by itself for connections that never get their reply.
    await asyncio.wait([done], timeout=min(seconds + GRACE_SECONDS, at_most))
    elapsed = perf_counter() - start
    for caller in callers:
        caller.close()
    return LoadResult(
        requests=len(tally.latencies),
        seconds=elapsed,
        p50=percentile(tally.latencies, 0.50) * 1000,
        p99=percentile(tally.latencies, 0.99) * 1000,
        errors=tally.errors,
        first_error=tally.first_error,
    )


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of all values do not exceed; NaN of none."""
    if not values:
        return math.nan
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
