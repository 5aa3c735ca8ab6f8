"""The quality of an order of entries, some of which contain the answer."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

import numpy as np

DEPTHS = (5, 10, 20)
DEEPEST = max(DEPTHS)
GAIN_DEPTH = 10
SEED = 14
"""Of the bootstrap."""
_RESAMPLES = 2_000
_QUANTILES = (0.025, 0.975)


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    """One question's, or the mean of several. Everything is from 0 to 1.

    recalls: the share of the gold entries that are among the best, by depth
    gain: nDCG@10, where every gold entry is worth the same
    rank: one divided by the place of the first gold entry, 0 where there is none
    """

    recalls: tuple[float, ...]
    gain: float
    rank: float

    @property
    def recall(self) -> float:
        """The recall among the best ten."""
        return self.recalls[DEPTHS.index(GAIN_DEPTH)]

    @property
    def figures(self) -> tuple[float, ...]:
        """All of them, in the order of `TITLES`."""
        return (*self.recalls, self.gain, self.rank)


TITLES = (*(f"R@{depth}" for depth in DEPTHS), f"nDCG@{GAIN_DEPTH}", "MRR")


def judge(found: Sequence[str], gold: Collection[str]) -> Judgement:
    """Judges one reply of `DEEPEST` keys, best first."""
    places = sorted(found.index(key) + 1 for key in gold if key in found)
    gained = sum(_discount(place) for place in places if place <= GAIN_DEPTH)
    ideal = sum(_discount(place) for place in range(1, min(GAIN_DEPTH, len(gold)) + 1))
    return Judgement(
        recalls=tuple(sum(place <= depth for place in places) / len(gold) for depth in DEPTHS),
        gain=gained / ideal,
        rank=1 / places[0] if places else 0.0,
    )


def mean_of(judgements: Iterable[Judgement]) -> Judgement:
    """The mean of at least one."""
    recalls, gains, ranks = zip(
        *((one.recalls, one.gain, one.rank) for one in judgements), strict=True
    )
    return Judgement(
        recalls=tuple(fmean(column) for column in zip(*recalls, strict=True)),
        gain=fmean(gains),
        rank=fmean(ranks),
    )


class Difference(NamedTuple):
    """By how much the recall among the best ten differs, with its interval of 95 %."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{100 * self.mean:+.1f} [{100 * self.low:+.1f}, {100 * self.high:+.1f}]"


def difference(before: Sequence[Judgement], after: Sequence[Judgement]) -> Difference:
    """The difference question by question. The interval is a paired bootstrap over the questions
    with the seed `SEED`."""
    changes = np.array([new.recall - old.recall for old, new in zip(before, after, strict=True)])
    chosen = np.random.default_rng(SEED).integers(len(changes), size=(_RESAMPLES, len(changes)))
    low, high = np.quantile(changes[chosen].mean(axis=1), _QUANTILES)
    return Difference(float(changes.mean()), float(low), float(high))


def _discount(place: int) -> float:
    return 1 / math.log2(place + 1)
