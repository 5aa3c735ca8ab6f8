"""The life of a session: creation, changes, participants, closing, archiving and deletion."""

from __future__ import annotations

from typing import Any, cast

import msgspec
from msgspec.structs import replace

from memorywall.kinds.sessions import SESSION, Participant, ParticipantAccess, Session
from memorywall.records.clock import after, check_duration, parse_duration, parse_instant
from memorywall.records.decision import Verb
from memorywall.records.entry import Entry, Scope
from memorywall.records.errors import (
    ResourceConflictError,
    ResourceNotFoundError,
    ValidationError,
)
from memorywall.records.event import EventType
from memorywall.records.session_counters import SessionCounters
from memorywall.records.session_errors import SessionQuarantinedError
from memorywall.records.tier import Tier
from memorywall.service.entry_writes import insert_entry, remove_entry, replace_entry
from memorywall.service.fencing import held_lease
from memorywall.service.governed_entries import make_governed_entry
from memorywall.service.meaning import with_derived
from memorywall.service.operation_context import OperationContext
from memorywall.service.provenance import provenance_of
from memorywall.service.subjects import sole_subject
from memorywall.service.targets import owner_target
from memorywall.service.validation import check_agent, encode_value, expiry
from memorywall.sessions.access import load_session
from memorywall.sessions.promotion import request_promotion
from memorywall.sessions.stored import NAMESPACES, PARTITION, LoadedSession
from memorywall.storage.sql.record_table import SESSION_COUNTERS

MOST_PARTICIPANTS = 32
LONGEST_TITLE = 256
_AT_ONCE = 500


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
    await held_lease(context)
    subject = sole_subject(principal, wanted.subject)
    _check_fields(wanted)
    session = replace(
        wanted,
        agent_id=principal.id,
        subject=subject,
        ends_at=_end(context, wanted.ends_at, ttl) or await default_end(context),
        idle_at=None if wanted.idle_timeout is None else until(context, wanted.idle_timeout),
        participants=_check_participants(principal.id, wanted.participants),
    )
    if session.continues is not None:
        earlier = await load_session(context, session.continues, Verb.READ)
        if earlier.value.subject != session.subject:
            raise ValidationError("`continues` must name a session of the same subject")
    return await insert_session(context, session, () if subject is None else (subject,))


async def insert_session(
    context: OperationContext, session: Session, subjects: tuple[str, ...]
) -> tuple[LoadedSession, SessionCounters]:
    """Stores a checked new session with its counters."""
    session_id = context.service.ids.next_uuid()
    entry = with_derived(
        make_governed_entry(
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
    )
    await insert_entry(context, entry)
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
    session = replace(loaded.value, **fields)
    if session == loaded.value:
        return loaded
    value = encode_value(cast(dict[str, Any], session), "state")
    provenance = provenance_of(context.principal, False)
    entry = with_derived(
        replace(
            loaded.entry,
            value=value,
            size=len(value),
            version=loaded.entry.version + 1,
            updated_at=context.now,
            provenance=replace(provenance, session=loaded.id),
        )
    )
    await replace_entry(context, loaded.entry, entry)
    return LoadedSession(entry, session)


async def update(
    context: OperationContext, session_id: str, version: int | None, fields: dict[str, Any]
) -> LoadedSession:
    """Replaces the title, the state, the token budget or fields of the policy of a session.

    fields: the fields to replace; of the policy only those that are replaced
    version: the version of the session that is replaced; None for any
    Raises ValidationError, ValueTooLargeError, ResourceNotFoundError, MemoryAccessError,
    ResourceConflictError.
    """
    await held_lease(context)
    loaded = await load_session(context, session_id, Verb.UPDATE)
    _refuse_quarantined(loaded)
    if version is not None and loaded.entry.version != version:
        raise ResourceConflictError(
            "the session has another version now; read it and send that version",
            current_version=loaded.entry.version,
        )
    if "policy" in fields:
        fields["policy"] = replace(loaded.value.policy, **fields["policy"])
    _check_fields(replace(loaded.value, **fields))
    return await change(context, loaded, **fields)


async def set_participant(
    context: OperationContext, session_id: str, agent_id: str, access: ParticipantAccess
) -> LoadedSession:
    """Adds an agent to a session, or changes its access. Raises ValidationError,
    ResourceNotFoundError, MemoryAccessError."""
    await held_lease(context)
    loaded = await load_session(context, session_id, Verb.UPDATE)
    _refuse_quarantined(loaded)
    others = tuple(one for one in loaded.value.participants if one.agent_id != agent_id)
    added = Participant(agent_id=agent_id, access=access)
    participants = _check_participants(loaded.owner, (*others, added))
    return await change(context, loaded, participants=participants)


async def remove_participant(context: OperationContext, session_id: str, agent_id: str) -> None:
    """Removes an agent from a session, with effect on its next request. A participant may remove
    itself. Raises ResourceNotFoundError, MemoryAccessError."""
    await held_lease(context)
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
    await held_lease(context)
    loaded = await load_session(context, session_id, Verb.UPDATE)
    _refuse_quarantined(loaded)
    if loaded.value.status in ("closed", "archived"):
        return loaded
    return await change(context, loaded, status="closed", closed_reason=reason)


async def archive(context: OperationContext, session_id: str) -> LoadedSession:
    """Archives a session, open or closed; the job deletes it when its retention is over. Raises
    ResourceNotFoundError, MemoryAccessError, SessionQuarantinedError."""
    await held_lease(context)
    loaded = await load_session(context, session_id, Verb.UPDATE)
    _refuse_quarantined(loaded)
    if loaded.value.status == "archived":
        return loaded
    await request_promotion(context, loaded)
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
    await held_lease(context)
    await remove_session(context, await load_session(context, session_id, Verb.DELETE))


async def remove_session(context: OperationContext, loaded: LoadedSession) -> None:
    """Removes the entries of a session, then the session itself."""
    for kind in PARTITION:
        await remove_members(context, loaded, kind)
    await remove_entry(context, EventType.DELETED, loaded.entry)


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
    try:
        instant = parse_instant(ends_at)
    except ValueError:
        raise ValidationError("`ends_at` must be an RFC 3339 instant with an offset") from None
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


def _check_fields(session: Session) -> None:
    if len(session.title) > LONGEST_TITLE or "\0" in session.title:
        raise ValidationError(f"`title` may have at most {LONGEST_TITLE} characters and no NUL")
    durations = {
        "idle_timeout": session.idle_timeout,
        "policy.retention": session.policy.retention,
        "policy.checkpoint_interval": session.policy.checkpoint_interval,
    }
    for field, duration in durations.items():
        if duration is not None:
            check_duration(field, duration)


def _check_participants(
    owner: str, participants: tuple[Participant, ...]
) -> tuple[Participant, ...]:
    if len(participants) > MOST_PARTICIPANTS:
        raise ValidationError(f"a session may have at most {MOST_PARTICIPANTS} participants")
    names = [check_agent("participants.agent_id", one.agent_id) for one in participants]
    if owner in names or len(set(names)) < len(names):
        raise ValidationError(
            "`participants` must name other agents than that of the session, each once"
        )
    return participants


def as_fields(body: msgspec.Struct) -> dict[str, Any]:
    """Returns the fields of a request that are given."""
    given = ((name, getattr(body, name)) for name in body.__struct_fields__)
    return {name: value for name, value in given if value is not msgspec.UNSET}
