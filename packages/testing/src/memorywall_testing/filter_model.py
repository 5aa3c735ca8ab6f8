"""The meaning of a search, in plain Python: what cases compare the pages of a store with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from memorywall.expressions.entry_fields import is_met_by
from memorywall.records.decision import VisibilityFilter
from memorywall.records.entry import Entry, is_expired
from memorywall.records.filter import EntryFilter, position_of
from memorywall.records.identifiers import name_forms
from memorywall.records.session import SESSION_TIERS
from memorywall.records.tier import Tier

_CONDITIONS: dict[str, Callable[[Entry, Any], bool]] = {
    "tiers": lambda entry, tiers: entry.tier in tiers,
    "agent_id": lambda entry, name: entry.agent_id in name_forms(name),
    "except_owner": lambda entry, name: entry.owner != name,
    "namespace": lambda entry, name: entry.namespace == name,
    "namespace_prefix": lambda entry, start: entry.namespace.startswith(start),
    "key": lambda entry, name: entry.key in name_forms(name),
    "key_prefix": lambda entry, start: entry.key.startswith(name_forms(start)),
    "tags": lambda entry, tags: all(_has_tag(entry, tag) for tag in tags),
    "tags_any": lambda entry, tags: any(_has_tag(entry, tag) for tag in tags),
    "task_id": lambda entry, name: entry.scope.task_id in name_forms(name),
    "intent_id": lambda entry, name: entry.scope.intent_id in name_forms(name),
    "session_id": lambda entry, name: entry.scope.session_id in name_forms(name),
    "pinned": lambda entry, pinned: entry.pinned is pinned,
    "created_after": lambda entry, instant: entry.created_at > instant,
    "created_before": lambda entry, instant: entry.created_at < instant,
    "updated_after": lambda entry, instant: entry.updated_at > instant,
    "updated_before": lambda entry, instant: entry.updated_at < instant,
    "before": lambda entry, last: entry.id < last,
    "where": lambda entry, tree: is_met_by(tree, entry),
}
"""Whether an entry meets a condition of a filter that is given."""


def _has_tag(entry: Entry, tag: str) -> bool:
    return any(form in entry.tags for form in name_forms(tag))


def is_visible(entry: Entry, visibility: VisibilityFilter) -> bool:
    """Returns whether a search with this visibility filter may find an entry."""
    subjects, places = visibility.subjects, visibility.limited_to
    return (
        _is_reached(entry, visibility)
        and (subjects is None or set(subjects).issuperset(entry.subjects))
        and (places is None or entry.namespace in places)
        and (visibility.session is None or _is_inside(entry, visibility.session))
    )


def _is_reached(entry: Entry, visibility: VisibilityFilter) -> bool:
    scope, owner = entry.scope, entry.owner
    if owner in visibility.owners if owner else entry.namespace in visibility.namespaces:
        return True
    if entry.tier is Tier.EPISODIC:
        return owner in visibility.episodic or (entry.namespace, owner) in visibility.by_group
    if entry.tier is Tier.SESSION:
        return owner in visibility.session_owners
    return entry.tier is Tier.WORKING and (
        scope.task_id in visibility.tasks
        or scope.intent_id in visibility.intents
        or (scope.task_id is not None and scope.intent_id in visibility.coordinated)
    )


def _is_inside(entry: Entry, session: str) -> bool:
    own = entry.scope.session_id
    return own == session or (own is None and entry.tier not in SESSION_TIERS)


def expected_page(
    entries: Iterable[Entry], wanted: EntryFilter, visibility: VisibilityFilter, now: str
) -> tuple[list[Entry], int]:
    """Returns the page that a search must find in these entries, and the number of all matches."""
    checks = [
        (meets, value)
        for name, meets in _CONDITIONS.items()
        if (value := getattr(wanted, name)) not in (None, ())
    ]
    found = [
        entry
        for entry in entries
        if not is_expired(entry, now)
        and all(meets(entry, value) for meets, value in checks)
        and is_visible(entry, visibility)
    ]
    if wanted.position is not None:
        last = _place(wanted.position, wanted)
        found = [
            entry
            for entry in found
            if (
                _place_of(entry, wanted) > last
                if wanted.ascending
                else _place_of(entry, wanted) < last
            )
        ]
    found.sort(key=lambda entry: _place_of(entry, wanted), reverse=not wanted.ascending)
    end = None if wanted.limit is None else wanted.offset + wanted.limit
    page = found[wanted.offset : end]
    return page, len(found) if wanted.counted else len(page)


def _place_of(entry: Entry, wanted: EntryFilter) -> tuple[Any, ...]:
    return _place(position_of(entry, wanted.order), wanted)


def _place(position: tuple[str | int, str], wanted: EntryFilter) -> tuple[Any, ...]:
    # Ids grow with the time of creation.
    return position[1:] if wanted.order == "created" else position
