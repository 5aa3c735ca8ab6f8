"""The session that a request is bound to, and the entries of a session (memory wall 11.3.2)."""

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
