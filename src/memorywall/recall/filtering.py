"""Which documents of a slice may count, and which are wanted."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from memorywall.recall.document import Document
from memorywall.recall.slice import Slice
from memorywall.records.filter import Filter
from memorywall.records.recall import Outcome, Sought
from memorywall.records.tier import Tier


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """What of an owner's memory the caller may read: all of it, unless one of these says less.

    namespaces: what lies in these
    tiers: these tiers
    entry_ids: these entries
    """

    owner: str
    namespaces: frozenset[str] | None = None
    tiers: frozenset[Tier] | None = None
    entry_ids: frozenset[str] | None = None


def readable_in(slice_: Slice, parts: Iterable[Part]) -> bytearray | None:
    """1 for each document that may be read, None where all may."""
    mask = bytearray(len(slice_.documents))
    for part in parts:
        places: Iterable[Hashable]
        if part.entry_ids is not None:
            for entry_id in part.entry_ids:
                if (number := slice_.number(entry_id)) is not None:
                    mask[number] = 1
            continue
        if part.namespaces is not None:
            here = slice_.namespaces()
            if here <= part.namespaces:
                return _all(slice_)
            places = [("namespace", name) for name in here & part.namespaces]
        elif part.tiers is not None:
            places = [("tier", tier) for tier in part.tiers]
        else:
            return _all(slice_)
        for place in places:
            for number in slice_.at(place):
                mask[number] = slice_.alive[number]
    return mask


def wanted_in(slice_: Slice, sought: Sought, readable: bytearray | None) -> bytearray | None:
    """1 for each document that may be read and meets every condition, None for all."""
    places = list(_places(sought))
    if not places and not _needs_a_look(sought):
        return readable
    lists = [
        [number for place in alternatives for number in slice_.at(place)] for alternatives in places
    ]
    numbers = min(lists, key=len) if lists else range(len(slice_.documents))
    mask = bytearray(len(slice_.documents))
    for number in numbers:
        document = slice_.documents[number]
        if document is None or (readable is not None and not readable[number]):
            continue
        mask[number] = matches(document, sought)
    return mask


def matches(document: Document, sought: Sought) -> bool:
    """Whether a document meets every condition of a search, except that it can be read."""
    wanted = sought.wanted
    return (
        _lies_where(document, wanted)
        and all(tag in document.tags for tag in wanted.tags)
        and (not wanted.tags_any or any(tag in document.tags for tag in wanted.tags_any))
        and (wanted.pinned is None or document.pinned is wanted.pinned)
        and (sought.session_id is None or document.session_id == sought.session_id)
        and sought.outcome in (Outcome.ANY, document.outcome)
        and document.trust >= sought.min_trust
        and (sought.as_of is None or _stood(document, sought.as_of))
    )


def _lies_where(document: Document, wanted: Filter) -> bool:
    return (
        (not wanted.tiers or document.tier in wanted.tiers)
        and (wanted.agent_id is None or document.agent_id == wanted.agent_id)
        and (wanted.namespace is None or document.namespace == wanted.namespace)
        and document.namespace.startswith(wanted.namespace_prefix or "")
        and (wanted.task_id is None or document.task_id == wanted.task_id)
        and (wanted.intent_id is None or document.intent_id == wanted.intent_id)
    )


def _stood(document: Document, instant: str) -> bool:
    """Whether an entry stood at an instant as it stands now, and what it says held then."""
    return (
        document.created_at <= instant
        and document.updated_at <= instant
        and (document.expires_at is None or document.expires_at > instant)
        and (document.valid_from is None or document.valid_from <= instant)
        and (document.valid_until is None or document.valid_until > instant)
    )


def _places(sought: Sought) -> Iterable[list[Hashable]]:
    """Each condition that names a place, as places of which one must do."""
    wanted = sought.wanted
    if wanted.tiers:
        yield [("tier", tier) for tier in wanted.tiers]
    for tag in wanted.tags:
        yield [("tag", tag)]
    if wanted.tags_any:
        yield [("tag", tag) for tag in dict.fromkeys(wanted.tags_any)]
    for kind, value in (
        ("namespace", wanted.namespace),
        ("task", wanted.task_id),
        ("intent", wanted.intent_id),
        ("session", sought.session_id),
        ("outcome", None if sought.outcome is Outcome.ANY else sought.outcome),
    ):
        if value is not None:
            yield [(kind, value)]


def _needs_a_look(sought: Sought) -> bool:
    """Whether a condition names no place, so that every document has to be looked at."""
    wanted = sought.wanted
    return (
        wanted.agent_id is not None
        or wanted.namespace_prefix is not None
        or wanted.pinned is not None
        or sought.min_trust > 0
        or sought.as_of is not None
    )


def _all(slice_: Slice) -> bytearray | None:
    return None if slice_.is_whole else slice_.alive
