"""Filters of the documents of a shard: readable documents and wanted documents."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from memorywall.recall.document import Document
from memorywall.recall.index_shard import IndexShard
from memorywall.records.filter import EntryFilter
from memorywall.records.filter_match import matches_fields
from memorywall.records.identifiers import forms_of_names, is_same_name, name_forms
from memorywall.records.recall import EntryOutcome, SearchSpec
from memorywall.records.session import belongs_to
from memorywall.records.tier import Tier


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardFilter:
    """The memory of an owner that the caller may read: all of it, unless some of these are given.

    namespaces: only entries in these namespaces
    tiers: only entries of these tiers
    entry_ids: only these entries
    subjects: only entries without other subjects than these
    limited_to: only entries in these namespaces, besides the other conditions
    session: only entries that belong to this session, besides the other conditions
    """

    owner: str
    namespaces: frozenset[str] | None = None
    tiers: frozenset[Tier] | None = None
    entry_ids: frozenset[str] | None = None
    subjects: frozenset[str] | None = None
    limited_to: frozenset[str] | None = None
    session: str | None = None

    @property
    def cuts_threads(self) -> bool:
        """Returns whether neighbours of a document in its thread may be unreadable."""
        limits = (self.entry_ids, self.subjects, self.limited_to, self.session)
        return any(limit is not None for limit in limits)


def readable_in(shard: IndexShard, parts: Sequence[ShardFilter]) -> bytearray | None:
    """1 for each document that the caller may read, None for all."""
    mask = _readable_by_place(shard, parts)
    subjects = parts[0].subjects if parts else None
    places = parts[0].limited_to if parts else None
    session = parts[0].session if parts else None
    if subjects is None and places is None and session is None:
        return mask
    bound = bytearray(shard.alive) if mask is None else bytearray(mask)
    for number, document in enumerate(shard.documents):
        if document is None:
            continue
        if subjects is not None and not subjects.issuperset(document.subjects):
            bound[number] = 0
        if places is not None and document.namespace not in places:
            bound[number] = 0
        if session is not None and not belongs_to(session, document.tier, document.session_id):
            bound[number] = 0
    return bound


def _readable_by_place(shard: IndexShard, parts: Iterable[ShardFilter]) -> bytearray | None:
    mask = bytearray(len(shard.documents))
    for part in parts:
        places: Iterable[Hashable]
        within: frozenset[Tier] | None = None
        if part.entry_ids is not None:
            for entry_id in part.entry_ids:
                if (number := shard.number(entry_id)) is not None:
                    mask[number] = 1
            continue
        if part.namespaces is not None:
            here = shard.namespaces()
            if part.tiers is None and here <= part.namespaces:
                return _all(shard)
            places = [("namespace", name) for name in here & part.namespaces]
            within = part.tiers
        elif part.tiers is not None:
            places = [("tier", tier) for tier in part.tiers]
        else:
            return _all(shard)
        for place in places:
            for number in shard.at(place):
                if within is None or _tier(shard, number) in within:
                    mask[number] = shard.alive[number]
    return mask


def _tier(shard: IndexShard, number: int) -> Tier | None:
    document = shard.documents[number]
    return None if document is None else document.tier


def wanted_in(shard: IndexShard, spec: SearchSpec, readable: bytearray | None) -> bytearray | None:
    """1 for each readable document that meets every condition, None for all."""
    places = list(_facets(spec))
    needs_a_look = _needs_a_look(spec)
    if not places and not shard.aside and not needs_a_look:
        return readable
    # As numbers, because a loop over the documents of a long session would take longer than the
    # ranking.
    both = int.from_bytes(shard.alive if readable is None else readable, "little")
    for one in places:
        both &= reduce(or_, map(shard.mask, one))
    mask = bytearray(both.to_bytes(len(shard.documents), "little"))
    # The facets of a document are conditions that it meets; others are looked at.
    for number in range(len(mask)) if needs_a_look else shard.aside:
        if mask[number]:
            document = shard.documents[number]
            mask[number] = document is not None and matches(document, spec)
    return mask


def matches(document: Document, spec: SearchSpec) -> bool:
    """Whether a document meets every condition of a search; access is not checked."""
    wanted = spec.wanted
    return (
        _is_in_scope(document, wanted)
        and matches_fields(document, wanted)
        and (spec.session_id is None or is_same_name(spec.session_id, document.session_id))
        and spec.outcome in (EntryOutcome.ANY, document.outcome)
        and document.trust >= spec.min_trust
        and (spec.valid_at is None or document.validity.holds_at(spec.valid_at))
        and (spec.reference_time is None or _stood(document, spec.reference_time))
    )


def _is_in_scope(document: Document, wanted: EntryFilter) -> bool:
    return (
        (not wanted.tiers or document.tier in wanted.tiers)
        and (wanted.agent_id is None or is_same_name(wanted.agent_id, document.agent_id))
        and (wanted.namespace is None or document.namespace in (wanted.namespace, *wanted.aliases))
        and document.namespace.startswith((wanted.namespace_prefix or "", *wanted.aliases))
    )


def _stood(document: Document, instant: str) -> bool:
    """Whether an entry existed unchanged at an instant."""
    return (
        document.created_at <= instant
        and document.updated_at <= instant
        and (document.expires_at is None or document.expires_at > instant)
    )


def _facets(spec: SearchSpec) -> Iterable[list[Hashable]]:
    """The conditions with facets; for each condition, the facets of which a document must have
    one."""
    wanted = spec.wanted
    if wanted.tiers:
        yield [("tier", tier) for tier in wanted.tiers]
    for tag in wanted.tags:
        yield [("tag", form) for form in name_forms(tag)]
    if wanted.tags_any:
        yield [("tag", form) for form in dict.fromkeys(forms_of_names(wanted.tags_any))]
    if wanted.namespace is not None:
        yield [("namespace", name) for name in (wanted.namespace, *wanted.aliases)]
    if wanted.kind is not None:
        yield [("kind", wanted.kind)]
    if wanted.about:
        yield [("subject", name) for name in wanted.about]
    for kind, value in (
        ("task", wanted.task_id),
        ("intent", wanted.intent_id),
        ("session", spec.session_id or wanted.session_id),
        ("outcome", None if spec.outcome is EntryOutcome.ANY else spec.outcome),
    ):
        if value is not None:
            yield [(kind, form) for form in name_forms(value)]


def _needs_a_look(spec: SearchSpec) -> bool:
    """Whether a condition has no facet, so that every document must be checked."""
    wanted = spec.wanted
    return (
        wanted.agent_id is not None
        or wanted.namespace_prefix is not None
        or wanted.pinned is not None
        or spec.min_trust > 0
        or spec.reference_time is not None
        or bool(wanted.statuses)
        or wanted.state != "live"
        or wanted.only_about is not None
        or wanted.only_session is not None
        or wanted.origin is not None
        or wanted.source is not None
        or (spec.session_id is not None and wanted.session_id is not None)
    )


def _all(shard: IndexShard) -> bytearray | None:
    return None if shard.is_whole else shard.alive
