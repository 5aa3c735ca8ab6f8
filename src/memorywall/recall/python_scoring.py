"""Scoring by words in plain Python, for an install without numpy and vectors."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from memorywall.recall.candidates import (
    Candidate,
    QueryTerm,
    ScoreNormalizer,
    ScoringQuery,
    Variant,
)
from memorywall.recall.document import Standing
from memorywall.recall.index_shard import IndexShard
from memorywall.recall.inverted_index import COUNT_BITS
from memorywall.recall.links import NOTHING

Scores = dict[int, float]
_COUNT = (1 << COUNT_BITS) - 1


class PythonScoring:
    """`Scoring` over the few documents that have a term or a date of the query."""

    best_dense = 0.0

    def __init__(
        self,
        shard: IndexShard,
        lexical: Scores,
        dates: Scores,
        wanted: bytearray | None,
    ) -> None:
        self._slice = shard
        self._lexical = lexical
        self._dates = dates
        self._found = [
            document for document in {**lexical, **dates} if wanted is None or wanted[document]
        ]
        self.best_lexical = max(
            (lexical.get(one, 0.0) + dates.get(one, 0.0) for one in self._found), default=0.0
        )

    def candidates(self, normalizer: ScoreNormalizer, count: int) -> list[Candidate]:
        found = self.of(self._found, normalizer)
        if len(found) <= count:
            return found
        documents = self._slice.documents

        def order(one: Candidate) -> tuple[float, str]:
            document = documents[one.document]
            return -one.score, "" if document is None else document.entry_id

        return heapq.nsmallest(count, found, key=order)

    def of(self, numbers: Sequence[int], normalizer: ScoreNormalizer) -> list[Candidate]:
        weights, standings = self._slice.weights, self._slice.standings
        authors = self._slice.authors
        found = []
        for document in numbers:
            lexical = self._lexical.get(document, 0.0) * normalizer.per_lexical
            date = self._dates.get(document, 0.0) * normalizer.per_lexical
            base, kept = lexical + date, normalizer.standings[standings[document]]
            author = weights.author if authors[document] == normalizer.author else 0.0
            score = base * kept + author
            found.append(Candidate(score, document, base, lexical * kept, 0.0, date * kept, author))
        return found


def score(
    shard: IndexShard,
    query: ScoringQuery,
    readable: bytearray | None,
    wanted: bytearray | None,
) -> PythonScoring:
    """See `candidates.Score`."""
    dates: Scores = {}
    for part in query.dates:
        for document in shard.at(part.place):
            if shard.alive[document] and (readable is None or readable[document]):
                dates[document] = dates.get(document, 0.0) + shard.weights.date * part.weight
    return PythonScoring(shard, _lexical(shard, query, readable), dates, wanted)


def _lexical(shard: IndexShard, query: ScoringQuery, readable: bytearray | None) -> Scores:
    weights = shard.weights
    lengths, k1 = shard.words.lengths, weights.saturation
    fixed = k1 * (1 - weights.length_share)
    by_length = k1 * weights.length_share / query.average if query.average else 0.0
    scores: Scores = {}
    matched: Scores = {}
    with_assistants = query.assistant < 1 and Standing.ASSISTANT in shard.standings
    for term in query.terms:
        in_full: set[int] = set()
        if with_assistants:
            in_full = _said_by_assistants_only(shard, term.text, readable)
        for document, count in _counts(shard, term, readable).items():
            norm = fixed + by_length * lengths[document]
            gained = term.weight * count * (k1 + 1) / (count + norm)
            if document in in_full:
                gained /= query.assistant
            scores[document] = scores.get(document, 0.0) + gained
            matched[document] = matched.get(document, 0.0) + term.weight
    every = sum(term.weight for term in query.terms)
    for document, weight in matched.items():
        scores[document] *= 1 + weights.coverage * weight / every
    return scores


def _said_by_assistants_only(shard: IndexShard, term: str, readable: bytearray | None) -> set[int]:
    """The documents whose text contains a term, if all are messages of assistants; else none."""
    present = shard.alive if readable is None else readable
    documents = {posting >> COUNT_BITS for posting in shard.words.own.get(term, ())}
    documents = {document for document in documents if present[document]}
    if all(shard.standings[document] == Standing.ASSISTANT for document in documents):
        return documents
    return set()


def _counts(shard: IndexShard, term: QueryTerm, readable: bytearray | None) -> Scores:
    """The weighted frequency of a term and its variants in each document, with its neighbours and
    its label."""
    counts: Scores = {}
    for text, share in (Variant(term.text, 1.0), *term.variants):
        _count(counts, shard, text, share, readable)
    return counts


def _count(
    counts: Scores, shard: IndexShard, term: str, share: float, readable: bytearray | None
) -> None:
    words, links, weights = shard.words, shard.links, shard.weights

    def add(document: int, count: float) -> None:
        counts[document] = counts.get(document, 0.0) + share * count

    for posting in words.own.get(term, ()):
        document, count = posting >> COUNT_BITS, posting & _COUNT
        if readable is not None and not readable[document]:
            continue
        after, before = links.next[document], links.previous[document]
        add(document, count)
        if after != NOTHING:
            asks = words.questions[document]
            add(after, count * (weights.previous_question if asks else weights.previous))
        if before != NOTHING:
            add(before, count * weights.next)
    for document in words.aside.get(term, ()):
        if readable is None or readable[document]:
            add(document, weights.aside)
