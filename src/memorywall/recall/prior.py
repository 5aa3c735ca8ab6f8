"""The prior of an entry, independent of the query: recency, outcome and use (memory wall 11.4.2).

The prior changes a score by at most a tenth. It orders entries with nearly equal scores and hides
no answer.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from memorywall.recall.document import Document
from memorywall.recall.weights import Weights
from memorywall.records.recall import EntryOutcome

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

    def of(self, document: Document, uses: int) -> PriorScore:
        """The prior of a document with a number of uses."""
        age = max(0, self._now - document.moment)
        recency = 0.5 ** (age / _HALF_LIFE_MILLISECONDS)
        outcome = _OUTCOMES[document.outcome] * document.trust if self._uses_outcome else 0.5
        use = min(1.0, math.log1p(uses) / _MOST) if uses else 0.0
        together = _RECENCY * recency + _OUTCOME * outcome + _USE * use
        factor = 1 + self._weights.prior * (2 * together - 1)
        return PriorScore(recency, outcome, use, factor)
