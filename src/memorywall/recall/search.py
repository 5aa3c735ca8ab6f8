"""Searching memory by words and meaning (memory wall 11.4.2 and 11.5.1).

The wall decides what may be read before anything is scored, and once more about each entry that is
about to be shown: what may not be read is no candidate, counts in no statistic and is never shown.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from memorywall.policy.decide import decide
from memorywall.recall.asking import authors_named, dates_named, without
from memorywall.recall.document import Document, is_searchable, read
from memorywall.recall.filtering import Part, matches, readable_in, wanted_in
from memorywall.recall.index import Index
from memorywall.recall.prior import Prior
from memorywall.recall.ranking import Question, Ranked, Searched, rank
from memorywall.recall.reachable import parts_of
from memorywall.recall.slice import Slice
from memorywall.recall.terms import words_of
from memorywall.records.clock import instant_to_milliseconds
from memorywall.records.decision import Verb
from memorywall.records.entry import Entry
from memorywall.records.errors import UnavailableError, ValidationError
from memorywall.records.principal import Principal
from memorywall.records.recall import LONGEST_QUERY, MOST_HITS, Found, Hit, Mode, Sought
from memorywall.storage.port import Transaction
from memorywall.wall.door import target_of

_MANY = 5_000
"""Documents from which on a search is scored in a thread, so that others are served meanwhile."""
_SPARE = 5
"""How many more are fetched than are wanted, for one may have gone meanwhile."""
_log = logging.getLogger("memorywall.recall")


async def search(
    index: Index, principal: Principal, sought: Sought, *, counted: bool = True
) -> Found:
    """The entries that answer a query best, of those the caller may read.

    counted: whether what is found counts as used; not so for a caller that shows only a part
    Nothing is found by a caller who may read nothing. Raises ValidationError for a query that is
    blank or too long.
    """
    _check(sought)
    door = index.door
    now = door.now()

    async def reachable(transaction: Transaction) -> list[Part]:
        return await parts_of(transaction, principal, sought.wanted, now)

    parts = await door.store.read(principal.tenant, reachable)
    owners = list(dict.fromkeys(part.owner for part in parts))
    if not owners:
        return Found()
    held = index.held(principal.tenant)
    async with held.gate.changing():
        slices = await index.slices(principal.tenant, owners, now)
        named = authors_named(sought.query, slices, lambda one: _readable(one, parts))
    question = await _question(index, sought, *named)
    async with held.gate.reading():
        searched = [_searched(one, parts, sought) for one in slices]
        prior = Prior(instant_to_milliseconds(sought.as_of or now), index.weights, sought.outcome)
        arguments = (searched, question, prior, index.score, index.weights)
        if sum(len(one) for one in slices) < _MANY:
            ranked = rank(*arguments)
        else:
            ranked = await asyncio.to_thread(rank, *arguments)
        hits = await _show(index, principal, sought, question, ranked, now)
        pending = sum(one.slice.pending(one.readable) for one in searched)
    if counted:
        door.accesses.note((hit.entry for hit in hits), now)
        door.accesses.count(principal.tenant, (hit.entry.id for hit in hits))
    model = None
    if index.embedder is not None and question.vector is not None:
        model = index.embedder.model
    return Found(hits=hits, model=model, pending=pending)


def _check(sought: Sought) -> None:
    if not words_of(sought.query):
        raise ValidationError("`query` must have a word in it")
    if len(sought.query) > LONGEST_QUERY:
        raise ValidationError(f"`query` may have at most {LONGEST_QUERY} characters")
    if not 1 <= sought.limit <= MOST_HITS:
        raise ValidationError(f"`limit` must be from 1 to {MOST_HITS}")


async def _question(
    index: Index, sought: Sought, names: Sequence[str], authors: set[str]
) -> Question:
    bare = without(sought.query, names)
    terms: list[tuple[str, str]] = []
    dates: list[Hashable] = []
    if sought.mode is not Mode.DENSE:
        terms = [(word, index.terms.of_word(word)) for word in words_of(bare)]
        dates = dates_named(bare)
    vector: Any = None
    if sought.mode is not Mode.LEXICAL and index.embedder is not None:
        vector = await _embed(index, bare)
    return Question(
        terms=tuple((word, term) for word, term in terms if term),
        dates=tuple(dates),
        author=next(iter(authors)) if len(authors) == 1 else None,
        vector=vector,
        lexical=0.0 if sought.mode is Mode.DENSE else index.weights.lexical,
        dense=index.weights.dense,
    )


async def _embed(index: Index, text: str) -> Any:
    """The vector of a query, None where the embedder cannot be had in time: words still find."""
    try:
        return (await index.embed([text]))[0]
    except (UnavailableError, TimeoutError):
        _log.warning("the embedder cannot be had; searched by words only")
        return None


def _readable(slice_: Slice, parts: Sequence[Part]) -> bytearray | None:
    return readable_in(slice_, [part for part in parts if part.owner == slice_.owner])


def _searched(slice_: Slice, parts: Sequence[Part], sought: Sought) -> Searched:
    readable = _readable(slice_, parts)
    wanted = wanted_in(slice_, sought, readable)
    if readable is not None and any(
        part.entry_ids is not None for part in parts if part.owner == slice_.owner
    ):
        # Other parts are whole threads. Here what stands beside a document may not be readable.
        slice_ = slice_.among(readable)
    return Searched(slice=slice_, readable=readable, wanted=wanted)


async def _show(
    index: Index,
    principal: Principal,
    sought: Sought,
    question: Question,
    ranked: Sequence[Ranked],
    now: str,
) -> list[Hit]:
    """The best of what is ranked, as it is now, where the wall lets the caller read it."""
    hits: list[Hit] = []
    for some in _some(ranked, sought.limit + _SPARE):
        shown = await _fetch(index, principal, sought, [one.document for one in some], now)
        for one in some:
            entry = shown.get(one.document.entry_id)
            if entry is None:
                continue
            signals = one.signals(question) if sought.explain else None
            hits.append(Hit(entry=entry, score=one.score, signals=signals))
            if len(hits) == sought.limit:
                return hits
    return hits


def _some(ranked: Sequence[Ranked], size: int) -> Iterator[Sequence[Ranked]]:
    for start in range(0, len(ranked), size):
        yield ranked[start : start + size]


async def _fetch(
    index: Index, principal: Principal, sought: Sought, documents: Sequence[Document], now: str
) -> dict[str, Entry]:
    """The entries that are there, may be read, and still meet every condition."""
    known = {document.entry_id: document for document in documents}

    def still_matches(entry: Entry) -> bool:
        if entry.version == known[entry.id].version:
            return True
        return is_searchable(entry) and matches(read(entry, index.fields)[0], sought)

    async def script(transaction: Transaction) -> dict[str, Entry]:
        shown = {}
        for entry in await transaction.entries.get_many(principal.tenant, list(known), now):
            target = await target_of(transaction, principal, Verb.READ, entry, now)
            if decide(principal, Verb.READ, target).allowed and still_matches(entry):
                shown[entry.id] = entry
        return shown

    return await index.door.store.read(principal.tenant, script)
