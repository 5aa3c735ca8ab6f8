"""Following the changes of memory, as pages, with long polls, or as a stream."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from functools import partial

from memorywall.operations.binding import multi_transaction_operation
from memorywall.operations.event_streams import event_stream
from memorywall.operations.filters import whole_or_prefix
from memorywall.records.errors import RequestError
from memorywall.records.event import Event
from memorywall.records.filter import EntryFilter
from memorywall.records.principal import Principal
from memorywall.records.tier import Tier
from memorywall.service.feeds.change_feed import changes_after, present_position
from memorywall.service.feeds.event_feed import FeedPage, follow
from memorywall.service.feeds.log_reader import PAGE
from memorywall.service.runner.operation_runner import OperationTransactions
from memorywall.tiers.shared import is_scope
from memorywall.wire.events import ChangePageResponse, ChangeQuery, event_view
from memorywall.wire.leases import scope_namespace
from memorywall.wire.results import ResultStream

MOST_EXAMINED = 20 * PAGE
"""The most events of the log that one page examines; a filter may match few of them."""
_SHARED_STATE = (Tier.SHARED,)
# An archive contains no values here: `change_feed` has removed them.
_view = partial(event_view, with_values=True)


@multi_transaction_operation("list_changes")
async def list_changes(transactions: OperationTransactions) -> ChangePageResponse | ResultStream:
    call = transactions.call
    wanted = _filter_of(transactions.principal, call.query)
    start = call.query.after
    if call.wants_stream and call.resume_after is not None:
        start = call.resume_after
    if start is None:
        start = await transactions.read(present_position)
    limit = PAGE if call.wants_stream else call.query.limit

    async def read_page(seen: int, events: Sequence[Event] | None) -> FeedPage:
        return await transactions.read(changes_after, wanted, seen, limit, events)

    if call.wants_stream:
        return await event_stream(
            transactions, follow(transactions, read_page, start), _view, is_filtered=True
        )
    page = FeedPage([], start, is_last=True)
    async with aclosing(follow(transactions, read_page, start, call.query.wait)) as pages:
        async for page in pages:
            if page.events or page.position - start >= MOST_EXAMINED:
                break
    if call.query.wait:
        # The key may have been revoked while the request waited.
        await call.reauthenticate()
    events = [_view(event) for event in page.events]
    return ChangePageResponse(events=events, next=page.position, more=not page.is_last)


def _filter_of(principal: Principal, asked: ChangeQuery) -> EntryFilter:
    """Returns the filter of a query string. Raises RequestError."""
    namespace, prefix = whole_or_prefix(asked.namespace)
    tiers = () if asked.memory_type is None else (asked.memory_type,)
    if asked.scope is not None:
        if asked.namespace is not None or tiers not in ((), _SHARED_STATE):
            raise RequestError(
                "`scope` names shared state; leave `namespace` and `memory_type` out"
            )
        namespace, tiers = scope_namespace(asked.scope, principal.id), _SHARED_STATE
        if not is_scope(namespace):
            raise RequestError("`scope` must be `global`, `agent`, or `team:` and a team")
    return EntryFilter(
        tenant=principal.tenant,
        tiers=tiers,
        namespace=namespace,
        namespace_prefix=prefix,
        key=asked.key,
        task_id=asked.task_id,
        intent_id=asked.intent_id,
        kind=asked.kind,
        about=() if asked.about is None else (asked.about,),
    )
