"""The life of a session: creation, changes, participants, closing, archiving and deletion."""

from __future__ import annotations

from typing import Any, cast

import msgspec
from msgspec.structs import replace

from memorywall.kinds.session_end import idle_end
from memorywall.kinds.sessions import (
    SERVER_REASONS,
    SESSION,
    Participant,
    ParticipantAccess,
    Session,
)
from memorywall.longterm.decisions import request_decision
from memorywall.records.clock import after, check_duration, check_instant, parse_duration
from memorywall.records.decision import Verb, VisibilityFilter
from memorywall.records.draft import EntryPatch
from memorywall.records.entry import Entry, Scope
from memorywall.records.errors import (
    ResourceConflictError,
    ResourceNotFoundError,
    ValidationError,
)
from memorywall.records.event import EventType
from memorywall.records.feature_errors import SessionQuarantinedError
from memorywall.records.filter import EntryFilter
from memorywall.records.identifiers import is_same_name
from memorywall.records.session import SessionCounters
from memorywall.records.tier import Tier
from memorywall.service.access.subjects import sole_subject
from memorywall.service.access.targets import owner_target
from memorywall.service.entries.governed_entries import make_governed_entry
from memorywall.service.entries.provenance import update_provenance
from memorywall.service.entries.removal import remove_entry
from memorywall.service.entries.writes import create_new_entry, make_next_version, replace_entry
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.validation import encode_value, expiry
from memorywall.sessions.access import check_open, load_session
from memorywall.sessions.checks import check_fields, check_participants
from memorywall.sessions.personal_data import screen_session
from memorywall.sessions.stored import NAMESPACES, PARTITION, LoadedSession, load_counters
from memorywall.storage.sql.record_table import SESSION_COUNTERS

_AT_ONCE = 500
_LIMITS = frozenset({"ttl", "ends_at", "idle_timeout"})
"""The fields of a change that limit the time of a session."""


async def create(
    context: OperationContext, wanted: Session, ttl: str | None = None
) -> tuple[LoadedSession, SessionCounters]:
    """Creates a session of the principal.

    wanted: the session; the server sets its agent, its subject and the instants
    ttl: the hard limit of its duration, an ISO 8601 duration; None for `ends_at`, or else for the
        default lifetime of the tier
    Raises ValidationError, ValueTooLargeError, MemoryAccessError, ResourceNotFoundError.
    """
    principal = context.principal
    place = NAMESPACES[SESSION.name]
    context.authorize(Verb.CREATE, owner_target(context.tenant, principal.id, place))
    subject = sole_subject(principal, wanted.subject)
    wanted = check_fields(wanted)
    session = replace(
        wanted,
        agent_id=principal.id,
        subject=subject,
        ends_at=_end(context, wanted.ends_at, ttl) or await default_end(context),
        idle_at=None if wanted.idle_timeout is None else until(context, wanted.idle_timeout),
        participants=await check_participants(context, principal.id, wanted.participants),
    )
    return await insert_session(context, session, () if subject is None else (subject,))


async def insert_session(
    context: OperationContext, session: Session, subjects: tuple[str, ...]
) -> tuple[LoadedSession, SessionCounters]:
    """Stores a checked new session with its counters."""
    session = screen_session(context, session)
    session_id = context.service.ids.next_uuid()
    entry = make_governed_entry(
        context,
        SESSION,
        session,
        owner=session.agent_id,
        namespace=NAMESPACES[SESSION.name],
        key=session_id,
        scope=Scope(session_id=session_id),
        subjects=subjects,
        entry_id=session_id,
        field="state",
    )
    entry = await create_new_entry(context, entry, policy="keep", data=_event_data(session))
    counters = SessionCounters(
        tenant=context.tenant,
        session_id=session_id,
        last_activity_at=context.now,
        checkpointed_at=context.now,
    )
    await context.transaction.records(SESSION_COUNTERS).insert(counters)
    return LoadedSession(entry, session), counters


async def change(context: OperationContext, loaded: LoadedSession, **fields: Any) -> LoadedSession:
    """Stores the next version of the entry of a session; without a change nothing.

    fields: the changed fields of the session
    """
    session = screen_session(context, replace(loaded.value, **fields))
    if session == loaded.value:
        return loaded
    value = encode_value(cast(dict[str, Any], session), "state")
    entry = make_next_version(context, loaded.entry, value)
    entry = update_provenance(context, loaded.entry, entry, EntryPatch())
    data = _event_data(session, loaded.value)
    entry = await replace_entry(context, loaded.entry, entry, policy="keep", data=data)
    return LoadedSession(entry, session)


def _event_data(session: Session, before: Session | None = None) -> dict[str, Any]:
    """Returns what the event of a change says besides the version. The log outlives the session, so
    a reason that a client wrote itself stays out of it."""
    reason = session.closed_reason
    return {
        "status": session.status,
        "previous_status": None if before is None else before.status,
        "closed_reason": reason if reason is None or reason in SERVER_REASONS else "request",
    }


async def update(
    context: OperationContext, session_id: str, version: int | None, fields: dict[str, Any]
) -> LoadedSession:
    """Replaces fields of a session.

    fields: the fields to replace; of the policy only those that are replaced. `ttl` counts from now
        and `idle_timeout` from the last turn; None removes such a limit.
    version: the version of the session that is replaced; None for any
    Raises ValidationError, ValueTooLargeError, ResourceNotFoundError, MemoryAccessError,
    ResourceConflictError, and SessionClosedError for a limit of a session that has ended.
    """
    loaded = await load_session(context, session_id, Verb.UPDATE)
    _refuse_quarantined(loaded)
    if version is not None and loaded.entry.version != version:
        raise ResourceConflictError(
            "the session has another version now; read it and send that version",
            current_version=loaded.entry.version,
        )
    if "policy" in fields:
        fields["policy"] = replace(loaded.value.policy, **fields["policy"])
    limits = {name: fields.pop(name) for name in _LIMITS & fields.keys()}
    if limits:
        fields |= await _changed_limits(context, loaded, **limits)
    checked = check_fields(replace(loaded.value, **fields))
    return await change(context, loaded, **{name: getattr(checked, name) for name in fields})


async def _changed_limits(
    context: OperationContext, loaded: LoadedSession, **limits: str | None
) -> dict[str, Any]:
    """Returns the fields that limit the time of an open session.

    limits: `ttl`, `ends_at` and `idle_timeout`; None removes one
    """
    counters = await load_counters(context, loaded.id)
    check_open(loaded, counters, context.moment)
    fields: dict[str, Any] = {}
    if "ttl" in limits or "ends_at" in limits:
        fields["ends_at"] = _end(context, limits.get("ends_at"), limits.get("ttl"))
    if "idle_timeout" in limits:
        timeout = fields["idle_timeout"] = limits["idle_timeout"]
        if timeout is not None:
            check_duration("idle_timeout", timeout)
            timed = replace(loaded.value, idle_timeout=timeout)
            timeout = idle_end(timed, counters.last_activity_at)
        fields["idle_at"] = timeout
    return fields


async def set_participant(
    context: OperationContext, session_id: str, agent_id: str, access: ParticipantAccess
) -> LoadedSession:
    """Adds an agent to a session, or changes its access. Raises ValidationError,
    ResourceNotFoundError, MemoryAccessError."""
    loaded = await load_session(context, session_id, Verb.UPDATE)
    _refuse_quarantined(loaded)
    present = loaded.value.participants
    others = tuple(one for one in present if not is_same_name(agent_id, one.agent_id))
    added = Participant(agent_id=agent_id, access=access)
    participants = await check_participants(context, loaded.owner, (*others, added))
    return await change(context, loaded, participants=participants)


async def remove_participant(context: OperationContext, session_id: str, agent_id: str) -> None:
    """Removes an agent from a session, with effect on its next request. A participant may remove
    itself. Raises ResourceNotFoundError, MemoryAccessError."""
    leaves = agent_id == context.principal.id
    loaded = await load_session(context, session_id, Verb.READ if leaves else Verb.UPDATE)
    others = tuple(one for one in loaded.value.participants if one.agent_id != agent_id)
    if others == loaded.value.participants:
        raise ResourceNotFoundError("the session has no such participant")
    await change(context, loaded, participants=others)


async def close(
    context: OperationContext, session_id: str, reason: str = "request"
) -> LoadedSession:
    """Closes a session; a closed or archived one stays as it is. Raises ResourceNotFoundError,
    MemoryAccessError, SessionQuarantinedError."""
    loaded = await load_session(context, session_id, Verb.UPDATE)
    _refuse_quarantined(loaded)
    if loaded.value.status in ("closed", "archived"):
        return loaded
    return await change(context, loaded, status="closed", closed_reason=reason)


async def archive(context: OperationContext, session_id: str) -> LoadedSession:
    """Archives a session, open or closed; the job deletes it when its retention is over. Raises
    ResourceNotFoundError, MemoryAccessError, SessionQuarantinedError."""
    loaded = await load_session(context, session_id, Verb.UPDATE)
    _refuse_quarantined(loaded)
    if loaded.value.status == "archived":
        return loaded
    await request_decision(context, loaded.entry, Tier.EPISODIC)
    retention = loaded.value.policy.retention
    return await change(
        context,
        loaded,
        status="archived",
        closed_reason=loaded.value.closed_reason or "archived",
        clear_at=None if retention is None else until(context, retention),
    )


async def delete(context: OperationContext, session_id: str) -> None:
    """Deletes a session with everything in it, whatever its status. Raises ResourceNotFoundError,
    MemoryAccessError."""
    await remove_session(context, await load_session(context, session_id, Verb.DELETE))


async def remove_session(context: OperationContext, loaded: LoadedSession) -> None:
    """Removes the entries of a session, then the session itself."""
    for kind in PARTITION:
        await remove_members(context, loaded, kind)
    await _remove_plain_entries(context, loaded)
    await remove_entry(context, EventType.DELETED, loaded.entry)


async def _remove_plain_entries(context: OperationContext, loaded: LoadedSession) -> None:
    """Removes the entries that the owner wrote inside a session to tiers that last as long."""
    visible = VisibilityFilter(owners=(loaded.owner,))
    wanted = EntryFilter(
        tenant=context.tenant,
        tiers=(Tier.SESSION, Tier.WORKING),
        agent_id=loaded.owner,
        session_id=loaded.id,
        limit=_AT_ONCE,
        counted=False,
    )
    while True:
        page, _ = await context.transaction.entries.search(wanted, visible, context.now)
        for entry in page:
            await remove_entry(context, EventType.DELETED, entry)
        if len(page) < _AT_ONCE:
            return


async def remove_members(
    context: OperationContext, loaded: LoadedSession, kind: str, after: str = ""
) -> list[Entry]:
    """Removes the entries of a kind in a session with keys after `after`; returns them."""
    removed: list[Entry] = []
    while True:
        page = await context.transaction.entries.of_session(
            loaded.id, kind, loaded.owner, _AT_ONCE, after=after
        )
        for entry in page:
            await remove_entry(context, EventType.DELETED, entry)
        removed.extend(page)
        if len(page) < _AT_ONCE:
            return removed


def _refuse_quarantined(loaded: LoadedSession) -> None:
    if loaded.value.status == "quarantined":
        raise SessionQuarantinedError("the session is quarantined; export or delete it")


def _end(context: OperationContext, ends_at: str | None, ttl: str | None) -> str | None:
    if ttl is not None:
        if ends_at is not None:
            raise ValidationError("give `ttl` or `ends_at`, not both")
        return after(context.moment, check_duration("ttl", ttl))
    if ends_at is None:
        return None
    instant = check_instant("ends_at", ends_at)
    if instant <= context.now:
        raise ValidationError("`ends_at` must be in the future")
    return instant


async def default_end(context: OperationContext) -> str | None:
    """Returns the end of a new session without a limit of its own: the default lifetime of its
    tier, None without one."""
    ttl = (await context.load_tiers()).effective[Tier.SESSION].default_ttl
    return expiry(ttl, None, context.moment)


def until(context: OperationContext, duration: str) -> str:
    """Returns the instant after a duration that is checked already."""
    return after(context.moment, parse_duration(duration))


def as_fields(body: msgspec.Struct) -> dict[str, Any]:
    """Returns the fields of a request that are given."""
    given = ((name, getattr(body, name)) for name in body.__struct_fields__)
    return {name: value for name, value in given if value is not msgspec.UNSET}
