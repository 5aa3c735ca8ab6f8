"""The session that a request is bound to (memory wall 11.3.2), and the counters of a session."""

from __future__ import annotations

import msgspec

from memorywall.records.tier import Tier

SESSION_TIERS = frozenset({Tier.WORKING, Tier.SESSION})
"""The tiers of which a request inside a session finds only the entries of that session."""


class SessionBinding(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The session of a request.

    id: the id of the session
    owner: the agent that owns the session; "" before the session is read
    may_append: whether the principal may write memory of the session
    """

    id: str
    owner: str = ""
    may_append: bool = False


def belongs_to(session: str, tier: Tier | None, session_id: str | None) -> bool:
    """Returns whether a request inside a session finds an entry, as far as its session decides.

    tier: the tier of the entry; None for an object that is not one entry
    session_id: the session of the entry, None for none
    """
    return session_id == session or (session_id is None and tier not in SESSION_TIERS)


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
    context_tokens: the tokens of the entries in contexts with feedback, None without feedback
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
    context_tokens: int | None = None
    used_tokens: int | None = None


def context_pollution(context_tokens: int | None, used_tokens: int | None) -> float | None:
    """Returns the share of the tokens of contexts that were not used (memory wall 11.9.2); None
    without feedback."""
    return 1 - (used_tokens or 0) / context_tokens if context_tokens else None
