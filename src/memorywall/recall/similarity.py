"""The similarity of two texts, independent of any query and of the other entries of a store.

A score of a search is scaled to the best result of that search, so two scores of different searches
say nothing about each other. Callers that compare texts with a threshold need this similarity.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import Any, NamedTuple

from memorywall.recall.index import Index
from memorywall.records.errors import UnavailableError


class SimilarityMethod(StrEnum):
    """The two methods; their values are not comparable with each other."""

    COSINE = "cosine"
    CONTAINMENT = "containment"


class Similarity(NamedTuple):
    """The similarity of two texts.

    value: -1 to 1 for a cosine, 0 to 1 for a containment; 0 if a text has no words
    """

    value: float
    method: SimilarityMethod


async def similarity(index: Index, one: str, other: str) -> Similarity:
    """The cosine of the vectors of two texts; without an embedder, or while it does not answer, the
    containment of their words."""
    if index.embedder is not None:
        try:
            first, second = await index.embed([one, other])
            return Similarity(cosine(first, second), SimilarityMethod.COSINE)
        except (UnavailableError, TimeoutError):
            pass
    terms = [set(index.terms.of(text)[0]) for text in (one, other)]
    return Similarity(containment(*terms), SimilarityMethod.CONTAINMENT)


def cosine(one: Any, other: Any) -> float:
    """The cosine of two vectors, -1 to 1; 0 if one of them is zero."""
    norm = float((one @ one) * (other @ other)) ** 0.5
    return float(one @ other) / norm if norm else 0.0


def containment(one: Collection[str], other: Collection[str]) -> float:
    """The share of the smaller set that the other set contains, 0 to 1; 0 if a set is empty."""
    smaller = min(len(one), len(other))
    return len(set(one) & set(other)) / smaller if smaller else 0.0
