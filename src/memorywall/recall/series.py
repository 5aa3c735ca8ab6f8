"""A query for an order or a development wants the whole series, which several sessions tell.

Without a rule, the best results of such a query are mostly neighbours in one session.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable

from memorywall.recall.ranking import Ranked
from memorywall.recall.weights import Weights

_SPREAD = 100
"""The most of the best results among which sessions take turns."""
_FOR_SERIES = re.compile(
    r"\b(?:in (?:what|which|the right|chronological) (?:order|sequence)"
    r"|in (?:order|sequence)\b(?! to\b)"
    r"|(?:the )?(?:order|sequence) in which|chronolog\w+|timeline|step by step"
    r"|walk me through how|how (?:did|has|have) .{3,80}? (?:develop|evolv|progress|chang)\w*"
    r"|over (?:the|our|all) (?:weeks|months|years|conversations|chats|sessions))\b",
    re.IGNORECASE | re.DOTALL,
)


def asks_for_series(query: str) -> bool:
    """Whether a query asks for an order or a development, as in `in which order did I ...?`."""
    return _FOR_SERIES.search(query) is not None


def spread_over_sessions(ranked: list[Ranked], weights: Weights) -> list[Ranked]:
    """Returns results in the order of their scores, which each better result of the same session
    has lowered.

    ranked: the results, best first
    """
    left, rest = list(ranked[:_SPREAD]), ranked[_SPREAD:]
    told: Counter[Hashable] = Counter()
    chosen: list[Ranked] = []
    while left:
        # By its place: results of several questions have vectors, which cannot be compared.
        scores = [one.score * _share(told, one, weights) for one in left]
        best = left.pop(scores.index(max(scores)))
        share = _share(told, best, weights)
        chosen.append(best._replace(score=best.score * share, series=share))
        if best.document.thread is not None:
            told[best.shard.owner, best.document.thread] += 1
    # What is lowered below the others stays before them: they are no better results of a series.
    return [*chosen, *rest]


def _share(told: Counter[Hashable], one: Ranked, weights: Weights) -> float:
    """Returns the factor of a result after those of its session that are chosen already."""
    return float(weights.series ** told[one.shard.owner, one.document.thread])
