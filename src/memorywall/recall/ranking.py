"""Ranks documents: words and meaning first, then neighbours.

The functions read shards that must not change meanwhile, and may run in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from heapq import nsmallest
from typing import Any, NamedTuple

from memorywall.kinds.facts import FACT
from memorywall.recall.analyzer import Analyzer
from memorywall.recall.candidates import (
    Candidate,
    DatePart,
    QueryTerm,
    Score,
    ScoreNormalizer,
    Scoring,
)
from memorywall.recall.dates import UNITS
from memorywall.recall.document import VERIFIED, Document
from memorywall.recall.graph_walk import Link, Seed, walk
from memorywall.recall.index_shard import IndexShard
from memorywall.recall.parsed_query import ParsedQuery, ShardQuery
from memorywall.recall.prior import Prior, PriorScore
from memorywall.recall.query_weights import (
    Frequencies,
    absent_share,
    are_code,
    assistant_factor,
    unknown_share,
    weigh,
)
from memorywall.recall.variants import with_variants
from memorywall.recall.weights import Weights
from memorywall.records.recall import NO_USES, Signals

_CANDIDATES = 200
"""The most candidates of each shard."""
_BEST_OF_THREAD = 2
_SEEDS = 10
"""The best results from which the graph is walked."""
_NO_LINK = Link(0.0, "")
GiveWay = Callable[[], None]
"""Lets others use the interpreter that need it for a shorter time."""
_Found = tuple[IndexShard, Document, Candidate]


class Ranked(NamedTuple):
    """A ranked document with the parts of its score.

    parsed: the query or, of a query with several questions, the question that the score is for
    """

    score: float
    parsed: ParsedQuery
    shard: IndexShard
    document: Document
    candidate: Candidate
    thread: float
    graph: float
    link: str | None
    prior_score: PriorScore
    superseded: float = 1.0
    series: float = 1.0

    def contains(self, term: QueryTerm, near: Sequence[int]) -> bool:
        """Whether the document contains a term, as it is or as a variant, or the text of one of the
        documents near it does."""
        has, number = self.shard.words.has, self.candidate.document
        return has(term.text, number, near) or any(
            has(variant.text, number, near) for variant in term.variants
        )

    def similarities(self) -> list[float]:
        """The similarity of each passage of the document; empty without vectors of passages."""
        if self.parsed.vector is None or self.shard.vectors is None:
            return []
        return self.shard.vectors.passages(self.candidate.document, self.parsed.vector)

    def similarity(self) -> float | None:
        """The similarity of the document or of its best passage, from -1 to 1; None without a
        vector."""
        own = self.vector()
        if own is None or self.parsed.vector is None:
            return None
        return max(float(own @ self.parsed.vector), *self.similarities(), -1.0)

    def vector(self) -> Any:
        """The vector of the whole text of the document; None without one."""
        vectors = self.shard.vectors
        return None if vectors is None else vectors.of(self.candidate.document)

    def signals(self) -> Signals:
        """The parts of its score in the form of a response."""
        candidate, prior_score = self.candidate, self.prior_score
        return Signals(
            lexical=candidate.lexical,
            dense=candidate.dense,
            date=candidate.date,
            author=candidate.author,
            thread=self.thread,
            graph=self.graph,
            link=self.link,
            recency=prior_score.recency,
            outcome=prior_score.outcome,
            use=prior_score.use,
            prior=prior_score.factor,
            superseded=self.superseded,
            series=self.series,
            earlier_question=self.parsed.share,
            question=self.parsed.question,
            terms=_terms_in(self),
        )


def go_on() -> None:
    """Gives way to nobody."""


def rank(
    parts: Sequence[ShardQuery],
    parsed: ParsedQuery,
    prior: Prior,
    score: Score,
    weights: Weights,
    terms: Analyzer,
    give_way: GiveWay = go_on,
) -> list[Ranked]:
    """The matching documents, best first; equal scores in the order of ids.

    give_way: called between parts of the work that take some tenths of a millisecond
    """
    dates = list(parsed.dates)
    for distance, event in parsed.events:
        # The day of an event is that of the document that fits its name best.
        for best in rank(parts, event, prior, score, weights, terms, give_way)[:1]:
            if UNITS.index(distance.unit) >= UNITS.index(best.document.date_unit):
                dates += distance.dates(best.document.day)
    parsed = replace(parsed, dates=tuple(dict.fromkeys(dates)))
    frequencies = Frequencies(parts)
    parsed = with_variants(parts, parsed, frequencies, weights, terms)
    give_way()
    asked = weigh(parts, parsed, frequencies, weights)
    scorings = [score(one.shard, asked, one.readable, one.wanted) for one in parts]
    by_author = bool(parsed.names) and not any(
        one.best_lexical or one.best_dense for one in scorings
    )
    if by_author:
        # Of the question, only the author is known: what the author said, and what names the
        # author.
        asked = weigh(parts, replace(parsed, terms=parsed.names), frequencies, weights)
        said = DatePart(("author", parsed.author), 1.0)
        asked = asked._replace(dates=[] if parsed.author is None else [said])
        scorings = [score(one.shard, asked, one.readable, one.wanted) for one in parts]
    parsed = replace(
        parsed,
        weighted=asked.terms,
        unknown=unknown_share(parsed, frequencies),
        absent=absent_share(asked.terms, frequencies),
    )
    give_way()
    normalizers = _normalizers(parts, scorings, parsed, weights)
    found: list[_Found] = []
    for one, scoring, normalizer in zip(parts, scorings, normalizers, strict=True):
        found += _present(one.shard, scoring.candidates(normalizer, _CANDIDATES))
    has_links = weights.graph and any(one.shard.places.has_nodes for one in parts)
    links = _links(parts, found, terms) if has_links else {}
    if links:
        missing = links.keys() - {(shard.owner, one.document) for shard, _, one in found}
        for one, scoring, normalizer in zip(parts, scorings, normalizers, strict=True):
            numbers = sorted(number for owner, number in missing if owner == one.shard.owner)
            if numbers:
                found += _present(one.shard, scoring.of(numbers, normalizer))
    if by_author:
        found = [
            (shard, document, one._replace(author=one.author + one.date, date=0.0))
            for shard, document, one in found
        ]
    return _judge_all(parsed, found, links, prior, weights, give_way)


def _judge_all(
    parsed: ParsedQuery,
    found: Sequence[_Found],
    links: Mapping[tuple[str, int], Link],
    prior: Prior,
    weights: Weights,
    give_way: GiveWay,
) -> list[Ranked]:
    """The found documents, best first; equal scores in the order of ids."""
    give_way()
    places = [_thread_of(*one) for one in found]
    threads = _threads(found, places)
    ranked = []
    for (shard, document, candidate), place in zip(found, places, strict=True):
        give_way()
        link = links.get((shard.owner, candidate.document), _NO_LINK)
        # A document that only a link found may have no other signal.
        thread = threads.get(place, 0.0)
        ranked.append(_judge(parsed, shard, document, candidate, thread, link, prior, weights))
    ranked.sort(key=lambda one: (-one.score, one.document.entry_id))
    return ranked


def _normalizers(
    parts: Sequence[ShardQuery],
    scorings: Sequence[Scoring],
    parsed: ParsedQuery,
    weights: Weights,
) -> list[ScoreNormalizer]:
    """The factors for each shard. The best score of all shards scales the signals."""
    best_lexical = max((one.best_lexical for one in scorings), default=0.0)
    best_dense = max((one.best_dense for one in scorings), default=0.0)
    dense = 0.0 if parsed.vector is None else parsed.dense
    if dense and not parsed.is_weighted and are_code(parts):
        dense *= weights.code
    together = parsed.lexical + dense or 1.0
    per_lexical = parsed.lexical / together / best_lexical if best_lexical else 0.0
    per_dense = dense / together / best_dense if best_dense else 0.0
    # In the order of `Standing`.
    standings = (1.0, weights.question, assistant_factor(parsed, weights))
    author = parsed.author
    return [
        ScoreNormalizer(
            per_lexical,
            per_dense,
            None if author is None else one.shard.author_number(author),
            standings,
            together / parsed.lexical if parsed.lexical else 1.0,
        )
        for one in parts
    ]


def _present(shard: IndexShard, candidates: Sequence[Candidate]) -> Iterator[_Found]:
    for candidate in candidates:
        document = shard.documents[candidate.document]
        if document is not None:
            yield shard, document, candidate


def _links(
    parts: Sequence[ShardQuery], found: Sequence[_Found], terms: Analyzer
) -> dict[tuple[str, int], Link]:
    """The documents that are linked to the best candidates, by the owner of the shard and
    number."""
    best = nsmallest(_SEEDS, found, key=lambda one: (-one[2].score, one[1].entry_id))
    seeds = [
        Seed(candidate.score / best[0][2].score, shard, candidate.document, document)
        for shard, document, candidate in best
    ]
    return {
        (part.shard.owner, number): link
        for part, links in zip(parts, walk(parts, seeds, terms), strict=True)
        for number, link in links.items()
    }


def _threads(found: Sequence[_Found], places: Sequence[Hashable]) -> dict[Hashable, float]:
    """The mean score of the two best documents of each thread, and of the notes of each day; any
    other document counts as a thread.

    places: the thread of each of them
    """
    best: dict[Hashable, float] = {}
    second: dict[Hashable, float] = {}
    for (_, _, candidate), thread in zip(found, places, strict=True):
        base = candidate.base
        if base > best.get(thread, 0.0):
            second[thread] = best.get(thread, 0.0)
            best[thread] = base
        elif base > second.get(thread, 0.0):
            second[thread] = base
    return {
        thread: (highest + second[thread]) / _BEST_OF_THREAD for thread, highest in best.items()
    }


def _thread_of(shard: IndexShard, document: Document, candidate: Candidate) -> Hashable:
    if document.note_day is not None:
        return shard.owner, document.tier, document.namespace, document.note_day
    return shard.owner, document.thread or candidate.document


def _judge(
    parsed: ParsedQuery,
    shard: IndexShard,
    document: Document,
    candidate: Candidate,
    thread: float,
    link: Link,
    prior: Prior,
    weights: Weights,
) -> Ranked:
    thread *= weights.thread if document.note_day is None else weights.day
    graph = weights.graph * link.share
    if document.kind == FACT.name:
        graph *= 1 + weights.provenance * (document.trust - VERIFIED)
    prior_score = prior.of(document, shard.uses.get(candidate.document, NO_USES))
    return Ranked(
        (candidate.score + thread + graph) * prior_score.factor * parsed.share,
        parsed,
        shard,
        document,
        candidate,
        thread,
        graph,
        link.node or None,
        prior_score,
    )


def _terms_in(ranked: Ranked) -> tuple[str, ...]:
    """The words of the query and its context that occur in a document or its neighbours, and the
    variants that occur in place of a word."""
    links, words = ranked.shard.links, ranked.shard.words
    number = ranked.candidate.document
    occurs = partial(words.has, document=number, near=(links.previous[number], links.next[number]))

    def occurring() -> Iterator[str]:
        parsed = ranked.parsed
        for word, term in (*parsed.terms, *parsed.context):
            if occurs(term):
                yield word
            for variant in parsed.variants.get(term, ()):
                if occurs(variant.text):
                    yield variant.text

    return tuple(dict.fromkeys(occurring()))
