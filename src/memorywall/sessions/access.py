"""The access decision of every operation on a session."""

from __future__ import annotations

from memorywall.kinds.session_end import OPEN, ended
from memorywall.kinds.sessions import SESSION, Session
from memorywall.records.clock import format_instant
from memorywall.records.decision import Target, Verb
from memorywall.records.errors import MemoryAccessError, ResourceNotFoundError
from memorywall.records.session_counters import SessionCounters
from memorywall.records.session_errors import SessionClosedError, SessionQuarantinedError
from memorywall.records.tier import Isolation
from memorywall.service.governed_entries import read_value
from memorywall.service.operation_context import OperationContext
from memorywall.sessions.stored import LoadedSession

_UNKNOWN = "there is no such session"
_VERBS = {
    "read": frozenset({Verb.READ}),
    "append": frozenset({Verb.READ, Verb.CREATE}),
}
"""What a participant may do: to read the session, to add turns, checkpoints and to resume it."""
_NEEDS_APPEND = "this needs the access `append` to the session; its owner gives it"
_NEEDS_OWNER = "only the owner of the session may do this; ask the agent that it belongs to"


async def load_session(context: OperationContext, session_id: str, verb: Verb) -> LoadedSession:
    """Returns a session if the principal is allowed `verb` on it.

    The owner is allowed everything, and participants what their access says. A session that the
    principal may not read looks like a missing one.

    Raises ResourceNotFoundError, MemoryAccessError.
    """
    entry = context.take_session(session_id)
    if entry is None:
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
    if access is not None and verb not in _VERBS[access]:
        raise MemoryAccessError(_NEEDS_APPEND if verb is Verb.CREATE else _NEEDS_OWNER)
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
    if status not in OPEN:
        raise SessionClosedError(
            f"the session is {status}; create one that `continues` it, or fork it"
        )
    if reason := ended(loaded.value, counters.last_activity_at, format_instant(moment)):
        raise SessionClosedError(f"the session is {reason}; create one that `continues` it")
