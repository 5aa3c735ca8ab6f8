"""Scoring by words in plain Python, for an install without numpy, which has no vectors either."""

from __future__ import annotations

import heapq

from memorywall.recall.candidates import Asked, Candidate, Shares
from memorywall.recall.links import NOTHING
from memorywall.recall.slice import Slice
from memorywall.recall.words import COUNT_BITS

Scores = dict[int, float]
_COUNT = (1 << COUNT_BITS) - 1


class PlainScoring:
    """`Scoring` over the few documents that have a term or a date of the query."""

    best_dense = 0.0

    def __init__(
        self,
        slice_: Slice,
        lexical: Scores,
        dates: Scores,
        wanted: bytearray | None,
    ) -> None:
        self._slice = slice_
        self._lexical = lexical
        self._dates = dates
        self._found = [
            document for document in {**lexical, **dates} if wanted is None or wanted[document]
        ]
        self.best_lexical = max(
            (lexical.get(one, 0.0) + dates.get(one, 0.0) for one in self._found), default=0.0
        )

    def candidates(self, shares: Shares, count: int) -> list[Candidate]:
        weights, questions = self._slice.weights, self._slice.words.questions
        authors = self._slice.authors
        found = []
        for document in self._found:
            lexical = self._lexical.get(document, 0.0) * shares.per_lexical
            date = self._dates.get(document, 0.0) * shares.per_lexical
            base, kept = lexical + date, weights.question if questions[document] else 1.0
            author = weights.author if authors[document] == shares.author else 0.0
            score = base * kept + author
            found.append(Candidate(score, document, base, lexical * kept, 0.0, date * kept, author))
        if len(found) <= count:
            return found
        documents = self._slice.documents

        def order(one: Candidate) -> tuple[float, str]:
            document = documents[one.document]
            return -one.score, "" if document is None else document.entry_id

        return heapq.nsmallest(count, found, key=order)


def score(
    slice_: Slice,
    asked: Asked,
    readable: bytearray | None,
    wanted: bytearray | None,
) -> PlainScoring:
    """See `candidates.Score`."""
    dates: Scores = {}
    for part in asked.dates:
        for document in slice_.at(part.place):
            if slice_.alive[document] and (readable is None or readable[document]):
                dates[document] = dates.get(document, 0.0) + slice_.weights.date * part.weight
    return PlainScoring(slice_, _lexical(slice_, asked, readable), dates, wanted)


def _lexical(slice_: Slice, asked: Asked, readable: bytearray | None) -> Scores:
    weights = slice_.weights
    lengths, k1 = slice_.words.lengths, weights.saturation
    fixed = k1 * (1 - weights.length_share)
    by_length = k1 * weights.length_share / asked.average if asked.average else 0.0
    scores: Scores = {}
    matched: Scores = {}
    for term in asked.terms:
        for document, count in _counts(slice_, term.text, readable).items():
            norm = fixed + by_length * lengths[document]
            gained = term.weight * count * (k1 + 1) / (count + norm)
            scores[document] = scores.get(document, 0.0) + gained
            matched[document] = matched.get(document, 0.0) + term.weight
    every = sum(term.weight for term in asked.terms)
    for document, weight in matched.items():
        scores[document] *= 1 + weights.coverage * weight / every
    return scores


def _counts(slice_: Slice, term: str, readable: bytearray | None) -> Scores:
    """How often each document has a term, with what its neighbours say and what names it."""
    words, links, weights = slice_.words, slice_.links, slice_.weights
    counts: Scores = {}
    for posting in words.own.get(term, ()):
        document, count = posting >> COUNT_BITS, posting & _COUNT
        if readable is not None and not readable[document]:
            continue
        after, before = links.next[document], links.previous[document]
        counts[document] = counts.get(document, 0.0) + count
        if after != NOTHING:
            asks = words.questions[document]
            share = weights.previous_question if asks else weights.previous
            counts[after] = counts.get(after, 0.0) + share * count
        if before != NOTHING:
            counts[before] = counts.get(before, 0.0) + weights.next * count
    for document in words.aside.get(term, ()):
        if readable is None or readable[document]:
            counts[document] = counts.get(document, 0.0) + weights.aside
    return counts
