"""What the scoring of one slice is asked and what it answers, with or without numpy."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple, Protocol

from memorywall.recall.slice import Slice


class Term(NamedTuple):
    """A term of the query and how much it tells."""

    text: str
    weight: float


class DatePart(NamedTuple):
    """A part of a date that the query names, such as a month, and how much it tells."""

    place: Hashable
    weight: float


class Asked(NamedTuple):
    """What one query asks of every slice.

    average: the average length of all documents that are searched
    vector: the query's, or None
    """

    terms: Sequence[Term]
    dates: Sequence[DatePart]
    average: float
    vector: Any


class Shares(NamedTuple):
    """What turns the scores of a slice into shares, and what is added for the author named."""

    per_lexical: float
    per_dense: float
    author: int | None


class Candidate(NamedTuple):
    """A document of a slice with its share of each signal.

    score: their sum
    base: the sum of the first three, had it not been lessened for a question
    """

    score: float
    document: int
    base: float
    lexical: float
    dense: float
    date: float
    author: float


class Scoring(Protocol):
    """One query over one slice. The best of every slice has to be known before shares are."""

    @property
    def best_lexical(self) -> float:
        """The highest score by words and dates, 0 where nothing is found."""
        ...

    @property
    def best_dense(self) -> float:
        """The highest score by meaning, 0 where nothing is like the query."""
        ...

    def candidates(self, shares: Shares, count: int) -> list[Candidate]:
        """The `count` best, in no order."""
        ...


class Score(Protocol):
    """Begins a scoring."""

    def __call__(
        self,
        slice_: Slice,
        asked: Asked,
        readable: bytearray | None,
        wanted: bytearray | None,
    ) -> Scoring:
        """Over one slice.

        readable: 1 for documents that may have any influence, None for all
        wanted: 1 for documents that may be candidates, None for all
        """
        ...
