"""What a candidate must be worth to be promoted (memory wall, 11.7.1): one table.

Whether a model knows something anyway is not asked: the answer differs by model and version, costs
a call for each candidate, and what a model knows without its source cannot be corrected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from memorywall.kinds.promotions import MeasuredCriterion
from memorywall.recall.similarity import SimilarityMethod
from memorywall.records.recall import ContextOutcomes
from memorywall.records.tier import Tier

LEAST_OUTCOMES: Final = 5
"""The outcomes below which a criterion that is measured on outcomes is unknown."""
LEAST_SCORE: Final = 0.2
"""The score that a promotion needs."""
DUPLICATE: Final = {SimilarityMethod.COSINE: 0.93, SimilarityMethod.CONTAINMENT: 0.9}
"""The similarity from which two texts that do not contradict each other say the same. The values of
the two methods are not comparable."""
_MANY_PLACES = 5
"""The tasks and sessions from which a memory is as reusable as can be."""
LASTING: Final = frozenset({Tier.SEMANTIC, Tier.PROCEDURAL})
"""The tiers whose promotions are measured on outcomes."""
_EVERYWHERE = frozenset(Tier)


class Measures(NamedTuple):
    """What was measured of a candidate.

    similarity: the best similarity to an entry of the target tier; None without a text to compare
    outcomes: the outcomes of the contexts that contained it
    places: the tasks and sessions whose contexts used it
    """

    similarity: float | None
    outcomes: ContextOutcomes = ContextOutcomes()
    places: int = 0

    @property
    def used(self) -> int:
        """The number of contexts that used it."""
        return self.outcomes.helped + self.outcomes.harmed


class CriterionValue(NamedTuple):
    """The value of a criterion.

    value: 0 to 1; None if it is unknown
    observations: the number of outcomes that it is measured on; None for one without outcomes
    """

    value: float | None
    observations: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Criterion:
    """A criterion of promotion.

    floor: the least value, 0 to 1; a candidate that is known to be below it is rejected
    weight: its share of the score
    tiers: the tiers to which a promotion must meet it
    below: what a person reads if a candidate is below the floor
    measure: returns its value for a candidate
    """

    name: str
    floor: float
    weight: float
    tiers: frozenset[Tier]
    below: str
    measure: Callable[[Measures], CriterionValue]


def _non_obviousness(found: Measures) -> CriterionValue:
    return CriterionValue(None if found.similarity is None else 1 - max(0.0, found.similarity))


def _improvement(found: Measures) -> CriterionValue:
    """How much better contexts that used it ended than contexts that only contained it, 0 to 1,
    where 0.5 is no difference. Both shares are shrunk toward a half, so that few outcomes say
    little."""
    outcomes, used = found.outcomes, found.used
    others = outcomes.succeeded + outcomes.failed - used
    with_it = (outcomes.helped + 1) / (used + 2)
    without = (outcomes.succeeded - outcomes.helped + 1) / (others + 2)
    return _of_outcomes((1 + with_it - without) / 2, used)


def _reusability(found: Measures) -> CriterionValue:
    return _of_outcomes(min(found.places / _MANY_PLACES, 1.0), found.used)


def _of_outcomes(value: float, used: int) -> CriterionValue:
    return CriterionValue(value if used >= LEAST_OUTCOMES else None, used)


NON_OBVIOUSNESS = Criterion(
    name="non_obviousness",
    floor=0.1,
    weight=0.4,
    tiers=_EVERYWHERE,
    below="the tier says nearly the same already",
    measure=_non_obviousness,
)
CORRECTNESS = Criterion(
    name="correctness_improvement",
    floor=0.5,
    weight=0.3,
    tiers=LASTING,
    below="contexts that used it ended worse than contexts that did not",
    measure=_improvement,
)
REUSABILITY = Criterion(
    name="reusability",
    floor=0.4,
    weight=0.3,
    tiers=LASTING,
    below="too few tasks and sessions used it; it stays where it is, as a case",
    measure=_reusability,
)
CRITERIA: Final = (NON_OBVIOUSNESS, CORRECTNESS, REUSABILITY)


def measure(found: Measures, to: Tier) -> tuple[MeasuredCriterion, ...]:
    """Returns the criteria of a promotion to a tier, with their values."""
    parts = []
    for one in CRITERIA:
        if to in one.tiers:
            value, observations = one.measure(found)
            parts.append(
                MeasuredCriterion(
                    name=one.name,
                    value=None if value is None else round(value, 4),
                    observations=observations,
                    floor=one.floor,
                    weight=one.weight,
                )
            )
    return tuple(parts)


def score_of(parts: Sequence[MeasuredCriterion]) -> float:
    """Returns the weighted mean of the criteria that are known; 0 if none is."""
    known = [(one.value, one.weight) for one in parts if one.value is not None]
    total = sum(weight for _, weight in known)
    return round(sum(value * weight for value, weight in known) / total, 4) if total else 0.0


def failed_criterion(parts: Sequence[MeasuredCriterion]) -> Criterion | None:
    """Returns the first criterion that is known to be below its floor, or None."""
    by_name = {one.name: one for one in CRITERIA}
    for one in parts:
        if one.value is not None and one.value < one.floor:
            return by_name[one.name]
    return None
