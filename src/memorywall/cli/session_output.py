"""Prints sessions, turns and checkpoints."""

from __future__ import annotations

from memorywall.cli.output import as_fields, as_table
from memorywall.kinds.sessions import turn_text
from memorywall.wire.turns import CheckpointResponse, TurnResponse


def _text(turn: TurnResponse) -> str:
    return turn_text(turn.content, turn.tool_calls)


def _describe_kept(made: CheckpointResponse) -> str | None:
    return f"{made.quality.kept} of {made.quality.must_keep}" if made.quality else None


SESSIONS = as_table(
    "id", "status", "subject", "title", "turns=counts.turn_count",
    "last activity=counts.last_activity_at",
)  # fmt: skip
SESSION = as_fields(
    "id", "status", "agent=agent_id", "subject", "title", "turns=counts.turn_count",
    "tokens=counts.token_usage", "ends=ends_at", "idle timeout=idle_timeout", "idle at=idle_at",
    "continues", "closed because=closed_reason", "created=created_at",
)  # fmt: skip
TURNS = as_table("turn=sequence", "role", ("text", _text), "author", "created=created_at")
CHECKPOINT = as_fields(
    "checkpoint=number", "trigger", "turns=turn_count", "tokens=token_usage", "summary",
    ("kept", _describe_kept), ("working", lambda made: len(made.working)),
    "created=created_at",
)  # fmt: skip
CHECKPOINTS = as_table(
    "checkpoint=number", "trigger", "turns=turn_count", "tokens=token_usage",
    "summarized=summarized_through", "created=created_at",
)  # fmt: skip
EVENTS = as_table(
    "seq", "when=timestamp", "type", "version=data.version", "before=data.previous_status",
    "status=data.status", "reason=data.closed_reason", "actor",
)  # fmt: skip
MATCH = as_fields("session=session_id|none", "status", "method")
CANDIDATES = as_table("session=session_id", "score")
PARTICIPANTS = as_table("agent=agent_id", "access")
