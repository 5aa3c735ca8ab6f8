"""Requests inside a session: who may make them, and what they write (memory wall 11.8.2)."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from memorywall.kinds.contexts import CONTEXT
from memorywall.kinds.openwop import RUN_EVENT
from memorywall.kinds.session_end import OPEN, find_end_reason, may_be_idle
from memorywall.kinds.sessions import SESSION, SESSION_KINDS, Session
from memorywall.records.clock import format_instant
from memorywall.records.entry import Entry, Scope
from memorywall.records.errors import MemoryAccessError, ResourceNotFoundError, ValidationError
from memorywall.records.feature_errors import SessionClosedError, SessionQuarantinedError
from memorywall.records.identifiers import normalize_name
from memorywall.records.principal import Principal
from memorywall.records.session import SESSION_TIERS, SessionBinding
from memorywall.records.tier import Tier
from memorywall.service.access.subjects import bind_subject, parse_subjects
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.service.requests.services import SharedServices
from memorywall.storage.port import Transaction
from memorywall.storage.sql.record_table import SESSION_COUNTERS

UNKNOWN_SESSION = "there is no such session"
KINDS_OF_SESSIONS = frozenset(
    {CONTEXT.name, RUN_EVENT.name, *(spec.name for spec in SESSION_KINDS)}
)
"""The kind of sessions, and those of what only operations on sessions, contexts and runs make in
one: a turn, a checkpoint, a summary, a saved state, a context or an event of a run."""


async def bind_request(service: SharedServices, call: OperationCall) -> OperationCall:
    """The call with its principal bound to the subjects and the session of the request.

    A session binds the request to its subject too, and one without a subject to nobody.

    Raises MemoryAccessError for an operation that does not accept bound requests, and the errors of
    `bind_subject` and `take_part`.
    """
    if call.operation.public:
        return call
    principal = call.principal
    session_id = call.session
    if principal.session is not None:
        # The token of a session is for this session only.
        if session_id is not None and session_id != principal.session.id:
            raise hidden_session()
        session_id = principal.session.id
    if session_id is None:
        return await bind_subject(service, call)
    if not call.operation.reads_session:
        raise MemoryAccessError(
            f"`{call.operation.name}` is not available inside a session; call it outside: without"
            " `X-Session-ID`, `in_session` or `--in-session`, and with the key in place of a token"
        )

    async def script(transaction: Transaction) -> tuple[SessionBinding, str | None, Entry]:
        moment = service.clock.now()
        return await _read(service, transaction, principal, session_id, moment)

    binding, subject, _ = await service.store.read(principal.tenant, script)
    own = None if subject is None else normalize_name(subject)
    if call.subject is not None and parse_subjects(call.subject) != (own,):
        raise hidden_session()
    fingerprint = call.fingerprint + b"\0session " + session_id.encode()
    outside = replace(principal, only_subject=None)
    inside = msgspec.structs.replace(
        call, principal=outside, subject=subject, fingerprint=fingerprint
    )
    try:
        inside = await bind_subject(service, inside, is_inside=True)
    except MemoryAccessError:
        # The key is limited to other people, whose sessions it must not know of.
        raise hidden_session() from None
    bound = replace(inside.principal, session=binding)
    if subject is None:
        bound = replace(bound, subjects=(), subject_forms=())
    return msgspec.structs.replace(inside, principal=bound, subject=call.subject)


async def take_part(
    service: SharedServices, transaction: Transaction, principal: Principal, moment: int
) -> tuple[Principal, Entry | None]:
    """Returns the principal of a request as its session lets it take part now, and the entry of the
    session; None outside a session.

    Every transaction asks anew, so that an agent that leaves loses access with its next request.

    moment: the instant, in milliseconds since the epoch
    Raises ResourceNotFoundError, SessionClosedError, SessionQuarantinedError.
    """
    if principal.session is None:
        return principal, None
    session_id = principal.session.id
    binding, _, entry = await _read(service, transaction, principal, session_id, moment)
    if binding != principal.session:
        principal = replace(principal, session=binding)
    return principal, entry


def bind_scope(principal: Principal, tier: Tier, scope: Scope) -> Scope:
    """Returns the scope of an entry that a request writes: inside a session, session and working
    memory belong to the session.

    Raises ValidationError if the scope names another session than that of the request.
    """
    if principal.session is None:
        return scope
    own = principal.session.id
    if scope.session_id not in (None, own):
        raise ValidationError("`scope.session_id` must be the session of this request, or left out")
    if scope.session_id is None and tier in SESSION_TIERS:
        return msgspec.structs.replace(scope, session_id=own)
    return scope


async def takes_part_in(context: OperationContext, entry: Entry) -> bool:
    """Returns whether the principal owns a part of a session, or takes part in the session."""
    principal = context.principal.id
    if entry.owner == principal:
        return True
    found: Entry | None = entry
    if entry.kind != SESSION.name:
        named = entry.scope.session_id
        found = None if named is None else await context.transaction.entries.get(named, context.now)
    if found is None or found.kind != SESSION.name:
        return False
    session = await _open_session(context.service, context.transaction, found)
    return any(one.agent_id == principal for one in session.participants)


async def _open_session(service: SharedServices, transaction: Transaction, entry: Entry) -> Session:
    opened = await service.cipher.open(transaction, entry)
    return msgspec.json.decode(opened.value, type=Session)


async def _read(
    service: SharedServices,
    transaction: Transaction,
    principal: Principal,
    session_id: str,
    moment: int,
) -> tuple[SessionBinding, str | None, Entry]:
    """Returns the binding of a principal to a session, and the subject and the entry of the
    session."""
    now = format_instant(moment)
    entry = await transaction.entries.get(session_id, now)
    if entry is None or entry.kind != SESSION.name:
        raise ResourceNotFoundError(UNKNOWN_SESSION)
    session = await _open_session(service, transaction, entry)
    is_owner = entry.owner == principal.id
    access = {one.agent_id: one.access for one in session.participants}.get(principal.id)
    if not is_owner and access is None:
        raise hidden_session()
    if session.status == "quarantined":
        raise SessionQuarantinedError("the session is quarantined; export or delete it")
    if session.status not in OPEN:
        raise SessionClosedError(f"the session is {session.status}; no request is made inside it")
    last_activity_at = now
    if may_be_idle(session, now):
        counters = await transaction.records(SESSION_COUNTERS).get(session_id)
        last_activity_at = entry.created_at if counters is None else counters.last_activity_at
    if reason := find_end_reason(session, last_activity_at, now):
        raise SessionClosedError(f"the session is {reason}; no request is made inside it")
    may_append = is_owner or access == "append"
    binding = SessionBinding(id=entry.id, owner=entry.owner, may_append=may_append)
    return binding, session.subject, entry


def hidden_session() -> ResourceNotFoundError:
    """The refusal of a session that the principal may not know of: that of a missing one."""
    error = ResourceNotFoundError(UNKNOWN_SESSION)
    error.hides_refusal = True
    return error
