"""Prints sessions, turns and checkpoints."""

from __future__ import annotations

from memorywall.cli.output import print_fields, print_json, print_table
from memorywall.kinds.sessions import turn_text
from memorywall.wire.sessions import CheckpointResponse, SessionResponse
from memorywall.wire.turns import TurnResponse


def print_session(session: SessionResponse, as_json: bool) -> None:
    """Prints a session for people, or as JSON."""
    if as_json:
        print_json(session)
        return
    print_fields(
        (
            ("id", session.id),
            ("status", session.status),
            ("agent", session.agent_id),
            ("subject", session.subject),
            ("title", session.title),
            ("turns", session.counts.turn_count),
            ("tokens", session.counts.token_usage),
            ("ends", session.ends_at),
            ("idle timeout", session.idle_timeout),
            ("idle at", session.idle_at),
            ("continues", session.continues),
            ("closed because", session.closed_reason),
            ("created", session.created_at),
        )
    )


def print_turns(turns: list[TurnResponse], as_json: bool) -> None:
    """Prints turns for people, or as JSON."""
    if as_json:
        print_json(turns)
        return
    print_table(
        ["turn", "role", "text", "author", "created"],
        (
            [
                one.sequence,
                one.role,
                turn_text(one.content, one.tool_calls),
                one.author,
                one.created_at,
            ]
            for one in turns
        ),
    )


def print_checkpoint(made: CheckpointResponse, as_json: bool) -> None:
    """Prints a checkpoint for people, or as JSON."""
    if as_json:
        print_json(made)
        return
    print_fields(
        (
            ("checkpoint", made.number),
            ("trigger", made.trigger),
            ("turns", made.turn_count),
            ("tokens", made.token_usage),
            ("summary", made.summary),
            ("kept", made.quality and f"{made.quality.kept} of {made.quality.must_keep}"),
            ("working", len(made.working)),
            ("created", made.created_at),
        )
    )
