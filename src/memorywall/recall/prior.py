"""What speaks for an entry before anything is asked: recency, outcome and use (memory wall 11.4.2).

All three together move a score by a tenth at most, so they decide between near equals and never
bury what answers the question.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from memorywall.recall.document import Document
from memorywall.recall.weights import Weights
from memorywall.records.recall import Outcome

_HALF_LIFE_MILLISECONDS = 30 * 24 * 3600 * 1000
_USED_OFTEN = 32
"""So often used, more uses add nothing."""
_OUTCOMES = {
    Outcome.CORRECTION: 1.0,
    Outcome.SUCCESS: 1.0,
    None: 0.5,
    Outcome.FAILURE: 0.25,
}
_RECENCY, _OUTCOME, _USE = 0.4, 0.3, 0.3
"""How they share the prior between them."""
_MOST = math.log1p(_USED_OFTEN)


class Judged(NamedTuple):
    """Each part from 0 to 1, and what a score is multiplied by."""

    recency: float
    outcome: float
    use: float
    factor: float


class Prior:
    """Judges documents as of an instant, in milliseconds."""

    def __init__(self, now: int, weights: Weights, wanted: Outcome = Outcome.ANY) -> None:
        self._now = now
        self._weights = weights
        # Who looks for failures does not want them held against themselves.
        self._heeds_outcome = wanted is Outcome.ANY

    def of(self, document: Document, uses: int) -> Judged:
        """What speaks for a document that was used so often."""
        age = max(0, self._now - document.moment)
        recency = 0.5 ** (age / _HALF_LIFE_MILLISECONDS)
        outcome = _OUTCOMES[document.outcome] * document.trust if self._heeds_outcome else 0.5
        use = min(1.0, math.log1p(uses) / _MOST) if uses else 0.0
        together = _RECENCY * recency + _OUTCOME * outcome + _USE * use
        factor = 1 + self._weights.prior * (2 * together - 1)
        return Judged(recency, outcome, use, factor)
