"""Sends responses and streams over ASGI."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import aclosing
from math import ceil
from typing import Any, TypeVar

from starlette.types import Receive, Send

from memorywall.records.entry import Entry
from memorywall.records.errors import MemorywallError, RateLimitedError, UnavailableError
from memorywall.records.lease import Lease
from memorywall.wire.entries import view
from memorywall.wire.leases import held_lease_view
from memorywall.wire.operation import Operation
from memorywall.wire.results import (
    Header,
    HttpResponse,
    RenderingTimeoutError,
    ResultStream,
    StreamPosition,
    StreamProblem,
    encode,
    lists_of,
    render,
)
from memorywall.wire.service import problem

Result = TypeVar("Result")

_MOST_AT_ONCE = 1024 * 1024
"""Bytes of a body that are sent at once."""
_LONGEST_RENDERING = 0.003
"""Seconds of the event loop's time after which a result is rendered in a thread."""
_PROBLEM = b"application/problem+json"
_MEDIA = {"lines": b"application/x-ndjson", "events": b"text/event-stream"}
# Memory is private to the caller: caches must not store it.
_ALWAYS: tuple[Header, ...] = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
)


async def render_result(operation: Operation, result: Any, known: str | None) -> HttpResponse:
    """See `results.render`; what takes long is rendered in a thread."""
    try:
        return render(operation, result, known, seconds=_LONGEST_RENDERING)
    except RenderingTimeoutError:
        return await asyncio.to_thread(_render_and_free, operation, result, known)


def _render_and_free(operation: Operation, result: Any, known: str | None) -> HttpResponse:
    """Renders a result in a thread and frees its elements there: millions of objects take long."""
    response = render(operation, result, known)
    for part in lists_of(result):
        part.clear()
    return response


async def send_response(response: HttpResponse, send: Send) -> None:
    """Sends a complete response."""
    headers = [
        (b"content-type", response.media),
        (b"content-length", b"%d" % len(response.body)),
        *_ALWAYS,
        *response.headers,
    ]
    if response.status in (204, 304):
        headers = [*_ALWAYS, *response.headers]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    body = response.body
    if len(body) > _MOST_AT_ONCE:
        last = (len(body) - 1) // _MOST_AT_ONCE * _MOST_AT_ONCE
        for begin in range(0, last, _MOST_AT_ONCE):
            piece = body[begin : begin + _MOST_AT_ONCE]
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            # A fast client takes everything at once. Without this pause, others would wait.
            await asyncio.sleep(0)
        body = body[last:]
    await send({"type": "http.response.body", "body": body})


async def _send_stream(stream: ResultStream, send: Send, request_id: str) -> None:
    headers = [(b"content-type", _MEDIA[stream.media]), *_ALWAYS]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    async for piece in _pieces(stream, request_id):
        await send({"type": "http.response.body", "body": piece, "more_body": True})
        # Reads do not suspend. Without this pause, a long export would block all other requests.
        await asyncio.sleep(0)
    await send({"type": "http.response.body", "body": b""})


async def _pieces(stream: ResultStream, request_id: str) -> AsyncIterator[bytes]:
    async with aclosing(stream.parts) as parts:
        async for part in parts:
            if not part and stream.media == "events":
                yield b": alive\n\n"
            lines: list[bytes] = []
            size = 0
            for one in part:
                line = encode(one) + b"\n" if stream.media == "lines" else _frame(one, request_id)
                lines.append(line)
                size += len(line)
                if size > _MOST_AT_ONCE:
                    yield b"".join(lines)
                    lines, size = [], 0
            yield b"".join(lines)


def _frame(one: Any, request_id: str) -> bytes:
    """A part of a stream of events as Server-Sent Events."""
    if type(one) is StreamPosition:
        # Clients take an id without data as the last event id, and dispatch nothing.
        return b"id: %d\n\n" % one.seq
    if type(one) is StreamProblem:
        return b"event: problem\ndata: %b\n\n" % encode(problem_document(one.error, request_id))
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (one.seq, one.type.encode(), encode(one))


async def stream_while_wanted(
    stream: ResultStream, receive: Receive, send: Send, stopping: asyncio.Event, request_id: str
) -> None:
    """Sends a stream until its end, until the client disconnects, or, for an endless stream, until
    `stopping` is set."""
    sending = asyncio.ensure_future(_send_stream(stream, send, request_id))
    reasons: list[asyncio.Future[Any]] = [asyncio.ensure_future(_wait_for_disconnect(receive))]
    if stream.endless:
        reasons.append(asyncio.ensure_future(stopping.wait()))
    try:
        await asyncio.wait({sending, *reasons}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (sending, *reasons):
            if not task.done():
                task.cancel()
        outcome, *_ = await asyncio.gather(sending, *reasons, return_exceptions=True)
    if isinstance(outcome, asyncio.CancelledError) and stopping.is_set():
        await send({"type": "http.response.body", "body": b""})
    elif isinstance(outcome, Exception):
        raise outcome


async def run_while_wanted(
    running: Coroutine[Any, Any, Result], receive: Receive, stopping: asyncio.Event
) -> Result:
    """Returns the result of a request that may wait, such as a long poll. Cancels it and raises
    UnavailableError if the client disconnects or `stopping` is set."""
    tasks: list[asyncio.Future[Any]] = [
        asyncio.ensure_future(one)
        for one in (running, _wait_for_disconnect(receive), stopping.wait())
    ]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks[1:] if tasks[0].done() else tasks:
            task.cancel()
        outcome, *_ = await asyncio.gather(*tasks, return_exceptions=True)
    if isinstance(outcome, asyncio.CancelledError):
        raise UnavailableError("the server is stopping; send the request again")
    if isinstance(outcome, BaseException):
        raise outcome
    result: Result = outcome
    return result


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def problem_response(error: MemorywallError, request_id: str) -> HttpResponse:
    """An error as an RFC 9457 problem document.

    request_id: the id of the refused request
    """
    headers: tuple[Header, ...] = ()
    if error.status == 401:
        headers = ((b"www-authenticate", b"Bearer"),)
    elif isinstance(error, UnavailableError):
        headers = ((b"retry-after", b"1"),)
    elif isinstance(error, RateLimitedError):
        # The header is in whole seconds.
        headers = ((b"retry-after", b"%d" % ceil(error.retry_after or 1)),)
    document = problem_document(error, request_id)
    return HttpResponse(error.status, encode(document), headers, _PROBLEM)


def problem_document(error: MemorywallError, request_id: str) -> dict[str, Any]:
    """The members of a problem document, with records in their wire form."""
    document = problem(error)
    document["request_id"] = request_id
    if isinstance(document.get("current"), Entry):
        document["current"] = view(document["current"])
    if isinstance(document.get("existing_lease"), Lease):
        document["existing_lease"] = held_lease_view(document["existing_lease"])
    return document
