"""The wire forms of sessions, turns and checkpoints."""

from __future__ import annotations

from memorywall.kinds.session_end import OPEN, ended, idle_end
from memorywall.kinds.sessions import Checkpoint, Session, Turn
from memorywall.records.entry import Entry
from memorywall.records.session import SessionCounters, context_pollution
from memorywall.wire.sessions import (
    CheckpointResponse,
    SessionResponse,
)
from memorywall.wire.turns import (
    SessionCounts,
    TurnResponse,
)

_OWN = {"id", "status", "idle_at", "closed_reason", "version", "created_at", "updated_at", "counts"}
_SHARED = tuple(name for name in SessionResponse.__struct_fields__ if name not in _OWN)


def session_view(
    entry: Entry, session: Session, counters: SessionCounters, now: str
) -> SessionResponse:
    """The wire form of a session. One whose time is over is closed, also before the job has closed
    it.

    now: the instant of the request, in the stored form
    """
    shown = {name: getattr(session, name) for name in _SHARED}
    reason = ended(session, counters.last_activity_at, now)
    idle_at = None
    if session.status in OPEN and session.idle_timeout is not None:
        idle_at = idle_end(session, counters.last_activity_at)
    return SessionResponse(
        id=entry.id,
        status="closed" if reason else session.status,
        idle_at=idle_at,
        closed_reason=reason or session.closed_reason,
        version=entry.version,
        created_at=entry.created_at,
        updated_at=entry.updated_at,
        counts=counts_view(counters),
        **shown,
    )


def counts_view(counters: SessionCounters) -> SessionCounts:
    """The wire form of counters."""
    return SessionCounts(
        last_sequence=counters.last_sequence,
        turn_count=counters.turn_count,
        token_usage=counters.token_usage,
        last_activity_at=counters.last_activity_at,
        summarized_through=counters.summarized_through,
        last_checkpoint=counters.checkpoints,
        context_pollution=context_pollution(counters.context_tokens, counters.used_tokens),
    )


def turn_view(entry: Entry, turn: Turn) -> TurnResponse:
    """The wire form of a turn."""
    return TurnResponse(
        id=entry.id,
        sequence=turn.sequence,
        role=turn.role,
        content=turn.content,
        author=turn.author,
        created_at=entry.created_at,
        name=turn.name,
        tool_calls=turn.tool_calls,
        tool_call_id=turn.tool_call_id,
        client_id=turn.client_id,
        source=turn.source,
        trusted=turn.trusted,
        valid_until=turn.valid_until,
        tokens=turn.tokens,
        personal_data=turn.personal_data,
        metadata=turn.metadata,
    )


def checkpoint_view(entry: Entry, checkpoint: Checkpoint) -> CheckpointResponse:
    """The wire form of a checkpoint."""
    return CheckpointResponse(
        id=entry.id,
        number=checkpoint.number,
        trigger=checkpoint.trigger,
        summary=checkpoint.summary,
        quality=checkpoint.quality,
        summarized_through=checkpoint.summarized_through,
        first=checkpoint.first,
        last=checkpoint.last,
        working=checkpoint.working,
        state=checkpoint.state,
        turn_count=checkpoint.turn_count,
        token_usage=checkpoint.token_usage,
        created_at=entry.created_at,
    )
