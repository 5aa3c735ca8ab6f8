"""Scoring by words and by meaning over whole arrays, with numpy."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from memorywall.recall.candidates import (
    Candidate,
    ScoreNormalizer,
    ScoringQuery,
    Variant,
)
from memorywall.recall.document import Standing
from memorywall.recall.index_shard import IndexShard
from memorywall.recall.inverted_index import COUNT_BITS

Floats = npt.NDArray[np.float32]
_COUNT = np.uint32((1 << COUNT_BITS) - 1)


class NumpyScoring:
    """`Scoring` over all documents of a shard.

    without_vector: the documents without a vector, None in a search by words
    wanted: the possible candidates, None for all
    """

    def __init__(
        self,
        shard: IndexShard,
        lexical: Floats,
        dates: Floats | None,
        dense: Floats | None,
        without_vector: npt.NDArray[np.bool_] | None,
        wanted: npt.NDArray[np.bool_] | None,
    ) -> None:
        self._slice = shard
        self._lexical = lexical
        self._dates = dates
        self._dense = dense
        self._without_vector = without_vector
        self._wanted = wanted
        self.best_lexical = self._best(lexical if dates is None else lexical + dates)
        self.best_dense = 0.0 if dense is None else self._best(dense)

    def _best(self, scores: Floats) -> float:
        if self._wanted is not None:
            scores = scores[self._wanted]
        return float(scores.max(initial=0))

    def candidates(self, normalizer: ScoreNormalizer, count: int) -> list[Candidate]:
        weights = self._slice.weights
        base = self._lexical * np.float32(normalizer.per_lexical)
        if self._dates is not None:
            base += self._dates * np.float32(normalizer.per_lexical)
        if self._dense is not None:
            dense = np.maximum(self._dense, 0)
            dense *= np.float32(normalizer.per_dense)
            base += dense
            del dense
        if self._without_vector is not None:
            base[self._without_vector] *= np.float32(normalizer.alone)
        if self._wanted is not None:
            base *= self._wanted
        factors = np.array(normalizer.standings, np.float32)
        score = base * factors[_view(self._slice.standings, np.uint8)]
        if normalizer.author is not None:
            said = (_view(self._slice.authors, np.int32) == normalizer.author) & (base > 0)
            score[said] += np.float32(weights.author)
        return self.of(self._best_of(score, count), normalizer)

    def _best_of(self, score: Floats, count: int) -> list[int]:
        """The documents with the highest scores above zero; of equals, those with the lower ids."""
        # Most documents do not match, and the selection among many equal scores is slow.
        positive = score[score > 0]
        last = np.partition(positive, -count)[-count] if len(positive) > count else 0
        best: list[int] = np.flatnonzero(score > last).tolist()
        if last > 0:
            equals: list[int] = np.flatnonzero(score == last).tolist()
            best += heapq.nsmallest(count - len(best), equals, key=self._entry_id)
        return best

    def _entry_id(self, number: int) -> str:
        document = self._slice.documents[number]
        return "" if document is None else document.entry_id

    def of(self, numbers: Sequence[int], normalizer: ScoreNormalizer) -> list[Candidate]:
        weights, shard = self._slice.weights, self._slice
        documents = np.array(numbers, np.intp)
        nothing = np.zeros(len(documents))
        lexical = self._lexical[documents].astype(np.float64) * normalizer.per_lexical
        dense, date = nothing, nothing
        if self._dates is not None:
            date = self._dates[documents].astype(np.float64) * normalizer.per_lexical
        if self._dense is not None:
            dense = np.maximum(self._dense[documents].astype(np.float64), 0) * normalizer.per_dense
        if self._without_vector is not None:
            alone = np.where(self._without_vector[documents], normalizer.alone, 1.0)
            lexical, date = lexical * alone, date * alone
        kept = np.array(normalizer.standings)[_view(shard.standings, np.uint8)[documents]]
        author = nothing
        if normalizer.author is not None:
            said = _view(shard.authors, np.int32)[documents] == normalizer.author
            author = np.where(said, weights.author, 0.0)
        base = lexical + dense + date
        columns = (
            base * kept + author,
            documents,
            base,
            lexical * kept,
            dense * kept,
            date * kept,
            author,
        )
        return list(
            map(Candidate._make, zip(*(column.tolist() for column in columns), strict=True))
        )


def score(
    shard: IndexShard,
    query: ScoringQuery,
    readable: bytearray | None,
    wanted: bytearray | None,
) -> NumpyScoring:
    """See `candidates.Score`."""
    may_count = None if readable is None else _view(readable, np.bool_)
    dense, without_vector = None, None
    if query.vector is not None and shard.vectors is not None:
        dense = shard.vectors.similarities(query.vector, may_count)
        # Whether other documents wait for their vectors decides nothing: they may be hidden.
        without_vector = ~shard.vectors.known()
    return NumpyScoring(
        shard,
        _lexical(shard, query, may_count),
        _dates(shard, query, may_count),
        dense,
        without_vector,
        None if wanted is None else _view(wanted, np.bool_),
    )


def _dates(
    shard: IndexShard, query: ScoringQuery, readable: npt.NDArray[np.bool_] | None
) -> Floats | None:
    if not query.dates:
        return None
    scores = np.zeros(len(shard.documents), np.float32)
    for part in query.dates:
        if documents := shard.at(part.place):
            scores[_view(documents, np.int32)] += np.float32(shard.weights.date * part.weight)
    scores *= _view(shard.alive, np.bool_)
    return scores if readable is None else scores * readable


def _lexical(
    shard: IndexShard, query: ScoringQuery, readable: npt.NDArray[np.bool_] | None
) -> Floats:
    weights = shard.weights
    size, k1 = len(shard.words.lengths), weights.saturation
    scores = np.zeros(size, np.float32)
    if not query.terms:
        return scores
    norm = _view(shard.words.lengths, np.int32).astype(np.float32)
    norm *= np.float32(k1 * weights.length_share / query.average if query.average else 0.0)
    norm += np.float32(k1 * (1 - weights.length_share))
    matched = np.zeros(size, np.float32)
    with_assistants = query.assistant < 1 and Standing.ASSISTANT in shard.standings
    # The last element collects the values of missing neighbours.
    counts = np.zeros(size + 1, np.float32)
    for term in query.terms:
        for text, share in (Variant(term.text, 1.0), *term.variants):
            _count(counts, shard, text, np.float32(share), readable)
        # The search for nonzero elements is several times faster among booleans.
        found = np.flatnonzero(counts[:-1] != 0)
        count = counts[found]
        counts[found] = counts[-1] = 0
        gained = np.float32(term.weight * (k1 + 1)) * count / (count + norm[found])
        scores[found] += gained
        matched[found] += np.float32(term.weight)
        if with_assistants:
            own = _said_by_assistants_only(shard, term.text, readable)
            scores[own] += np.float32(1 / query.assistant - 1) * gained[np.searchsorted(found, own)]
    every = sum(term.weight for term in query.terms)
    matched *= np.float32(weights.coverage / every)
    matched += 1
    scores *= matched
    return scores


def _said_by_assistants_only(
    shard: IndexShard, term: str, readable: npt.NDArray[np.bool_] | None
) -> npt.NDArray[np.intp]:
    """The documents whose text contains a term, if all are messages of assistants; else none."""
    postings = shard.words.own.get(term)
    if postings is None:
        return np.zeros(0, np.intp)
    documents = (_view(postings, np.uint32) >> COUNT_BITS).astype(np.intp)
    present = _view(shard.alive, np.bool_) if readable is None else readable
    documents = documents[present[documents]]
    is_assistant = _view(shard.standings, np.uint8)[documents] == Standing.ASSISTANT
    return documents if is_assistant.all() else documents[:0]


def _count(
    counts: Floats,
    shard: IndexShard,
    term: str,
    share: np.float32,
    readable: npt.NDArray[np.bool_] | None,
) -> None:
    """Adds the weighted frequency of a term in each document, with its neighbours and its label."""
    words, links, weights = shard.words, shard.links, shard.weights
    postings = words.own.get(term)
    if postings is not None:
        both = _view(postings, np.uint32)
        documents = (both >> COUNT_BITS).astype(np.intp)
        count = share * (both & _COUNT).astype(np.float32)
        if readable is not None:
            kept = readable[documents]
            documents, count = documents[kept], count[kept]
        asks = _view(words.questions, np.bool_)[documents]
        # No two documents have the same neighbour, so each element is added to once.
        counts[documents] += count
        before = np.where(asks, np.float32(weights.previous_question), np.float32(weights.previous))
        counts[_view(links.next, np.int32)[documents]] += before * count
        counts[_view(links.previous, np.int32)[documents]] += np.float32(weights.next) * count
    if (aside := words.aside.get(term)) is not None:
        documents = _view(aside, np.int32)
        if readable is not None:
            documents = documents[readable[documents]]
        counts[documents] += share * np.float32(weights.aside)


def _view(buffer: Any, kind: Any) -> npt.NDArray[Any]:
    """A view of the buffer of a list. It must be released before the list grows."""
    return np.frombuffer(buffer, kind)
