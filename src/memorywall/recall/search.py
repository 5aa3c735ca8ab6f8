"""Search of memory by words and meaning (memory wall 11.4.2 and 11.5.1).

Access is decided before scoring, and again for each entry of the result. An entry that the caller
may not read is no candidate, counts in no statistic and is never shown.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Collection, Mapping, Sequence, Sized
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from unicodedata import normalize

from memorywall.recall.document import Document, highlight_in, is_searchable, read
from memorywall.recall.earlier_versions import as_of
from memorywall.recall.filtering import ShardFilter, matches, wanted_in
from memorywall.recall.findable import embed_latest
from memorywall.recall.index import Index, Readable, are_large
from memorywall.recall.index_shard import IndexShard
from memorywall.recall.parsed_query import ParsedQuery, ShardQuery
from memorywall.recall.prior import Prior
from memorywall.recall.query_parser import known_texts, parse_queries, readable_documents
from memorywall.recall.questions import merge_rankings
from memorywall.recall.ranking import GiveWay, Ranked, rank
from memorywall.recall.relevance import JudgedReply, judge
from memorywall.recall.series import asks_for_series, spread_over_sessions
from memorywall.recall.superseded import newer_first
from memorywall.records.clock import instant_to_milliseconds
from memorywall.records.decision import Verb
from memorywall.records.entry import Entry
from memorywall.records.errors import ValidationError
from memorywall.records.recall import (
    LONGEST_QUERY,
    MOST_HITS,
    Hit,
    Mode,
    SearchPage,
    SearchSpec,
    without_guidance,
)
from memorywall.records.words import fold_accents, normalize_text
from memorywall.service.access.targets import load_target
from memorywall.service.requests.namespace_names import is_named, stored_filter
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.runner.operation_runner import OperationTransactions

_MANY = 5_000
"""The number of documents from which scoring runs in a thread, so that it delays no request."""
_LONG = 50
"""The number of terms of a query from which scoring runs in a thread, likewise."""
_SPARE = 5
"""The number of additional fetched entries, because entries may have been deleted meanwhile."""
_log = logging.getLogger("memorywall.recall")


@dataclass(frozen=True, slots=True)
class RankedSearch:
    """A search whose documents are ranked; see `show`.

    parsed: the whole query; None if the caller may read nothing that could match
    searched: the shards with the documents that were candidates
    earlier: the entries that are shown in an earlier version instead, by id
    """

    spec: SearchSpec
    parsed: ParsedQuery | None = None
    searched: Sequence[ShardQuery] = ()
    ranked: Sequence[Ranked] = ()
    earlier: Mapping[str, Entry] = field(default_factory=dict)


async def search(
    index: Index, transactions: OperationTransactions, spec: SearchSpec, *, counted: bool = True
) -> SearchPage:
    """Returns the readable entries that match a query best. Guidance that an augmentation appended
    to the query does not affect the result.

    counted: whether hits count as used; false for callers that return only a part of them

    A caller without read access gets no entries. Raises ValidationError for a query that is blank
    or too long.
    """
    now = transactions.service.now()
    if spec.mode is not Mode.LEXICAL and spec.reference_time is None:
        await embed_latest(index, transactions.principal.tenant)
    async with ranking(index, transactions, (spec,)) as (one,):
        parsed = one.parsed
        if parsed is None:
            return SearchPage()
        (found,), _ = await transactions.read(show, index, (one,))
        is_long = are_large(entry for _, entry in found)
        make_hits = partial(_judge_hits, index, one, found)
        judged, hits = await index.in_turn(make_hits, is_long=is_long)
        covered = sum(part.shard.count(part.readable) for part in one.searched)
        pending = sum(part.shard.pending(part.readable) for part in one.searched)
    if counted:
        transactions.service.record_access((hit.entry for hit in hits), now)
        used = (hit.entry.id for hit in hits)
        transactions.service.usage_tracker.count(transactions.principal.tenant, used)
        _note_query(index, transactions, one.spec, parsed, now)
    model = None
    if index.embedder is not None and parsed.vector is not None:
        model = index.embedder.model
    return SearchPage(
        hits=hits,
        relevance=judged.relevance,
        answered=judged.answered,
        left_out=len(found) - len(hits),
        model=model,
        searched=covered,
        pending=pending,
    )


@asynccontextmanager
async def ranking(
    index: Index, transactions: OperationTransactions, specs: Sequence[SearchSpec]
) -> AsyncIterator[list[RankedSearch]]:
    """Ranks the documents of several searches, whose access is read on one snapshot. The index does
    not change within the context. Raises ValidationError like `search`."""
    now = transactions.service.now()
    specs = [
        replace(
            spec,
            query=normalize("NFC", without_guidance(spec.query)),
            context=normalize("NFC", spec.context),
            valid_at=spec.valid_at or spec.reference_time or now,
        )
        for spec in specs
    ]
    for spec in specs:
        _check(spec)
    if any(is_named(spec.wanted) for spec in specs):
        specs = await transactions.read(_with_stored_names, specs)
    wanted = [spec.wanted for spec in specs]
    tenant_index = index.tenant_index(transactions.principal.tenant)
    async with tenant_index.lock.changing():
        readable = await index.refresh(transactions, wanted, now)
        position = tenant_index.position
        known = [known_texts(spec, *one) for spec, one in zip(specs, readable, strict=True)]
    if not any(parts for parts, _ in readable):
        yield [RankedSearch(spec) for spec in specs]
        return
    vectors: dict[tuple[str, str], Any] = {}
    parsed = [await parse_queries(index, texts, vectors) for texts in known]

    async def refresh() -> list[Readable]:
        if tenant_index.position == position:
            return readable
        # Other searches may have updated the shards meanwhile, so access is read again with them.
        return await index.refresh(transactions, wanted, now)

    async with tenant_index.lock.reading_after(refresh) as present:
        yield [
            await _rank(index, transactions, spec, queries, *one)
            for spec, queries, one in zip(specs, parsed, present, strict=True)
        ]


async def _with_stored_names(
    context: OperationContext, specs: Sequence[SearchSpec]
) -> list[SearchSpec]:
    context.decide_by_row()
    return [
        replace(one, wanted=await stored_filter(context, one.wanted, for_reading=True))
        for one in specs
    ]


async def _rank(
    index: Index,
    transactions: OperationTransactions,
    spec: SearchSpec,
    queries: Sequence[ParsedQuery],
    parts: Sequence[ShardFilter],
    shards: Sequence[IndexShard],
) -> RankedSearch:
    if not parts:
        return RankedSearch(spec)
    searched = [_searched(one, parts, spec) for one in shards]
    earlier: dict[str, Entry] = {}
    if spec.reference_time is not None:
        searched, earlier = await as_of(index, transactions, spec, searched, spec.reference_time)
    moment = instant_to_milliseconds(spec.reference_time or transactions.service.now())
    prior = Prior(moment, index.weights, spec.outcome)

    def rank_all(give_way: GiveWay) -> list[Ranked]:
        arguments = (prior, index.score, index.weights, index.terms, give_way)
        rankings = [rank(searched, query, *arguments) for query in queries]
        return rankings[0] if len(rankings) == 1 else merge_rankings(rankings)

    longest = max(len(one.terms) for one in queries)
    is_long = sum(len(one.shard) for one in searched) >= _MANY or longest >= _LONG
    ranked = await index.in_turn(rank_all, is_long=is_long)
    whole = queries[0]
    if whole.vector is not None:
        ranked = newer_first(ranked, index.weights)
    if asks_for_series(spec.query):
        ranked = spread_over_sessions(ranked, index.weights)
    return RankedSearch(spec, whole, searched, ranked, earlier)


def _note_query(
    index: Index,
    transactions: OperationTransactions,
    spec: SearchSpec,
    parsed: ParsedQuery,
    now: str,
) -> None:
    """Notes the vector of a query, without its text, for the sample of the tenant."""
    if index.embedder is None or parsed.vector is None:
        return
    principal = transactions.principal
    subjects = dict.fromkeys((*(principal.subjects or ()), *spec.wanted.about))
    transactions.service.query_notes.add(
        principal.tenant,
        transactions.service.ids.next("query"),
        principal.id,
        now,
        index.embedder.model,
        tuple(subjects),
        parsed.vector.astype("<f2").tobytes(),
    )


def _check(spec: SearchSpec) -> None:
    if not spec.query.strip():
        raise ValidationError("`query` must not be blank")
    if len(spec.query) > LONGEST_QUERY:
        raise ValidationError(f"`query` may have at most {LONGEST_QUERY} characters")
    if len(spec.context) > LONGEST_QUERY:
        raise ValidationError(f"`context` may have at most {LONGEST_QUERY} characters")
    if not 1 <= spec.limit <= MOST_HITS:
        raise ValidationError(f"`limit` must be from 1 to {MOST_HITS}")


def _searched(shard: IndexShard, parts: Sequence[ShardFilter], spec: SearchSpec) -> ShardQuery:
    readable = readable_documents(shard, parts)
    wanted = wanted_in(shard, spec, readable)
    if readable is not None and any(
        part.cuts_threads for part in parts if part.owner == shard.owner
    ):
        # Other parts are whole threads. In this part, neighbours of a document may be unreadable.
        shard = shard.among(readable)
    return ShardQuery(shard=shard, readable=readable, wanted=wanted)


async def show(
    context: OperationContext,
    index: Index,
    found: Sequence[RankedSearch],
    also: Collection[str] = (),
) -> tuple[list[list[tuple[Ranked, Entry]]], dict[str, Entry]]:
    """Returns the best entries of each search that the caller may read, in their present state, and
    their ranks.

    also: ids of other entries to read, which this function does not authorize

    Returns the entries that were read as well, by id.
    """
    context.decide_by_row()
    hits: list[list[tuple[Ranked, Entry]]] = [[] for _ in found]
    entries: dict[str, Entry] = {}
    number, wanted = 0, set(also)
    while True:
        batches = [_batch(one, page, number) for one, page in zip(found, hits, strict=True)]
        wanted |= {one.document.entry_id for some in batches for one in some}
        if not wanted:
            return hits, entries
        read = await context.transaction.entries.get_many(wanted, context.now)
        entries |= {entry.id: entry for entry in read}
        for one, some, page in zip(found, batches, hits, strict=True):
            for ranked in some:
                if len(page) == one.spec.limit:
                    break
                entry = await _shown(context, index, one, ranked.document, entries)
                if entry is not None:
                    page.append((ranked, entry))
        number, wanted = number + 1, set()


def _batch(found: RankedSearch, hits: Sized, number: int) -> Sequence[Ranked]:
    """The documents that are read next, none if there are enough hits."""
    if len(hits) == found.spec.limit:
        return ()
    size = found.spec.limit + _SPARE
    return found.ranked[number * size : (number + 1) * size]


async def _shown(
    context: OperationContext,
    index: Index,
    found: RankedSearch,
    document: Document,
    entries: Mapping[str, Entry],
) -> Entry | None:
    """The entry of a document if it exists, is readable, and still meets every condition."""
    entry = entries.get(document.entry_id)
    if entry is None:
        return None
    target = await load_target(context, Verb.READ, entry)
    if not context.allows(Verb.READ, target):
        return None
    version = found.earlier.get(entry.id, entry)
    if version.version == document.version:
        return version
    still_matches = is_searchable(version) and matches(read(version, index.fields)[0], found.spec)
    return version if still_matches else None


def _judge_hits(
    index: Index, search: RankedSearch, found: Sequence[tuple[Ranked, Entry]], _: GiveWay
) -> tuple[JudgedReply, list[Hit]]:
    """Judges results, and makes the hits that the search shows."""
    spec = search.spec
    judged = judge(spec, search.searched, found, index.terms)
    hits = [
        Hit(
            entry=one.entry,
            score=one.ranked.score,
            relevance=one.relevance,
            evidence=one.evidence if spec.explain else None,
            signals=one.ranked.signals() if spec.explain else None,
            highlight=highlight_in(one.entry, index.fields, partial(_best_passage, one.ranked)),
        )
        for one in judged.kept
    ]
    return judged, hits


def _best_passage(ranked: Ranked, passages: list[str]) -> int:
    """The place of the passage with the most words of the query and the nearest meaning."""
    said = [fold_accents(normalize_text(passage).lower()) for passage in passages]
    terms = {term for _, term in ranked.parsed.terms}
    near = ranked.similarities()
    # The vectors are those of another version if the entry was updated meanwhile.
    near = near if len(near) == len(said) else [0.0] * len(said)
    by_words = [float(sum(term in one for term in terms)) for one in said]
    most, nearest = max(by_words) or 1.0, max(near) or 1.0
    return max(range(len(said)), key=lambda at: (by_words[at] / most + near[at] / nearest, -at))
