"""An agent's identity, summary, limits and event stream (RFC-0015 section 5)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from memorywall.operations.binding import multi_transaction_operation, operation
from memorywall.operations.event_streams import event_stream
from memorywall.policy.visibility_filter import visibility_filter
from memorywall.records.decision import Verb
from memorywall.records.errors import ValidationError
from memorywall.records.event import Event
from memorywall.records.tier import Tier
from memorywall.records.usage import AgentLimits, Usage
from memorywall.service.access.groups import list_namespaces
from memorywall.service.access.known_names import find_agent, known_agent
from memorywall.service.access.targets import load_namespace_targets, owner_target
from memorywall.service.entries.capacity import episodic_capacity
from memorywall.service.feeds.event_feed import FeedPage, follow
from memorywall.service.feeds.log_reader import PAGE
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.service.requests.validation import check_namespace
from memorywall.service.runner.operation_runner import OperationTransactions
from memorywall.wire.agents import (
    AgentLimitsResponse,
    EpisodicSummary,
    IdentityResponse,
    SummaryResponse,
    WorkingSummary,
)
from memorywall.wire.events import EventPageResponse, event_view
from memorywall.wire.results import ResultStream

MOST_PINNED = 64
_MOST_FILTERED = 2_000
"""The most events that one transaction reads of which only some are returned."""


@multi_transaction_operation("whoami")
async def whoami(transactions: OperationTransactions) -> IdentityResponse:
    principal = transactions.principal
    return IdentityResponse(
        agent_id=principal.id,
        tenant=principal.tenant,
        kind=principal.kind,
        permissions=sorted(principal.permissions),
    )


@operation("summarize_agent")
async def summarize_agent(context: OperationContext, call: OperationCall) -> SummaryResponse:
    agent, now = await find_agent(context, call.path["agent_id"]), context.now
    context.authorize(Verb.OBSERVE, owner_target(context.tenant, agent))
    entries = context.transaction.entries
    known = await list_namespaces(context)
    targets = await load_namespace_targets(context, known)
    capacity = await episodic_capacity(context, agent)
    oldest, newest = await entries.span(Tier.EPISODIC, agent, now)
    working = await entries.usage(Tier.WORKING, agent, now)
    episodic = await entries.usage(Tier.EPISODIC, agent, now)
    return SummaryResponse(
        agent_id=agent,
        working=WorkingSummary(
            entry_count=working.entries,
            total_size_kb=_kilobytes(working),
            tasks_with_memory=await entries.tasks(Tier.WORKING, agent, now),
        ),
        episodic=EpisodicSummary(
            entry_count=episodic.entries,
            capacity=capacity,
            pinned_count=episodic.pinned,
            total_size_kb=_kilobytes(episodic),
            oldest_entry=oldest,
            newest_entry=newest,
        ),
        semantic_namespaces_accessible=list(
            visibility_filter(context.principal, Verb.READ, targets).namespaces
        ),
    )


@multi_transaction_operation("list_events")
async def list_events(transactions: OperationTransactions) -> EventPageResponse | ResultStream:
    call = transactions.call
    agent, after = call.path["agent_id"], call.query.after
    if call.wants_stream:
        start = after if call.resume_after is None else call.resume_after

        async def read_page(seen: int, log: Sequence[Event] | None) -> FeedPage:
            entry = call.query.entry_id
            if log is not None:
                found, _ = await transactions.read(events_of_agent, agent, seen, PAGE, entry, log)
                return FeedPage(found, log[-1].seq if log else seen, is_last=True)
            found = []
            while True:
                before, room = seen, PAGE - len(found)
                events, seen = await transactions.read(events_of_agent, agent, before, room, entry)
                found += events
                whole = transactions.principal.namespaces is None and entry is None
                if whole or len(found) == PAGE or seen == before:
                    return FeedPage(found, seen, is_last=len(found) < PAGE)

        return await event_stream(transactions, follow(transactions, read_page, start), event_view)
    asked = call.query
    events, reached = await transactions.read(
        events_of_agent, agent, after, asked.limit, asked.entry_id
    )
    return EventPageResponse(events=[event_view(event) for event in events], next=reached)


async def events_of_agent(
    context: OperationContext,
    agent: str,
    after: int,
    limit: int,
    entry_id: str | None = None,
    log: Sequence[Event] | None = None,
) -> tuple[list[Event], int]:
    """Returns up to `limit` events of the agent's stream after a sequence number, and the number up
    to which the stream was read. A key that is limited to namespaces gets the events of entries in
    them.

    entry_id: only events about this entry; None for any
    log: the events of the tenant's log after that number, at most `limit`; None to read them, the
        default
    Raises MemoryAccessError.
    """
    agent = await find_agent(context, agent)
    target = replace(owner_target(context.tenant, agent), is_filtered=True)
    context.authorize(Verb.OBSERVE, target)
    limited_to = context.principal.namespaces
    size = limit if limited_to is None and entry_id is None else _MOST_FILTERED
    shown: list[Event] = []
    if log is None:
        log = await context.transaction.events.list(agent, after, size)
    for event in log:
        if event.stream != agent:
            continue
        if len(shown) == limit:
            break
        after = event.seq
        if entry_id not in (None, event.entry_id):
            continue
        if limited_to is None or event.namespace in limited_to:
            shown.append(event)
    return shown, after


@operation("set_agent_limits")
async def set_agent_limits(context: OperationContext, call: OperationCall) -> AgentLimitsResponse:
    body, agent = call.body, call.path["agent_id"]
    limits = AgentLimits(
        episodic_capacity=body.episodic_capacity,
        pinned_namespaces=tuple(dict.fromkeys(map(check_namespace, body.pinned_namespaces))),
    )
    agent = await known_agent(context, "agent_id", agent)
    if len(limits.pinned_namespaces) > MOST_PINNED:
        raise ValidationError(f"`pinned_namespaces` may have at most {MOST_PINNED} names")
    context.authorize(Verb.ADMINISTER, owner_target(context.tenant, agent))
    await context.transaction.identities.set_limits(agent, limits)
    return AgentLimitsResponse(
        agent_id=agent,
        episodic_capacity=limits.episodic_capacity,
        pinned_namespaces=limits.pinned_namespaces,
    )


def _kilobytes(usage: Usage) -> int:
    return -(-usage.bytes // 1024)
