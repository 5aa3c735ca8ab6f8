"""Event logs as endless results, for an agent's stream, an intent's log and changes of memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from typing import Any

from memorywall.records.errors import MemorywallError
from memorywall.records.event import Event
from memorywall.service.feeds.event_feed import FeedPage
from memorywall.service.runner.operation_runner import OperationTransactions
from memorywall.wire.events import EventResponse
from memorywall.wire.results import ResultStream, StreamPosition, StreamProblem

_SHOWN_AT_ONCE = 50


async def event_stream(
    transactions: OperationTransactions,
    pages: AsyncGenerator[FeedPage, None],
    view: Callable[[Event], EventResponse],
    *,
    is_filtered: bool = False,
) -> ResultStream:
    """Returns a stream of all events from `pages`, until the key or the access is lost.

    is_filtered: whether the pages omit events of the log. Such a stream also contains its position,
        so that a client does not resume far behind, and ends with the error that ended it.
    """
    # The first page is read here, so that a refusal is returned as a problem document.
    first = await anext(pages)

    def shown(page: FeedPage) -> Iterator[list[Any]]:
        events = page.events
        for begin in range(0, len(events), _SHOWN_AT_ONCE):
            yield list(map(view, events[begin : begin + _SHOWN_AT_ONCE]))
        if is_filtered and not (events and events[-1].seq == page.position):
            yield [StreamPosition(page.position)]
        elif not events:
            yield []

    async def parts() -> AsyncGenerator[list[Any], None]:
        async with aclosing(pages):
            for part in shown(first):
                yield part
            try:
                async for page in pages:
                    await transactions.call.reauthenticate()
                    for part in shown(page):
                        yield part
            except MemorywallError as error:
                if is_filtered:
                    yield [StreamProblem(error)]

    return ResultStream(parts(), "events", endless=True)
