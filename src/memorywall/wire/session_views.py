"""The wire forms of sessions, turns and checkpoints."""

from __future__ import annotations

from memorywall.kinds.session_end import OPEN, ended, idle_end
from memorywall.kinds.sessions import Checkpoint, Session, Turn
from memorywall.records.copier import copier
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

_session = copier(
    Session,
    SessionResponse,
    given=[
        "id",
        "status",
        "idle_at",
        "closed_reason",
        "version",
        "created_at",
        "updated_at",
        "counts",
    ],
)


def session_view(
    entry: Entry, session: Session, counters: SessionCounters, now: str
) -> SessionResponse:
    """The wire form of a session. One whose time is over is closed, also before the job has closed
    it.

    now: the instant of the request, in the stored form
    """
    reason = ended(session, counters.last_activity_at, now)
    idle_at = None
    if session.status in OPEN and session.idle_timeout is not None:
        idle_at = idle_end(session, counters.last_activity_at)
    return _session(
        session,
        id=entry.id,
        status="closed" if reason else session.status,
        idle_at=idle_at,
        closed_reason=reason or session.closed_reason,
        version=entry.version,
        created_at=entry.created_at,
        updated_at=entry.updated_at,
        counts=counts_view(counters),
    )


counts_view = copier(
    SessionCounters,
    SessionCounts,
    last_checkpoint="checkpoints",
    context_pollution=lambda one: context_pollution(one.context_tokens, one.used_tokens),
)
"""The wire form of counters."""


_turn = copier(Turn, TurnResponse, given=["id", "created_at"])
_checkpoint = copier(Checkpoint, CheckpointResponse, given=["id", "created_at"])


def turn_view(entry: Entry, turn: Turn) -> TurnResponse:
    """The wire form of a turn."""
    return _turn(turn, id=entry.id, created_at=entry.created_at)


def checkpoint_view(entry: Entry, checkpoint: Checkpoint) -> CheckpointResponse:
    """The wire form of a checkpoint."""
    return _checkpoint(checkpoint, id=entry.id, created_at=entry.created_at)
