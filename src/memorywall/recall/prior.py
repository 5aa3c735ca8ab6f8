"""The prior of an entry, independent of the query: recency, outcome and use (memory wall 11.4.2).

The prior changes a score by at most a tenth. It orders entries with nearly equal scores and hides
no answer.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from memorywall.recall.document import Document
from memorywall.recall.weights import Weights
from memorywall.records.recall import NO_USES, EntryOutcome, UseCounts

_HALF_LIFE_MILLISECONDS = 30 * 24 * 3600 * 1000
_USED_OFTEN = 32
"""The number of uses from which more uses have no effect."""
_OUTCOMES = {
    EntryOutcome.CORRECTION: 1.0,
    EntryOutcome.SUCCESS: 1.0,
    None: 0.5,
    EntryOutcome.FAILURE: 0.25,
}
_RECENCY, _OUTCOME, _USE = 0.4, 0.3, 0.3
"""The weights of the parts of the prior."""
_FEEDBACK = 4
"""The number of contexts with feedback from which half of the possible move is reached."""
_MOST_MOVED = 0.5
_MOST = math.log1p(_USED_OFTEN)


class PriorScore(NamedTuple):
    """The parts of a prior, each from 0 to 1, and the factor of the score."""

    recency: float
    outcome: float
    use: float
    factor: float


class Prior:
    """Computes the priors of documents as of an instant, in milliseconds since the epoch."""

    def __init__(self, now: int, weights: Weights, wanted: EntryOutcome = EntryOutcome.ANY) -> None:
        self._now = now
        self._weights = weights
        # A search for failures must not lower the scores of failures.
        self._uses_outcome = wanted is EntryOutcome.ANY

    def of(self, document: Document, counts: UseCounts) -> PriorScore:
        """The prior of a document with its uses, and the feedback on contexts that it was used
        in."""
        age = max(0, self._now - document.moment)
        recency = 0.5 ** (age / _HALF_LIFE_MILLISECONDS)
        outcome = 0.5
        if self._uses_outcome:
            outcome = _OUTCOMES[document.outcome]
            if counts is not NO_USES:
                outcome = _with_feedback(outcome, counts)
            outcome *= document.trust
        use = min(1.0, math.log1p(counts.uses) / _MOST) if counts.uses else 0.0
        together = _RECENCY * recency + _OUTCOME * outcome + _USE * use
        factor = 1 + self._weights.prior * (2 * together - 1)
        return PriorScore(recency, outcome, use, factor)


def _with_feedback(outcome: float, counts: UseCounts) -> float:
    """The outcome in the value, from 0 to 1, moved by the contexts that the entry was used in. The
    move is limited, so that few false reports among many true ones change nothing."""
    _, _, helped, harmed = counts.outcomes
    move = (helped - harmed) / (_FEEDBACK + helped + harmed)
    return min(1.0, max(0.0, outcome + min(_MOST_MOVED, max(-_MOST_MOVED, move))))
