"""Lists of sessions, by the status that they have at the instant of the request.

A session whose time is over counts as closed, whether or not the job has closed it yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from msgspec.structs import replace

from memorywall.kinds.session_end import OPEN, ended
from memorywall.kinds.sessions import SESSION, Session
from memorywall.records.decision import Verb
from memorywall.records.entry import Entry
from memorywall.records.filter import EntryFilter
from memorywall.records.session_counters import SessionCounters
from memorywall.records.tier import Tier
from memorywall.service.fencing import held_lease
from memorywall.service.governed_entries import read_value
from memorywall.service.namespace_names import stored_filter
from memorywall.service.operation_context import OperationContext
from memorywall.service.subjects import sole_subject
from memorywall.service.targets import owner_target
from memorywall.service.visibility import load_visibility
from memorywall.sessions.stored import NAMESPACES, LoadedSession
from memorywall.storage.sql.record_table import SESSION_COUNTERS

_STORED = MappingProxyType({"open": OPEN, "closed": (*OPEN, "closed")})
"""The stored statuses that a session with a status may have, where they differ."""
_SHOWN = MappingProxyType({"open": OPEN})


@dataclass(frozen=True, slots=True)
class ListedSessions:
    """A page of sessions, newest first.

    next: the id after which the next page begins; None after the last page
    """

    sessions: list[tuple[LoadedSession, SessionCounters]]
    next: str | None


async def list_sessions(
    context: OperationContext,
    agent: str,
    *,
    status: str | None = None,
    subject: str | None = None,
    before: str | None = None,
    limit: int,
) -> ListedSessions:
    """Returns sessions of an agent: all of the caller's own, and those of another agent in which
    the caller participates.

    status: a status, or `open`; None for any
    subject: only sessions with this person; None for any
    before: `next` of the page before; None for the first page
    Raises RequestError.
    """
    wanted = EntryFilter(
        tenant=context.tenant,
        tiers=(Tier.SESSION,),
        agent_id=agent,
        kind=SESSION.name,
        statuses=() if status is None else _STORED.get(status, (status,)),
        about=() if subject is None else (subject,),
        before=before,
        limit=limit,
        counted=False,
    )
    wanted = await stored_filter(context, wanted)
    visible = await load_visibility(context, Verb.READ, wanted)
    if agent != context.principal.id:
        visible = replace(visible, owners=(agent,))
    found: list[tuple[LoadedSession, SessionCounters]] = []
    while True:
        page, _ = await context.transaction.entries.search(wanted, visible, context.now)
        for loaded, counters in await _load(context, page):
            if _is_wanted(context, loaded, counters, status):
                found.append((loaded, counters))
            if len(found) == limit:
                return ListedSessions(found, loaded.id)
        if len(page) < limit:
            return ListedSessions(found, None)
        wanted = replace(wanted, before=page[-1].id)


async def newest_open(
    context: OperationContext, subject: str | None
) -> tuple[LoadedSession, SessionCounters] | None:
    """Returns the newest open session of the caller with a person; None without one.

    subject: the person; None for that of a request bound to one, or else for nobody
    Raises ValidationError, MemoryAccessError.
    """
    principal = context.principal
    place = NAMESPACES[SESSION.name]
    context.authorize(Verb.CREATE, owner_target(context.tenant, principal.id, place))
    await held_lease(context)
    wanted = sole_subject(principal, subject)
    before: str | None = None
    while True:
        page = await list_sessions(
            context, principal.id, status="open", subject=wanted, before=before, limit=20
        )
        for loaded, counters in page.sessions:
            if loaded.value.subject == wanted:
                return loaded, counters
        if page.next is None:
            return None
        before = page.next


async def _load(
    context: OperationContext, page: list[Entry]
) -> list[tuple[LoadedSession, SessionCounters]]:
    counted = await context.transaction.records(SESSION_COUNTERS).get_many([one.id for one in page])
    counters = {one.session_id: one for one in counted}
    return [
        (LoadedSession(one, await read_value(context, one, Session)), counters[one.id])
        for one in page
    ]


def _is_wanted(
    context: OperationContext,
    loaded: LoadedSession,
    counters: SessionCounters,
    status: str | None,
) -> bool:
    session, principal = loaded.value, context.principal.id
    if loaded.owner != principal and all(one.agent_id != principal for one in session.participants):
        return False
    is_over = ended(session, counters.last_activity_at, context.now) is not None
    present = "closed" if is_over else session.status
    return status is None or present in _SHOWN.get(status, (status,))
