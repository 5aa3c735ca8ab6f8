"""The access decision of every operation on a session."""

from __future__ import annotations

from memorywall.kinds.session_end import OPEN, find_end_reason, is_idle
from memorywall.kinds.sessions import SESSION, Session
from memorywall.records.clock import format_instant
from memorywall.records.decision import Target, Verb
from memorywall.records.errors import MemoryAccessError, ResourceNotFoundError
from memorywall.records.feature_errors import SessionClosedError, SessionQuarantinedError
from memorywall.records.session import SessionCounters
from memorywall.records.tier import Isolation
from memorywall.service.access.session_binding import UNKNOWN_SESSION, hidden_session
from memorywall.service.entries.governed_entries import read_value
from memorywall.service.requests.operation_context import OperationContext
from memorywall.sessions.stored import LoadedSession

_VERBS = {
    "read": frozenset({Verb.READ}),
    "append": frozenset({Verb.READ, Verb.CREATE}),
}
"""The accesses of participants: to read the session, or to add to it and resume it as well."""
_NEEDS_APPEND = "this needs the access `append` to the session; its owner gives it"
_NEEDS_OWNER = "only the owner of the session may do this; ask the agent that it belongs to"


async def load_session(context: OperationContext, session_id: str, verb: Verb) -> LoadedSession:
    """Returns a session if the principal is allowed `verb` on it.

    The owner is allowed everything, and participants what their access says. A session that the
    principal may not read looks like a missing one; its refusal is counted.

    Raises ResourceNotFoundError, MemoryAccessError.
    """
    entry = context.take_session(session_id)
    if entry is None:
        entry = await context.transaction.entries.get(session_id, context.now)
    if entry is None or entry.kind != SESSION.name:
        raise ResourceNotFoundError(UNKNOWN_SESSION)
    session = await read_value(context, entry, Session)
    loaded = LoadedSession(entry, session)
    access = _access(context, session)
    decision = context.decide(verb, target_of(context, loaded, verb))
    is_owner = context.principal.id == entry.owner
    if decision.hidden or (not decision.allowed and access is None and not is_owner):
        raise hidden_session()
    if access is not None and verb not in _VERBS[access]:
        raise MemoryAccessError(_NEEDS_APPEND if verb is Verb.CREATE else _NEEDS_OWNER)
    if not decision.allowed:
        raise MemoryAccessError(f"not allowed to {verb} this session: {decision.reason}")
    return loaded


def target_of(context: OperationContext, loaded: LoadedSession, verb: Verb = Verb.READ) -> Target:
    """Returns the target of an access decision about a session: a participant is asked about like
    an owner, for what its access allows."""
    entry, access = loaded.entry, _access(context, loaded.value)
    acts_as_owner = access is not None and verb in _VERBS[access]
    return Target(
        tenant=entry.tenant,
        isolation=Isolation.AGENT,
        owner=context.principal.id if acts_as_owner else entry.owner,
        subjects=entry.subjects,
        place=entry.namespace,
        tier=entry.tier,
        session=entry.id,
    )


def _access(context: OperationContext, session: Session) -> str | None:
    principal = context.principal.id
    return next((one.access for one in session.participants if one.agent_id == principal), None)


def check_open(loaded: LoadedSession, counters: SessionCounters, moment: int) -> None:
    """Raises SessionClosedError or SessionQuarantinedError unless the session accepts turns.

    moment: the instant, in milliseconds since the epoch
    """
    status = loaded.value.status
    if status == "quarantined":
        raise SessionQuarantinedError("the session is quarantined; export or delete it")
    now = format_instant(moment)
    if is_idle(loaded.value, counters.last_activity_at, now):
        raise SessionClosedError(
            "the session is idle; resume it with `reopen`, or create one that `continues` it"
        )
    if status not in OPEN:
        raise SessionClosedError(
            f"the session is {status}; create one that `continues` it, or fork it"
        )
    if reason := find_end_reason(loaded.value, counters.last_activity_at, now):
        raise SessionClosedError(f"the session is {reason}; create one that `continues` it")
