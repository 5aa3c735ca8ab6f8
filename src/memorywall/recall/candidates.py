"""The interface of the scoring of one index shard, with or without numpy."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple, Protocol

from memorywall.recall.index_shard import IndexShard


class Variant(NamedTuple):
    """Another term that counts for a term of the query.

    share: the factor of its frequency in a document, at most 1
    """

    text: str
    share: float


class QueryTerm(NamedTuple):
    """A term of the query with its weight and its variants."""

    text: str
    weight: float
    variants: tuple[Variant, ...] = ()


class DatePart(NamedTuple):
    """A part of a date in the query, such as a month, with its weight."""

    place: Hashable
    weight: float


class ScoringQuery(NamedTuple):
    """The parts of a query that are equal for all shards.

    average: the average length of all searched documents, in words
    vector: the vector of the query, None without one
    assistant: the factor of the scores of messages of assistants. It is for what they repeat, so
        terms that only they use count in full.
    """

    terms: Sequence[QueryTerm]
    dates: Sequence[DatePart]
    average: float
    vector: Any
    assistant: float = 1.0


class ScoreNormalizer(NamedTuple):
    """The factors that scale the scores of a shard, and the bonus for the named author.

    alone: the further factor of words for a document without a vector. Words alone score it, so
        they have the weight of meaning, too.
    standings: the factor of words and meaning for each `Standing`
    """

    per_lexical: float
    per_dense: float
    author: int | None
    standings: tuple[float, ...]
    alone: float = 1.0


class Candidate(NamedTuple):
    """A document of a shard with its signals.

    score: the sum of the signals
    base: the sum of the first three signals before the factor for its standing
    """

    score: float
    document: int
    base: float
    lexical: float
    dense: float
    date: float
    author: float


class Scoring(Protocol):
    """The scoring of one query over one shard. The best score of all shards scales the signals."""

    @property
    def best_lexical(self) -> float:
        """The highest score by words and dates, 0 if no document matches."""
        ...

    @property
    def best_dense(self) -> float:
        """The highest score by meaning, 0 if no document is similar."""
        ...

    def candidates(self, normalizer: ScoreNormalizer, count: int) -> list[Candidate]:
        """The `count` best documents, in no particular order."""
        ...

    def of(self, documents: Sequence[int], normalizer: ScoreNormalizer) -> list[Candidate]:
        """These documents, in their order; their scores may be 0."""
        ...


class Score(Protocol):
    """Starts a scoring."""

    def __call__(
        self,
        shard: IndexShard,
        query: ScoringQuery,
        readable: bytearray | None,
        wanted: bytearray | None,
    ) -> Scoring:
        """The scoring over one shard.

        readable: 1 for each document that the caller may read, None for all
        wanted: 1 for each document that may be a candidate, None for all
        """
        ...
