"""Event logs as endless results, for an agent's stream and an intent's log."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from memorywall.records.errors import MemorywallError
from memorywall.records.event import Event
from memorywall.service.runner import OperationSession
from memorywall.wire.agents import EventResponse
from memorywall.wire.results import ResultStream


async def event_stream(
    session: OperationSession,
    pages: AsyncGenerator[list[Event], None],
    view: Callable[[Event], EventResponse],
) -> ResultStream:
    """Returns a stream of all events from `pages`, until the key or the access is lost."""
    # The first page is read here, so that a refusal is returned as a problem document.
    first = await anext(pages)

    async def parts() -> AsyncGenerator[list[EventResponse], None]:
        async with aclosing(pages):
            yield [view(event) for event in first]
            try:
                async for events in pages:
                    await session.call.reauthenticate()
                    yield [view(event) for event in events]
            except MemorywallError:
                return

    return ResultStream(parts(), "events", endless=True)
