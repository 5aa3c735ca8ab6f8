"""The counters of a session, which every turn changes instead of the entry of the session."""

from __future__ import annotations

import msgspec


class SessionCounters(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The counters of a session.

    session_id: the id of the session, which is also the id of its entry
    last_sequence: the sequence of the last turn, 0 before the first one
    token_usage: the sum of the tokens of all turns
    last_activity_at: the instant of the last turn, or of the creation of the session
    summarized_through: the last turn that the newest summary covers, 0 for none
    summarized_tokens: the tokens of the turns that the newest summary covers
    checkpoints: the number of the newest checkpoint; numbers are not used again
    checkpointed_through: the last turn at the newest checkpoint, 0 for none
    checkpointed_at: the instant of the newest checkpoint, or of the creation of the session
    context_tokens: the tokens of the entries in contexts with feedback
    used_tokens: the tokens of those that the feedback names as used
    """

    tenant: str
    session_id: str
    last_sequence: int = 0
    turn_count: int = 0
    token_usage: int = 0
    last_activity_at: str
    summarized_through: int = 0
    summarized_tokens: int = 0
    checkpoints: int = 0
    checkpointed_through: int = 0
    checkpointed_at: str
    context_tokens: int = 0
    used_tokens: int = 0


def context_pollution(context_tokens: int, used_tokens: int) -> float | None:
    """Returns the share of the tokens of contexts that were not used (memory wall 11.9.2); None
    without feedback."""
    return 1 - used_tokens / context_tokens if context_tokens else None
