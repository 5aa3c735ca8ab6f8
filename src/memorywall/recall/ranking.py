"""The order of what is found: words and meaning first, then what stands around them.

Works on slices that nobody changes meanwhile; everything here may run in a thread.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from memorywall.recall.candidates import Asked, Candidate, DatePart, Score, Scoring, Shares, Term
from memorywall.recall.document import Document
from memorywall.recall.prior import Judged, Prior
from memorywall.recall.slice import Slice
from memorywall.recall.weights import Weights
from memorywall.records.recall import Signals

_CANDIDATES = 200
"""How many of each slice are looked at closely."""
_BEST_OF_THREAD = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Searched:
    """A slice, and which of its documents may count and are wanted; None for all."""

    slice: Slice
    readable: bytearray | None
    wanted: bytearray | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """What is asked, taken apart.

    terms: each word that has a term, with it
    dates: the parts of dates that are named in it
    author: who alone is named in it
    vector: its meaning, None where that is not asked
    lexical, dense: how words and meaning share a score between them
    """

    terms: tuple[tuple[str, str], ...]
    dates: tuple[Hashable, ...] = ()
    author: str | None = None
    vector: Any = None
    lexical: float = 1.0
    dense: float = 1.0


class Ranked(NamedTuple):
    """A document that was found, with what its score is made of."""

    score: float
    slice: Slice
    document: Document
    candidate: Candidate
    thread: float
    judged: Judged

    def signals(self, question: Question) -> Signals:
        """What its score is made of, in the form that is shown."""
        candidate, judged = self.candidate, self.judged
        return Signals(
            lexical=candidate.lexical,
            dense=candidate.dense,
            date=candidate.date,
            author=candidate.author,
            thread=self.thread,
            recency=judged.recency,
            outcome=judged.outcome,
            use=judged.use,
            prior=judged.factor,
            terms=_terms_in(self, question),
        )


def rank(
    parts: Sequence[Searched], question: Question, prior: Prior, score: Score, weights: Weights
) -> list[Ranked]:
    """The documents that answer a question, best first, equals in the order of their ids."""
    asked = _weigh(parts, question, weights)
    scorings = [score(one.slice, asked, one.readable, one.wanted) for one in parts]
    found = _candidates(parts, scorings, question)
    threads = _threads(found)
    ranked = [_judge(*one, threads, prior, weights) for one in found]
    ranked.sort(key=lambda one: (-one.score, one.document.entry_id))
    return ranked


def _weigh(parts: Sequence[Searched], question: Question, weights: Weights) -> Asked:
    """What is asked of every slice. Only what may be read has any part in it."""
    size, total = 0, 0
    for one in parts:
        size += len(one.slice) if one.readable is None else one.readable.count(1)
        total += one.slice.words.total_of(one.readable)
    terms: list[Term] = []
    common: list[Term] = []
    for text in dict.fromkeys(term for _, term in question.terms):
        frequency = sum(one.slice.words.frequency(text, one.readable) for one in parts)
        is_common = frequency > max(weights.common_from, weights.common * size)
        (common if is_common else terms).append(Term(text, _rarity(size, frequency)))
    dates = []
    for place in question.dates:
        frequency = sum(one.slice.frequency(place, one.readable) for one in parts)
        if frequency:
            dates.append(DatePart(place, _rarity(size, frequency)))
    # Common terms tell nothing beside others, but where there are no others they are what is asked.
    return Asked(terms or common, dates, total / size if size else 0.0, question.vector)


def _rarity(size: int, frequency: int) -> float:
    return math.log(1 + (size - frequency + 0.5) / (frequency + 0.5))


def _candidates(
    parts: Sequence[Searched],
    scorings: Sequence[Scoring],
    question: Question,
) -> list[tuple[Slice, Document, Candidate]]:
    best_lexical = max((one.best_lexical for one in scorings), default=0.0)
    best_dense = max((one.best_dense for one in scorings), default=0.0)
    dense = 0.0 if question.vector is None else question.dense
    together = question.lexical + dense or 1.0
    per_lexical = question.lexical / together / best_lexical if best_lexical else 0.0
    per_dense = dense / together / best_dense if best_dense else 0.0
    found = []
    for one, scoring in zip(parts, scorings, strict=True):
        author = None if question.author is None else one.slice.author_number(question.author)
        shares = Shares(per_lexical, per_dense, author)
        documents = one.slice.documents
        for candidate in scoring.candidates(shares, _CANDIDATES):
            document = documents[candidate.document]
            if document is not None:
                found.append((one.slice, document, candidate))
    return found


def _threads(found: Sequence[tuple[Slice, Document, Candidate]]) -> dict[Hashable, float]:
    """The mean of the two best of each thread. What stands in none is a thread by itself."""
    best: dict[Hashable, float] = {}
    second: dict[Hashable, float] = {}
    for slice_, document, candidate in found:
        thread = (slice_.owner, document.thread or candidate.document)
        base = candidate.base
        if base > best.get(thread, 0.0):
            second[thread] = best.get(thread, 0.0)
            best[thread] = base
        elif base > second.get(thread, 0.0):
            second[thread] = base
    return {
        thread: (highest + second[thread]) / _BEST_OF_THREAD for thread, highest in best.items()
    }


def _judge(
    slice_: Slice,
    document: Document,
    candidate: Candidate,
    threads: dict[Hashable, float],
    prior: Prior,
    weights: Weights,
) -> Ranked:
    thread = weights.thread * threads[slice_.owner, document.thread or candidate.document]
    judged = prior.of(document, slice_.uses.get(candidate.document, 0))
    return Ranked(
        (candidate.score + thread) * judged.factor, slice_, document, candidate, thread, judged
    )


def _terms_in(ranked: Ranked, question: Question) -> tuple[str, ...]:
    """The words of a question that a document, or what stands beside it, has."""
    links, words = ranked.slice.links, ranked.slice.words
    number = ranked.candidate.document
    near = {number, links.previous[number], links.next[number]}
    found = []
    for word, term in question.terms:
        if words.has(term, near) or number in words.aside.get(term, ()):
            found.append(word)
    return tuple(dict.fromkeys(found))
