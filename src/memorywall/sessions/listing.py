"""Lists of sessions, by the status that they have at the instant of the request.

A session whose time is over counts as closed, whether or not the job has closed it yet.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from msgspec.structs import replace

from memorywall.expressions.entry_fields import is_met_by
from memorywall.kinds.session_end import OPEN, find_end_reason, is_idle
from memorywall.kinds.sessions import PARTICIPANT, SESSION, Session, client_session
from memorywall.records.condition import AllOf, Condition, Path, Test
from memorywall.records.decision import Verb
from memorywall.records.entry import Entry
from memorywall.records.filter import EntryFilter
from memorywall.records.identifiers import is_same_name
from memorywall.records.session import SessionCounters
from memorywall.records.tier import Tier
from memorywall.service.access.subjects import sole_subject
from memorywall.service.access.targets import owner_target
from memorywall.service.access.visibility import load_visibility
from memorywall.service.entries.conditions import prepare_where
from memorywall.service.entries.governed_entries import read_value
from memorywall.service.requests.namespace_names import stored_filter
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.validation import check_name
from memorywall.sessions.access import target_of
from memorywall.sessions.checks import LONGEST_CLIENT_ID
from memorywall.sessions.stored import NAMESPACES, LoadedSession
from memorywall.storage.sql.record_table import SESSION_COUNTERS

_STORED = MappingProxyType({"open": OPEN, "closed": (*OPEN, "closed")})
"""The stored statuses that a session with a status may have, where they differ."""
_SHOWN = MappingProxyType({"open": OPEN})
_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class ListedSessions:
    """A page of sessions, newest first.

    next: the id after which the next page begins; None after the last page
    """

    sessions: list[tuple[LoadedSession, SessionCounters]]
    next: str | None


@dataclass(frozen=True, slots=True)
class ReusableSession:
    """The session that a person returns to.

    is_open: whether it accepts turns; otherwise a new one continues it
    """

    session: LoadedSession
    counters: SessionCounters
    is_open: bool


async def list_sessions(
    context: OperationContext,
    agent: str | None,
    *,
    status: str | None = None,
    subject: str | None = None,
    metadata: Mapping[str, str | int | float] = MappingProxyType({}),
    participating: bool = False,
    before: str | None = None,
    limit: int,
) -> ListedSessions:
    """Returns sessions of an agent: all of the caller's own, and those of another agent in which
    the caller participates.

    agent: None only with `participating`, for any agent
    status: a status, or `open`; None for any
    subject: only sessions with this person; None for any
    metadata: only sessions with these values
    participating: whether the sessions of other agents are listed in which the caller participates
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
        where=_where(metadata),
        before=before,
        limit=limit,
        counted=False,
    )
    wanted = await stored_filter(context, wanted)
    read = await (_of_others if participating else _of_agent)(context, wanted)
    found: list[tuple[LoadedSession, SessionCounters]] = []
    while True:
        page, before = await read(before)
        for loaded, counters in await _load(context, page):
            if _is_wanted(context, loaded, counters, wanted, status):
                found.append((loaded, counters))
            if len(found) == limit:
                return ListedSessions(found, loaded.id)
        if before is None:
            return ListedSessions(found, None)


async def find_named(
    context: OperationContext, subject: str | None, client_id: str
) -> tuple[LoadedSession, SessionCounters] | None:
    """Returns the caller's session with a person that it has given this name; None without one.

    subject: the person; None for that of a request bound to one, or else for nobody
    Raises ValidationError, MemoryAccessError.
    """
    principal = context.principal
    place = NAMESPACES[SESSION.name]
    context.authorize(Verb.READ, owner_target(context.tenant, principal.id, place))
    client_id = check_name("client_id", client_id, longest=LONGEST_CLIENT_ID)
    edge = client_session(principal.id, sole_subject(principal, subject), client_id)
    targets = [edge.target]
    # The edge of a sealed session is a digest.
    digest = await context.service.cipher.find_digest(context.transaction, edge.target)
    if digest is not None:
        targets.append(digest)
    ids = await context.transaction.edges.sources(edge.relation, targets, 1)
    entries = await context.transaction.entries.get_many(ids, context.now) if ids else []
    for loaded, counters in await _load(context, entries):
        if context.allows(Verb.READ, target_of(context, loaded)):
            return loaded, counters
    return None


async def find_reusable(context: OperationContext, subject: str | None) -> ReusableSession | None:
    """Returns the newest open session of the caller with a person, or else the newest one if its
    idle timeout has ended it; None without one.

    subject: the person; None for that of a request bound to one, or else for nobody
    Raises ValidationError, MemoryAccessError.
    """
    principal = context.principal
    place = NAMESPACES[SESSION.name]
    context.authorize(Verb.CREATE, owner_target(context.tenant, principal.id, place))
    wanted = sole_subject(principal, subject)
    newest = await _newest(context, "open", wanted)
    if newest is not None:
        return ReusableSession(*newest, is_open=True)
    newest = await _newest(context, None, wanted)
    if newest is not None and is_idle(newest[0].value, newest[1].last_activity_at, context.now):
        return ReusableSession(*newest, is_open=False)
    return None


async def _newest(
    context: OperationContext, status: str | None, subject: str | None
) -> tuple[LoadedSession, SessionCounters] | None:
    """Returns the caller's newest session with a person, None for nobody."""
    before: str | None = None
    while True:
        page = await list_sessions(
            context, context.principal.id, status=status, subject=subject, before=before, limit=20
        )
        for loaded, counters in page.sessions:
            if loaded.value.subject == subject:
                return loaded, counters
        if page.next is None:
            return None
        before = page.next


PageReader = Callable[[str | None], Awaitable[tuple[list[Entry], str | None]]]
"""Reads the entries before an id, and returns the id before which the next page begins."""


async def _of_agent(context: OperationContext, wanted: EntryFilter) -> PageReader:
    visible = await load_visibility(context, Verb.READ, wanted)
    if wanted.agent_id is not None and wanted.agent_id != context.principal.id:
        visible = replace(visible, owners=(wanted.agent_id,))
    wanted = await prepare_where(context, wanted, visible)

    async def read(before: str | None) -> tuple[list[Entry], str | None]:
        asked = replace(wanted, before=before)
        page, _ = await context.transaction.entries.search(asked, visible, context.now)
        return page, page[-1].id if len(page) == wanted.limit else None

    return read


async def _of_others(context: OperationContext, wanted: EntryFilter) -> PageReader:
    """Reads the sessions in which the caller participates, whose owners are many."""
    context.decide_by_row()
    ids: list[str] = []
    while page := await context.transaction.edges.sources(
        PARTICIPANT, (context.principal.id,), _AT_ONCE, ids[-1] if ids else ""
    ):
        ids += page
    ids.reverse()

    async def read(before: str | None) -> tuple[list[Entry], str | None]:
        asked = [one for one in ids if before is None or one < before][: wanted.limit]
        entries = await context.transaction.entries.get_many(asked, context.now) if asked else []
        found = sorted(entries, key=lambda one: one.id, reverse=True)
        return found, asked[-1] if len(asked) == wanted.limit else None

    return read


def _where(metadata: Mapping[str, str | int | float]) -> Condition | None:
    tests = tuple(
        Test(Path("value", ("metadata", name)), "=", (value,)) for name, value in metadata.items()
    )
    return tests[0] if len(tests) == 1 else AllOf(tests) if tests else None


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
    wanted: EntryFilter,
    status: str | None,
) -> bool:
    session, entry, principal = loaded.value, loaded.entry, context.principal.id
    if loaded.owner != principal and all(one.agent_id != principal for one in session.participants):
        return False
    # The store has applied these to the caller's own sessions.
    if loaded.owner != principal and not (
        context.allows(Verb.READ, target_of(context, loaded))
        and (wanted.agent_id is None or is_same_name(wanted.agent_id, loaded.owner))
        and (not wanted.about or not set(wanted.about).isdisjoint(entry.subjects))
        and (wanted.where is None or is_met_by(wanted.where, entry))
    ):
        return False
    is_over = find_end_reason(session, counters.last_activity_at, context.now) is not None
    present = "closed" if is_over else session.status
    return status is None or present in _SHOWN.get(status, (status,))
