"""Streams the events of a log as they are committed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import NamedTuple

from memorywall.records.event import Event
from memorywall.service.runner.operation_runner import OperationTransactions

KEEP_ALIVE = 15.0
"""Seconds without events until a stream sends a keep-alive."""
PAGE = 500


class FeedPage(NamedTuple):
    """Some events of a log, in order.

    position: the `seq` up to which the log was examined
    is_last: whether the log has no further events now
    """

    events: list[Event]
    position: int
    is_last: bool

    @classmethod
    def of(cls, events: list[Event], after: int) -> FeedPage:
        """Returns the page of a log that contains all events, at most `PAGE` of them."""
        return cls(events, events[-1].seq if events else after, len(events) < PAGE)


async def follow(
    transactions: OperationTransactions,
    look: Callable[[int], Awaitable[FeedPage]],
    after: int,
    wait: float | None = None,
) -> AsyncGenerator[FeedPage, None]:
    """Yields the pages that `look` finds, each event once and in order; a page without events is a
    keep-alive.

    look: returns the events after a sequence number; raises when the caller has lost access
    after: the sequence number to start after
    wait: seconds until the feed ends at the end of the log; None for a feed without end
    """
    loop = asyncio.get_running_loop()
    end = None if wait is None else loop.time() + wait
    watch = transactions.service.store.watch(transactions.principal.tenant)
    try:
        while True:
            page = await look(after)
            after = page.position
            yield page
            if not page.is_last:
                # Reads do not suspend: other requests run between two pages of a long log.
                await asyncio.sleep(0)
                continue
            rest = KEEP_ALIVE if end is None else min(KEEP_ALIVE, end - loop.time())
            if rest <= 0:
                return
            await watch.changed(rest)
    finally:
        watch.close()
