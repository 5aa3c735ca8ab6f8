"""Scores how well a new text continues earlier sessions of a person. Pure functions.

The intent decides and not the time. Where there is an embedder, the meaning of the turns decides:
words that a text shares with a session are no evidence beside it, because they make the two alike
by themselves. Without one, a session is compared by the words of its turns, each weighted by how
few of the person's sessions have it. Shared words speak against a session if the text does not name
them as known. The weights and thresholds were chosen on one half of `tests/support/matters.py` and
`tests/support/lookalikes.py`; docs/sessions.md has the figures of the other half.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from memorywall.sessions.meanings import Meaning

WORDS_THRESHOLD = 0.14
"""The least score of a continuation by words alone."""
WORDS_MARGIN = 0.01
"""The least distance to the second best score by words alone."""
EMBEDDING_THRESHOLD = 0.30
"""The least score of a continuation by meaning."""
EMBEDDING_MARGIN = 0.08
"""The least distance to the second best score by meaning."""
_CLOSEST, _WHOLE, _REST = 0.25, 0.45, 0.3
"""The shares of the similarities in a score by meaning; see `Meaning`."""
_BY_KNOWN, _BY_BARE = 0.3, 0.5
"""How much of the similarity shared words explain that are named as known, and that are not."""
_AGAINST = 0.5
"""How much a shared word that is not named as known speaks against a session, by words alone."""


@dataclass(frozen=True, slots=True)
class SharedWords:
    """The weighted shares of a text's terms that a session contains as well, from 0 to 1.

    known: those that the text names as known
    bare: the others
    """

    known: float
    bare: float


@dataclass(frozen=True, slots=True)
class Choice:
    """The result of a match.

    index: the candidate that the text continues; None for none
    scores: the score of each candidate
    """

    index: int | None
    scores: list[float]
    threshold: float


def find_shared_words(
    terms: Collection[str], known: Collection[str], candidates: Sequence[Collection[str]]
) -> list[SharedWords]:
    """Returns for each candidate what the text shares with it.

    terms: the terms of the text, without stop words
    known: those that the text names as known; see `find_known_terms`
    candidates: the terms of each session
    """
    wanted, named = set(terms), set(known)
    sessions = [set(one) for one in candidates]
    weights = {
        term: _weight(sum(term in one for one in sessions), len(sessions)) for term in wanted
    }
    total = sum(weights.values())
    if not total:
        return [SharedWords(0.0, 0.0) for _ in sessions]

    def share(found: set[str]) -> float:
        return sum(weights[term] for term in found) / total

    return [
        SharedWords(share(wanted & one & named), share(wanted & one - named)) for one in sessions
    ]


def choose_by_words(shared: Sequence[SharedWords]) -> Choice:
    """Chooses by the shared words alone."""
    scores = [max(0.0, one.known - _AGAINST * one.bare) for one in shared]
    return _choose(scores, WORDS_THRESHOLD, WORDS_MARGIN)


def choose_by_meaning(shared: Sequence[SharedWords], meanings: Sequence[Meaning | None]) -> Choice:
    """Chooses by meaning.

    shared: what the text shares with each candidate
    meanings: how alike the text and each candidate are; None for one that was not compared
    """
    scores = [
        0.0 if meaning is None else max(0.0, _score(one, meaning))
        for one, meaning in zip(shared, meanings, strict=True)
    ]
    return _choose(scores, EMBEDDING_THRESHOLD, EMBEDDING_MARGIN)


def _score(shared: SharedWords, meaning: Meaning) -> float:
    alike = _CLOSEST * meaning.closest + _WHOLE * meaning.whole + _REST * meaning.rest
    return alike - _BY_KNOWN * shared.known - _BY_BARE * shared.bare


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
