"""Ranks documents: words and meaning first, then neighbours.

The functions read shards that must not change meanwhile, and may run in a thread.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from memorywall.recall.analyzer import one_edit_away
from memorywall.recall.candidates import (
    Candidate,
    DatePart,
    QueryTerm,
    Score,
    ScoreNormalizer,
    Scoring,
    ScoringQuery,
)
from memorywall.recall.document import Document
from memorywall.recall.index_shard import IndexShard
from memorywall.recall.prior import Prior, PriorScore
from memorywall.recall.weights import Weights
from memorywall.records.recall import NO_USES, Signals

_CANDIDATES = 200
"""The most candidates of each shard."""
_BEST_OF_THREAD = 2
_MOST_CORRECTED = 8
"""The most terms of a query whose absent terms are corrected."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardQuery:
    """A shard with its readable and its wanted documents; None for all."""

    shard: IndexShard
    readable: bytearray | None
    wanted: bytearray | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedQuery:
    """A parsed query.

    terms: pairs of a word and its term
    context: such pairs of the text before the query
    dates: the parts of dates in the query
    author: the only named author, None for no or several authors
    vector: the vector of the query, None for a search by words
    lexical, dense: the weights of words and meaning
    asks_assistant: whether the query asks what an assistant said
    question: the text, if this is one of several questions of a query
    share: the factor of the scores
    """

    terms: tuple[tuple[str, str], ...]
    context: tuple[tuple[str, str], ...] = ()
    dates: tuple[Hashable, ...] = ()
    author: str | None = None
    vector: Any = None
    lexical: float = 1.0
    dense: float = 1.0
    asks_assistant: bool = False
    question: str | None = None
    share: float = 1.0


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
    prior_score: PriorScore
    superseded: float = 1.0
    series: float = 1.0

    def similarities(self) -> list[float]:
        """The similarity of each passage of the document; empty without vectors of passages."""
        if self.parsed.vector is None or self.shard.vectors is None:
            return []
        return self.shard.vectors.passages(self.candidate.document, self.parsed.vector)

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


def rank(
    parts: Sequence[ShardQuery], parsed: ParsedQuery, prior: Prior, score: Score, weights: Weights
) -> list[Ranked]:
    """The matching documents, best first; equal scores in the order of ids."""
    asked = _weigh(parts, parsed, weights)
    scorings = [score(one.shard, asked, one.readable, one.wanted) for one in parts]
    found = _candidates(parts, scorings, parsed, weights)
    threads = _threads(found)
    ranked = [_judge(parsed, *one, threads, prior, weights) for one in found]
    ranked.sort(key=lambda one: (-one.score, one.document.entry_id))
    return ranked


def _weigh(parts: Sequence[ShardQuery], parsed: ParsedQuery, weights: Weights) -> ScoringQuery:
    """The query for all shards, with statistics of readable documents only."""
    size, total = 0, 0
    for one in parts:
        size += len(one.shard) if one.readable is None else one.readable.count(1)
        total += one.shard.words.total_of(one.readable)
    terms: list[QueryTerm] = []
    common: list[QueryTerm] = []
    shares = dict.fromkeys((term for _, term in parsed.terms), 1.0)
    for _, term in parsed.context:
        shares.setdefault(term, weights.context)
    present: set[str] = set()
    for text, share in shares.items():
        frequency = _frequency(text, parts)
        if frequency:
            present.add(text)
        is_common = frequency > max(weights.common_from, weights.common * size)
        (common if is_common else terms).append(QueryTerm(text, share * _rarity(size, frequency)))
    # A long query has words that are simply in no text, and enough others.
    for text in _absent(parsed, present):
        corrected, frequency = _corrected(text, parts)
        if frequency and corrected not in shares:
            share = weights.corrected * shares[text]
            terms.append(QueryTerm(corrected, share * _rarity(size, frequency)))
    dates = []
    for place in parsed.dates:
        frequency = sum(one.shard.frequency(place, one.readable) for one in parts)
        if frequency:
            dates.append(DatePart(place, _rarity(size, frequency)))
    # Common terms are ignored beside other terms, and are used if there are no others.
    average = total / size if size else 0.0
    assistant = _assistant_factor(parsed, weights)
    return ScoringQuery(terms or common, dates, average, parsed.vector, assistant)


def _absent(parsed: ParsedQuery, present: set[str]) -> Iterable[str]:
    """The terms to correct: in a short query, those of words that are in no text in any
    language."""
    pairs = (*parsed.terms, *parsed.context)
    if len({word for word, _ in pairs}) > _MOST_CORRECTED:
        return ()
    found = {word for word, term in pairs if term in present}
    return dict.fromkeys(term for word, term in pairs if word not in found)


def _are_code(parts: Sequence[ShardQuery]) -> bool:
    """Whether most of the readable documents are programs."""
    code = sum(one.shard.code_count(one.readable) for one in parts)
    return code > 0 and 2 * code > sum(one.shard.count(one.readable) for one in parts)


def _frequency(term: str, parts: Sequence[ShardQuery]) -> int:
    return sum(one.shard.words.frequency(term, one.readable) for one in parts)


def _corrected(term: str, parts: Sequence[ShardQuery]) -> tuple[str, int]:
    """The most frequent readable term that is one edit away from a term that is in no text, with
    its frequency; the term itself and 0 if there is none."""
    best, highest = term, 0
    for other in one_edit_away(term):
        if any(other in one.shard.words.own for one in parts):
            frequency = _frequency(other, parts)
            if frequency > highest:
                best, highest = other, frequency
    return best, highest


def _rarity(size: int, frequency: int) -> float:
    return math.log(1 + (size - frequency + 0.5) / (frequency + 0.5))


def _candidates(
    parts: Sequence[ShardQuery],
    scorings: Sequence[Scoring],
    parsed: ParsedQuery,
    weights: Weights,
) -> list[tuple[IndexShard, Document, Candidate]]:
    best_lexical = max((one.best_lexical for one in scorings), default=0.0)
    best_dense = max((one.best_dense for one in scorings), default=0.0)
    dense = 0.0 if parsed.vector is None else parsed.dense
    if dense and _are_code(parts):
        dense *= weights.code
    together = parsed.lexical + dense or 1.0
    per_lexical = parsed.lexical / together / best_lexical if best_lexical else 0.0
    per_dense = dense / together / best_dense if best_dense else 0.0
    # In the order of `Standing`.
    standings = (1.0, weights.question, _assistant_factor(parsed, weights))
    found = []
    for one, scoring in zip(parts, scorings, strict=True):
        author = None if parsed.author is None else one.shard.author_number(parsed.author)
        normalizer = ScoreNormalizer(per_lexical, per_dense, author, standings)
        documents = one.shard.documents
        for candidate in scoring.candidates(normalizer, _CANDIDATES):
            document = documents[candidate.document]
            if document is not None:
                found.append((one.shard, document, candidate))
    return found


def _assistant_factor(parsed: ParsedQuery, weights: Weights) -> float:
    return 1.0 if parsed.asks_assistant else weights.assistant


def _threads(found: Sequence[tuple[IndexShard, Document, Candidate]]) -> dict[Hashable, float]:
    """The mean score of the two best documents of each thread, and of the notes of each day; any
    other document counts as a thread."""
    best: dict[Hashable, float] = {}
    second: dict[Hashable, float] = {}
    for shard, document, candidate in found:
        thread = _thread_of(shard, document, candidate)
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
    threads: dict[Hashable, float],
    prior: Prior,
    weights: Weights,
) -> Ranked:
    factor = weights.thread if document.note_day is None else weights.day
    thread = factor * threads[_thread_of(shard, document, candidate)]
    prior_score = prior.of(document, shard.uses.get(candidate.document, NO_USES))
    return Ranked(
        (candidate.score + thread) * prior_score.factor * parsed.share,
        parsed,
        shard,
        document,
        candidate,
        thread,
        prior_score,
    )


def _terms_in(ranked: Ranked) -> tuple[str, ...]:
    """The words of the query and its context that occur in a document or its neighbours."""
    links, words = ranked.shard.links, ranked.shard.words
    number = ranked.candidate.document
    near = {number, links.previous[number], links.next[number]}
    found = []
    for word, term in (*ranked.parsed.terms, *ranked.parsed.context):
        if words.has(term, near) or number in words.aside.get(term, ()):
            found.append(word)
    return tuple(dict.fromkeys(found))
