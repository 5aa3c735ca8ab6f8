"""An agent's summary and its event stream."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing

from memorywall.records.errors import MemorywallError, RequestError
from memorywall.records.event import Event
from memorywall.records.usage import Usage
from memorywall.server.dispatch import Call
from memorywall.server.replies import Reply, Stream, encode, json_reply
from memorywall.wall import streams, summaries
from memorywall.wire.agents import (
    EpisodicSummary,
    EventPage,
    Identity,
    SummaryView,
    WorkingSummary,
    event_view,
)


async def whoami(call: Call) -> Reply:
    principal = call.principal
    return json_reply(
        Identity(
            agent_id=principal.id,
            tenant=principal.tenant,
            kind=principal.kind,
            permissions=sorted(principal.permissions),
        )
    )


async def summarize_agent(call: Call) -> Reply:
    summary = await summaries.summarize(call.door, call.principal, call.path["agent_id"])
    return json_reply(
        SummaryView(
            agent_id=summary.agent_id,
            working=WorkingSummary(
                entry_count=summary.working.entries,
                total_size_kb=_kilobytes(summary.working),
                tasks_with_memory=summary.tasks,
            ),
            episodic=EpisodicSummary(
                entry_count=summary.episodic.entries,
                capacity=summary.capacity,
                pinned_count=summary.episodic.pinned,
                total_size_kb=_kilobytes(summary.episodic),
                oldest_entry=summary.oldest,
                newest_entry=summary.newest,
            ),
            semantic_namespaces_accessible=summary.namespaces,
        )
    )


async def list_events(call: Call) -> Reply | Stream:
    agent, after = call.path["agent_id"], call.query.after
    if b"text/event-stream" in call.headers.get(b"accept", b""):
        return await _event_stream(call, agent, after)
    events = await streams.list_events(call.door, call.principal, agent, after, call.query.limit)
    views = [event_view(event) for event in events]
    return json_reply(EventPage(events=views, next=events[-1].seq if events else after))


async def _event_stream(call: Call, agent: str, after: int) -> Stream:
    if last := call.headers.get(b"last-event-id"):
        if not last.isdigit() or len(last) > 18:
            raise RequestError("`Last-Event-ID` must be the id of an event of this stream")
        after = int(last)
    # The first page is read here, so that a refusal is still a problem document.
    pages = streams.follow_events(call.door, call.principal, agent, after)
    first = await anext(pages)

    async def pieces() -> AsyncIterator[bytes]:
        async with aclosing(pages):
            yield _sse(first)
            async for events in pages:
                try:
                    await call.authenticate_again()
                except MemorywallError:
                    return
                yield _sse(events)

    return Stream(b"text/event-stream", pieces(), endless=True)


def _sse(events: list[Event]) -> bytes:
    if not events:
        return b": alive\n\n"
    return b"".join(
        b"id: %d\nevent: %b\ndata: %b\n\n"
        % (event.seq, event.type.encode(), encode(event_view(event)))
        for event in events
    )


def _kilobytes(usage: Usage) -> int:
    return -(-usage.bytes // 1024)
