"""Streams the events of a log as they are committed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager, nullcontext
from typing import NamedTuple

from memorywall.records.errors import RateLimitedError
from memorywall.records.event import Event
from memorywall.service.feeds.log_reader import KEEP_ALIVE, PAGE, follow_log
from memorywall.service.runner.operation_runner import OperationTransactions

_RETRY_AFTER = 5.0


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


ReadPage = Callable[[int, Sequence[Event] | None], Awaitable[FeedPage]]


async def follow(
    transactions: OperationTransactions,
    read_page: ReadPage,
    after: int,
    wait: float | None = None,
) -> AsyncGenerator[FeedPage, None]:
    """Yields the pages that `read_page` finds, each event once and in order; a page without events
    is a keep-alive.

    read_page: returns the events after a sequence number, from those that were read for all feeds
        of the tenant or, for None, from the log; raises when the caller has lost access
    after: the sequence number to start after
    wait: seconds until the feed ends at the end of the log; None for a feed without end

    Raises RateLimitedError if the principal or the tenant has too many feeds that wait.
    """
    with nullcontext() if wait == 0 else _count_feed(transactions):
        async with aclosing(_pages(transactions, read_page, after, wait)) as pages:
            async for page in pages:
                yield page


@contextmanager
def _count_feed(transactions: OperationTransactions) -> Iterator[None]:
    """Counts an open feed. Raises RateLimitedError at the limits: each write of a tenant wakes its
    feeds, which then read the log one after the other."""
    service, principal = transactions.service, transactions.principal
    settings, feeds = service.settings, service.feeds
    places = ((principal.tenant, principal.id), (principal.tenant, ""))
    limits = (settings.principal_streams, settings.tenant_streams)
    for place, limit, whose in zip(places, limits, ("agent", "tenant"), strict=True):
        if feeds[place] >= limit:
            raise RateLimitedError(
                f"the {whose} has {limit} open streams and waiting reads of changes; close one, or"
                " follow several namespaces with one stream",
                retry_after=_RETRY_AFTER,
            )
    feeds.update(places)
    try:
        yield
    finally:
        feeds.subtract(places)
        for place in places:
            if not feeds[place]:
                del feeds[place]


async def _pages(
    transactions: OperationTransactions, read_page: ReadPage, after: int, wait: float | None
) -> AsyncGenerator[FeedPage, None]:
    loop = asyncio.get_running_loop()
    end = None if wait is None else loop.time() + wait
    # A feed that does not wait reads what was committed before it.
    log = None if wait == 0 else follow_log(transactions.service, transactions.principal.tenant)
    events: Sequence[Event] | None = None
    try:
        while True:
            seen = 0 if log is None else log.reader.end
            page = await read_page(after, events)
            # A feed of few events is at the end of the log too, and not at the last of them.
            after = max(page.position, seen) if page.is_last else page.position
            yield page
            if not page.is_last:
                # Reads do not suspend: other requests run between two pages of a long log.
                await asyncio.sleep(0)
            else:
                rest = KEEP_ALIVE if end is None else min(KEEP_ALIVE, end - loop.time())
                if log is None or rest <= 0:
                    return
                await log.changed(rest)
            events = None if log is None else log.reader.events_after(after)
    finally:
        if log is not None:
            log.close()
