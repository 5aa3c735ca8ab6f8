"""The access decision of every operation on a session."""

from __future__ import annotations

from memorywall.kinds.sessions import SESSION, Session
from memorywall.records.clock import (
    after,
    format_instant,
    instant_to_milliseconds,
    parse_duration,
)
from memorywall.records.decision import Target, Verb
from memorywall.records.errors import MemoryAccessError, ResourceNotFoundError
from memorywall.records.session_counters import SessionCounters
from memorywall.records.session_errors import SessionClosedError, SessionQuarantinedError
from memorywall.records.tier import Isolation
from memorywall.service.governed_entries import read_value
from memorywall.service.operation_context import OperationContext
from memorywall.sessions.stored import LoadedSession

_UNKNOWN = "there is no such session"
_OPEN = ("active", "checkpointed")
_VERBS = {
    "read": frozenset({Verb.READ}),
    "append": frozenset({Verb.READ, Verb.CREATE}),
}
"""What a participant may do: to read the session, to add turns, checkpoints and to resume it."""


async def load_session(context: OperationContext, session_id: str, verb: Verb) -> LoadedSession:
    """Returns a session if the principal is allowed `verb` on it.

    The owner is allowed everything, and participants what their access says. A session that the
    principal may not read looks like a missing one.

    Raises ResourceNotFoundError, MemoryAccessError.
    """
    entry = await context.transaction.entries.get(session_id, context.now)
    if entry is None or entry.kind != SESSION.name:
        raise ResourceNotFoundError(_UNKNOWN)
    session = await read_value(context, entry, Session)
    owner, principal = entry.owner, context.principal.id
    access = next((one.access for one in session.participants if one.agent_id == principal), None)
    if access is not None and verb in _VERBS[access]:
        owner = principal
    target = Target(
        tenant=entry.tenant,
        isolation=Isolation.AGENT,
        owner=owner,
        subjects=entry.subjects,
        place=entry.namespace,
        tier=entry.tier,
        session=entry.id,
    )
    decision = context.decide(verb, target)
    if decision.hidden or (not decision.allowed and access is None and principal != entry.owner):
        raise ResourceNotFoundError(_UNKNOWN)
    if not decision.allowed:
        raise MemoryAccessError(f"not allowed to {verb} this session: {decision.reason}")
    return LoadedSession(entry, session)


def check_open(loaded: LoadedSession, counters: SessionCounters, moment: int) -> None:
    """Raises SessionClosedError or SessionQuarantinedError unless the session accepts turns.

    moment: the instant, in milliseconds since the epoch
    """
    status = loaded.value.status
    if status == "quarantined":
        raise SessionQuarantinedError("the session is quarantined; export or delete it")
    if status not in _OPEN:
        raise SessionClosedError(
            f"the session is {status}; create one that `continues` it, or fork it"
        )
    if reason := ended(loaded.value, counters, moment):
        raise SessionClosedError(f"the session is {reason}; create one that `continues` it")


def ended(session: Session, counters: SessionCounters, moment: int) -> str | None:
    """Returns why an open session has ended, `expired` or `idle`, whether or not the job has closed
    it yet; None if it has not."""
    now = format_instant(moment)
    if session.status not in _OPEN:
        return None
    if session.ends_at is not None and session.ends_at <= now:
        return "expired"
    # The idle timeout ends at `idle_at` or, after later turns, later.
    if session.idle_at is not None and session.idle_at <= now:
        return "idle" if idle_end(session, counters) <= now else None
    return None


def idle_end(session: Session, counters: SessionCounters) -> str:
    """Returns the instant at which a session with an idle timeout ends without another turn."""
    last = instant_to_milliseconds(counters.last_activity_at)
    return after(last, parse_duration(session.idle_timeout or ""))
