"""Streams the events of a log as they are committed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable

from memorywall.records.event import Event
from memorywall.service.runner import OperationSession

KEEP_ALIVE = 15.0
"""Seconds without events until a stream sends a keep-alive."""
PAGE = 500


async def follow(
    session: OperationSession, look: Callable[[int], Awaitable[list[Event]]], after: int
) -> AsyncGenerator[list[Event], None]:
    """Yields the events that `look` finds, each once and in order; an empty list is a keep-alive.

    look: returns up to `PAGE` events after a sequence number, in order; raises when the caller
        has lost access
    after: the sequence number to start after
    """
    watch = session.service.store.watch(session.principal.tenant)
    try:
        while True:
            events = await look(after)
            if events:
                after = events[-1].seq
            yield events
            if len(events) < PAGE:
                await watch.changed(KEEP_ALIVE)
    finally:
        watch.close()
