"""Scores how well a new text continues earlier sessions of a person. Pure functions.

The intent decides and not the time: a session is compared by the words of its turns, each weighted
by how few of the person's sessions have it, and by the meaning of its turns where there is an
embedder. The thresholds were chosen on one half of `tests/support/matters.py`; docs/sessions.md has
the figures of the other half.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

WORDS_THRESHOLD = 0.18
"""The least score of a continuation by words alone."""
WORDS_MARGIN = 0.01
"""The least distance to the second best score by words alone."""
EMBEDDING_THRESHOLD = 0.20
"""The least score of a continuation by words and meaning."""
EMBEDDING_MARGIN = 0.04
"""The least distance to the second best score by words and meaning."""
MEANING_SHARE = 0.6
"""The share of the similarity of meaning in a score by words and meaning."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The result of a match.

    index: the candidate that the text continues; None for none
    scores: the score of each candidate
    """

    index: int | None
    scores: list[float]
    threshold: float


def word_scores(terms: Collection[str], candidates: Sequence[Collection[str]]) -> list[float]:
    """Returns for each candidate the weighted share of the text's terms that it contains.

    terms: the terms of the text, without stop words
    candidates: the terms of each session
    """
    wanted = set(terms)
    known = [set(one) for one in candidates]
    weights = {term: _weight(sum(term in one for one in known), len(known)) for term in wanted}
    total = sum(weights.values())
    if not total:
        return [0.0 for _ in known]
    return [sum(weights[term] for term in wanted & one) / total for one in known]


def choose_by_words(scores: Sequence[float]) -> Choice:
    """Chooses by scores of words alone."""
    return _choose(scores, WORDS_THRESHOLD, WORDS_MARGIN)


def choose_by_meaning(words: Sequence[float], meanings: Sequence[float]) -> Choice:
    """Chooses by words and meaning.

    meanings: for each candidate the similarity of the text to its most similar turns, -1 to 1
    """
    scores = [
        MEANING_SHARE * max(meaning, 0.0) + (1 - MEANING_SHARE) * word
        for word, meaning in zip(words, meanings, strict=True)
    ]
    return _choose(scores, EMBEDDING_THRESHOLD, EMBEDDING_MARGIN)


def _choose(scores: Sequence[float], threshold: float, margin: float) -> Choice:
    order = sorted(range(len(scores)), key=lambda index: -scores[index])
    best = order[0] if order else None
    if best is not None:
        second = scores[order[1]] if len(order) > 1 else 0.0
        if scores[best] < threshold or scores[best] - second < margin:
            best = None
    return Choice(best, list(scores), threshold)


def _weight(sessions: int, of: int) -> float:
    """The weight of a term that `sessions` of a person's sessions contain. A term that no session
    contains speaks against each of them."""
    return math.log(1 + (of + 1) / (sessions + 0.5))
