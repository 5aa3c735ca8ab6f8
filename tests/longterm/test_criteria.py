"""The criteria of promotion: what is known, what it is worth, and what is below a floor."""

from __future__ import annotations

import pytest

from memorywall.longterm.criteria import Measures, failed_criterion, measure, score_of
from memorywall.records.recall import ContextOutcomes
from memorywall.records.tier import Tier

_HELPED = ContextOutcomes(succeeded=12, failed=4, helped=8, harmed=0)
_HARMED = ContextOutcomes(succeeded=8, failed=8, helped=0, harmed=8)


def _values(found: Measures, to: Tier = Tier.SEMANTIC) -> dict[str, float | None]:
    return {one.name: one.value for one in measure(found, to)}


def test_outcomes_count_from_five_on_and_for_lasting_tiers_only() -> None:
    few = ContextOutcomes(succeeded=4, helped=4)
    assert _values(Measures(0.25, few, places=3)) == {
        "non_obviousness": 0.75,
        "correctness_improvement": None,
        "reusability": None,
    }
    assert _values(Measures(0.25, few._replace(succeeded=5, helped=5), places=3)) == {
        "non_obviousness": 0.75,
        "correctness_improvement": pytest.approx((1 + 6 / 7 - 1 / 2) / 2, abs=1e-4),
        "reusability": 0.6,
    }
    assert _values(Measures(0.25, _HELPED, places=9), Tier.EPISODIC) == {"non_obviousness": 0.75}


def test_a_criterion_that_is_unknown_does_not_count() -> None:
    alone = measure(Measures(0.25), Tier.SEMANTIC)
    assert score_of(alone) == 0.75
    both = measure(Measures(0.25, _HELPED, places=5), Tier.SEMANTIC)
    helped = (1 + 9 / 10 - 5 / 10) / 2
    assert score_of(both) == pytest.approx(0.4 * 0.75 + 0.3 * helped + 0.3, abs=1e-3)
    assert score_of(measure(Measures(None), Tier.SEMANTIC)) == 0.0


@pytest.mark.parametrize(
    ("found", "name"),
    [
        (Measures(0.95), "non_obviousness"),
        (Measures(0.2, _HARMED, places=9), "correctness_improvement"),
        (Measures(0.2, _HELPED, places=1), "reusability"),
        (Measures(0.2, _HELPED, places=2), None),
        (Measures(0.9), None),
    ],
)
def test_each_criterion_has_a_floor_of_its_own(found: Measures, name: str | None) -> None:
    failed = failed_criterion(measure(found, Tier.SEMANTIC))
    assert (None if failed is None else failed.name) == name
