"""Event logs as Server-Sent Events, whosever log it is."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing

from memorywall.records.errors import MemorywallError, RequestError
from memorywall.records.event import Event
from memorywall.server.dispatch import Call
from memorywall.server.replies import Stream, encode
from memorywall.wire.agents import EventView


def wants_stream(call: Call) -> bool:
    """Whether the client would rather have a stream than a page."""
    return b"text/event-stream" in call.headers.get(b"accept", b"")


def start_of(call: Call, after: int) -> int:
    """After which event a stream goes on: the last the client has seen, or `after`."""
    last = call.headers.get(b"last-event-id")
    if not last:
        return after
    if not last.isdigit() or len(last) > 18:
        raise RequestError("`Last-Event-ID` must be the id of an event of this stream")
    return int(last)


async def event_stream(
    call: Call,
    pages: AsyncGenerator[list[Event], None],
    view: Callable[[Event], EventView],
) -> Stream:
    """A stream of all events that `pages` gives, until the key or the access is gone."""
    # The first page is read here, so that a refusal is still a problem document.
    first = await anext(pages)

    async def pieces() -> AsyncIterator[bytes]:
        async with aclosing(pages):
            yield _sse(first, view)
            try:
                async for events in pages:
                    await call.authenticate_again()
                    yield _sse(events, view)
            except MemorywallError:
                return

    return Stream(b"text/event-stream", pieces(), endless=True)


def _sse(events: list[Event], view: Callable[[Event], EventView]) -> bytes:
    if not events:
        return b": alive\n\n"
    return b"".join(
        b"id: %d\nevent: %b\ndata: %b\n\n" % (event.seq, event.type.encode(), encode(view(event)))
        for event in events
    )
