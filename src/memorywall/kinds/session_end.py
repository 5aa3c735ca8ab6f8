"""The end of a session by its hard limit or its idle timeout: one decision for turns, for requests
inside the session and for the job that closes it."""

from __future__ import annotations

from typing import Literal

from memorywall.kinds.sessions import Session
from memorywall.records.clock import after, instant_to_milliseconds, parse_duration

OPEN = ("active", "checkpointed")
"""The statuses of a session that accepts turns."""


def find_end_reason(
    session: Session, last_activity_at: str, now: str
) -> Literal["expired", "idle"] | None:
    """Returns why an open session has ended, whether or not the job has closed it yet; None if it
    has not.

    last_activity_at: the instant of its last turn; only read where `may_be_idle` is true
    """
    if session.status not in OPEN:
        return None
    if session.ends_at is not None and session.ends_at <= now:
        return "expired"
    if may_be_idle(session, now) and idle_end(session, last_activity_at) <= now:
        return "idle"
    return None


def is_idle(session: Session, last_activity_at: str, now: str) -> bool:
    """Returns whether the idle timeout has ended a session, which nothing else has ended."""
    if session.status in OPEN:
        return find_end_reason(session, last_activity_at, now) == "idle"
    return session.status == "closed" and session.closed_reason == "idle"


def may_be_idle(session: Session, now: str) -> bool:
    """Returns whether the last turn decides. The idle timeout ends at `idle_at` or, after later
    turns, later."""
    return session.idle_at is not None and session.idle_at <= now


def idle_end(session: Session, last_activity_at: str) -> str:
    """Returns the instant at which a session with an idle timeout ends without another turn."""
    last = instant_to_milliseconds(last_activity_at)
    return after(last, parse_duration(session.idle_timeout or ""))
