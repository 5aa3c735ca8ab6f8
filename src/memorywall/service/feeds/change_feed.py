"""The changes of memory that a principal may read, from the tenant's event log.

Access is decided for each event when it is delivered, with the rules of a list: an event about an
entry that the principal could not list is omitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from memorywall.kinds.registry import KINDS
from memorywall.records.decision import Verb, VisibilityFilter
from memorywall.records.entry import EMPTY_SCOPE, Entry, Provenance, Scope
from memorywall.records.errors import CursorLostError
from memorywall.records.event import Event, EventType
from memorywall.records.filter import EntryFilter
from memorywall.records.identifiers import is_same_name, normalize_name
from memorywall.records.session import belongs_to
from memorywall.records.tier import ReadAccess, Tier
from memorywall.service.access.targets import load_first_target, load_target, owner_target
from memorywall.service.access.visibility import load_visibility
from memorywall.service.feeds.event_feed import FeedPage
from memorywall.service.feeds.log_reader import PAGE
from memorywall.service.requests.event_log import last_sequence
from memorywall.service.requests.namespace_names import shown_namespace, stored_filter
from memorywall.service.requests.operation_context import OperationContext
from memorywall.tiers import NAMESPACE_TIERS, TASK_TIERS, TIERS

_SHARED = frozenset(NAMESPACE_TIERS)
_NOBODY = Provenance(principal="", kind="")
_LOST = (
    "the log does not contain the event `after`; read the entries again, and follow from the `next`"
    " of a request without `after`"
)


async def present_position(context: OperationContext) -> int:
    """Returns the position of changes that are still to come. Raises MemoryAccessError."""
    _check_reader(context)
    return await last_sequence(context.transaction)


async def changes_after(
    context: OperationContext,
    wanted: EntryFilter,
    after: int,
    limit: int,
    events: Sequence[Event] | None = None,
) -> FeedPage:
    """Returns changes that match `wanted` and that the principal may read, from at most `PAGE`
    events of the log.

    after: the `seq` of an event of the log, or 0
    events: the events after it; None to read them, the default
    Raises MemoryAccessError if the principal may not read, or not the only namespace that `wanted`
    names; CursorLostError.
    """
    _check_reader(context)
    wanted = await stored_filter(context, wanted, for_reading=True)
    await _check_namespace(context, wanted)
    rows = await _read_after(context, after) if events is None else events
    matching = [event for event in rows if _matches(wanted, event)]
    found = await _select_readable(context, wanted, matching) if matching else []
    if len(found) > limit:
        return FeedPage(found[:limit], found[limit - 1].seq, is_last=False)
    return FeedPage(found, rows[-1].seq if rows else after, is_last=len(rows) < PAGE)


async def _read_after(context: OperationContext, after: int) -> list[Event]:
    """Returns at most `PAGE` events of the log. Raises CursorLostError."""
    # The event at `after` is read as well, to see that the log contains it.
    rows = await context.transaction.events.list_from(after, PAGE + 1)
    if not after:
        return rows[:PAGE]
    if not rows or rows[0].seq != after:
        raise CursorLostError(_LOST)
    return rows[1:]


def _check_reader(context: OperationContext) -> None:
    target = owner_target(context.tenant, context.principal.id)
    context.authorize(Verb.OBSERVE, replace(target, is_filtered=True))


async def _check_namespace(context: OperationContext, wanted: EntryFilter) -> None:
    """Raises MemoryAccessError if no event can match because of the permissions of a namespace. One
    that does not exist yet can be followed."""
    if wanted.namespace is None or not wanted.tiers or not _SHARED.issuperset(wanted.tiers):
        return
    names = (wanted.namespace, *wanted.aliases)
    target = await load_first_target(context, wanted.tiers[0], names)
    limit = context.principal.namespaces
    if target.namespace is not None or (limit is not None and target.place not in limit):
        context.authorize(Verb.READ, target)


def _matches(wanted: EntryFilter, event: Event) -> bool:
    """Returns whether an event is about memory that `wanted` describes. For an archive, the entries
    are compared later."""
    if type(event.type) is not EventType or event.is_erased:
        return False
    for name, other in ((wanted.task_id, event.task_id), (wanted.intent_id, event.intent_id)):
        if name is not None and not is_same_name(name, other):
            return False
    if event.tier is None:
        return not wanted.tiers or not TASK_TIERS.isdisjoint(wanted.tiers)
    return (
        (not wanted.tiers or event.tier in wanted.tiers)
        and _has_name(wanted, event.namespace, event.key)
        and _has_kind(wanted, event.kind)
        and (not wanted.about or not set(wanted.about).isdisjoint(event.subjects or ()))
    )


def _has_name(wanted: EntryFilter, namespace: str, key: str) -> bool:
    if wanted.namespace is not None:
        is_inside = namespace in (wanted.namespace, *wanted.aliases)
    else:
        is_inside = namespace.startswith((wanted.namespace_prefix or "", *wanted.aliases))
    return is_inside and (wanted.key is None or is_same_name(wanted.key, key))


def _has_kind(wanted: EntryFilter, kind: str | None) -> bool:
    if wanted.kind is not None:
        return kind == wanted.kind
    return kind is None or kind not in KINDS or KINDS[kind].listed


async def _select_readable(
    context: OperationContext, wanted: EntryFilter, events: list[Event]
) -> list[Event]:
    """Returns the events that the principal may read, in the form for the principal."""
    within = await load_visibility(context, Verb.READ, wanted)
    if (limit := within.limited_to) is not None:
        events = [one for one in events if one.tier is None or one.namespace in limit]
    in_doubt = [one for one in events if one.tier is not None and _needs_entry(within, one)]
    entries = {}
    if in_doubt:
        ids = {one.entry_id for one in in_doubt}
        found = await context.transaction.entries.get_many(ids, context.now)
        entries = {entry.id: entry for entry in found}
    opened: dict[tuple[Tier, str, str, Scope], bool] = {}
    readable: list[Event] = []
    for event in events:
        if event.tier is None:
            if (archive := _own_archive(within, wanted, event)) is not None:
                readable.append(archive)
            continue
        entry = entries.get(event.entry_id)
        if not _is_about(within, event, entry) or not _is_inside(within, event, entry):
            continue
        if not _is_plain(within, event):
            about = entry or _entry_of(event)
            place = (about.tier, about.owner, about.namespace, about.scope)
            if place not in opened:
                may_be = _is_work(within, event) or _may_be_renamed(event)
                opened[place] = may_be and context.allows(
                    Verb.READ, await load_target(context, Verb.READ, about)
                )
            if not opened[place]:
                continue
        namespace = shown_namespace(context.principal, event.namespace)
        readable.append(
            event if namespace == event.namespace else replace(event, namespace=namespace)
        )
    return readable


def _owner_of(event: Event) -> str:
    """Returns the owner of the entry of an event, "" in a tier that is isolated by namespace."""
    return "" if event.tier in _SHARED else event.agent_id


def _is_plain(within: VisibilityFilter, event: Event) -> bool:
    """Returns whether the entry is the principal's own, or in a readable namespace. Its owner never
    changes, and its namespace only to another form of the same name, so the event alone shows
    that."""
    if event.tier in _SHARED:
        return event.namespace in within.namespaces
    return event.agent_id in within.owners


def _may_be_renamed(event: Event) -> bool:
    """Returns whether the namespace may have been renamed to NFC since the event."""
    return event.tier in _SHARED and normalize_name(event.namespace) != event.namespace


def _is_work(within: VisibilityFilter, event: Event) -> bool:
    """Returns whether the entry may be accessible through work, a group or a session."""
    if event.tier is None:
        return False
    access = TIERS[event.tier].access
    if access is ReadAccess.OWNER:
        return event.agent_id in within.session_owners
    if access is ReadAccess.COORDINATOR:
        by_group = (event.namespace, event.agent_id) in within.by_group
        return by_group or event.agent_id in within.episodic
    return access is ReadAccess.WORK and (
        event.task_id in within.tasks
        or event.intent_id in within.intents
        or (event.task_id is not None and event.intent_id in within.coordinated)
    )


def _needs_entry(within: VisibilityFilter, event: Event) -> bool:
    """Returns whether the decision depends on the present state of the entry."""
    if _is_plain(within, event):
        return within.subjects is not None or within.session is not None
    return _is_work(within, event)


def _is_about(within: VisibilityFilter, event: Event, entry: Entry | None) -> bool:
    """Returns whether the entry is about the subjects of the request only, at the version of the
    event and at present."""
    if within.subjects is None:
        return True
    if event.subjects is None and entry is None:
        return False
    about = {*(event.subjects or ()), *(() if entry is None else entry.subjects)}
    return about <= set(within.subjects)


def _is_inside(within: VisibilityFilter, event: Event, entry: Entry | None) -> bool:
    """Returns whether the entry belongs to the session of the request at present. Of the events
    about an entry that is gone, only its end names the session; the others are omitted."""
    if within.session is None:
        return True
    if entry is not None:
        return belongs_to(within.session, entry.tier, entry.scope.session_id)
    if event.session is None:
        return False
    return belongs_to(within.session, event.tier, event.session or None)


def _entry_of(event: Event) -> Entry:
    """Returns an entry that is gone, as far as an access decision needs it."""
    assert event.tier is not None, "the event is about one entry"  # noqa: S101
    scope = EMPTY_SCOPE
    if event.task_id is not None or event.intent_id is not None or event.session:
        scope = Scope(
            task_id=event.task_id, intent_id=event.intent_id, session_id=event.session or None
        )
    return Entry(
        tenant=event.tenant,
        id=event.entry_id,
        tier=event.tier,
        owner=_owner_of(event),
        agent_id=event.agent_id,
        namespace=event.namespace,
        key=event.key,
        value=b"",
        size=0,
        scope=scope,
        created_at=event.timestamp,
        updated_at=event.timestamp,
        created_by=event.actor,
        provenance=_NOBODY,
    )


def _own_archive(within: VisibilityFilter, wanted: EntryFilter, event: Event) -> Event | None:
    """Returns the archive of a task with those of its entries that match and are the principal's
    own, without values. Others lose their access to working memory with the end of the task.

    The archive contains neither kinds nor subjects, so a request that names one, or is bound to a
    person, gets no archive.
    """
    if wanted.kind is not None or wanted.about or within.subjects is not None:
        return None
    entries = [
        _name_of(one)
        for one in msgspec.json.decode(event.data or b"{}").get("snapshot", ())
        if one["agent_id"] in within.owners
        and (within.limited_to is None or one["namespace"] in within.limited_to)
        and _has_name(wanted, one["namespace"], one["key"])
    ]
    if not entries:
        return None
    data = msgspec.json.encode({"entries_archived": len(entries), "entries": entries})
    return replace(event, data=data)


def _name_of(archived: Mapping[str, Any]) -> dict[str, Any]:
    return {name: archived[name] for name in ("entry_id", "namespace", "key", "version")}
