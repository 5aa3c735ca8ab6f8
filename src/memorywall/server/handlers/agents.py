"""An agent's summary and its event stream."""

from __future__ import annotations

from memorywall.records.usage import AgentLimits, Usage
from memorywall.server.dispatch import Call
from memorywall.server.follow import event_stream, start_of, wants_stream
from memorywall.server.replies import Reply, Stream, json_reply
from memorywall.wall import streams, summaries
from memorywall.wall.administration import set_limits
from memorywall.wire.agents import (
    AgentLimitsView,
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
    if wants_stream(call):
        pages = streams.follow_events(call.door, call.principal, agent, start_of(call, after))
        return await event_stream(call, pages, event_view)
    events = await streams.list_events(call.door, call.principal, agent, after, call.query.limit)
    views = [event_view(event) for event in events]
    return json_reply(EventPage(events=views, next=events[-1].seq if events else after))


async def set_agent_limits(call: Call) -> Reply:
    body, agent = call.body, call.path["agent_id"]
    wanted = AgentLimits(
        episodic_capacity=body.episodic_capacity,
        pinned_namespaces=tuple(dict.fromkeys(body.pinned_namespaces)),
    )
    script = await set_limits(call.door, call.principal, agent, wanted)
    limits = await call.door.store.write(call.principal.tenant, script)
    return json_reply(
        AgentLimitsView(
            agent_id=agent,
            episodic_capacity=limits.episodic_capacity,
            pinned_namespaces=limits.pinned_namespaces,
        )
    )


def _kilobytes(usage: Usage) -> int:
    return -(-usage.bytes // 1024)
