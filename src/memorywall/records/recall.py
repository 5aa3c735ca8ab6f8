"""What is looked for by meaning, and what is found."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from memorywall.records.entry import Entry
from memorywall.records.filter import Filter

DEFAULT_HITS = 10
MOST_HITS = 100
DEFAULT_GUIDANCE = 3
MOST_GUIDANCE = 20
LONGEST_QUERY = 2_000
"""Characters of a query; nobody asks so much, and what it costs grows with it."""


class Mode(StrEnum):
    """Which signals find candidates: words, meaning, or both."""

    HYBRID = "hybrid"
    LEXICAL = "lexical"
    DENSE = "dense"


class Outcome(StrEnum):
    """How what an entry tells of ended (memory wall, 11.4.2)."""

    SUCCESS = "success"
    FAILURE = "failure"
    CORRECTION = "correction"
    ANY = "any"


class EntryVector(NamedTuple):
    """The vector of an entry at a version: little-endian float16 numbers, of length one."""

    entry_id: str
    version: int
    vector: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Sought:
    """A search.

    wanted: the conditions an entry must meet; its page is not heeded
    outcome: which outcomes are wanted
    limit: how many hits at most
    min_trust: how well an entry must be founded, 0 to 1; see `recall.trust`
    as_of: the instant as of which to search: nothing made or changed later is found
    explain: whether each hit tells what its score is made of
    session_id: the session an entry must be bound to
    """

    query: str
    wanted: Filter
    session_id: str | None = None
    mode: Mode = Mode.HYBRID
    outcome: Outcome = Outcome.ANY
    limit: int = DEFAULT_HITS
    min_trust: float = 0.0
    as_of: str | None = None
    explain: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Signals:
    """What a score is made of.

    lexical, dense, thread, author, date: each signal's share, which the prior has not been put to
    recency, outcome, use: what the prior is made of, each from 0 to 1
    prior: what the sum of the shares is multiplied by
    terms: the words of the query that the entry, or what stands beside it in its thread, has
    """

    lexical: float = 0.0
    dense: float = 0.0
    thread: float = 0.0
    author: float = 0.0
    date: float = 0.0
    recency: float = 0.0
    outcome: float = 0.0
    use: float = 0.0
    prior: float = 1.0
    terms: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    """An entry that was found, its value in the clear."""

    entry: Entry
    score: float
    signals: Signals | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """The hits, best first.

    model: the embedder's model, None where there is none or it was not asked
    pending: how many of the entries searched have no vector yet, though they will have one
    """

    hits: list[Hit] = field(default_factory=list)
    model: str | None = None
    pending: int = 0


class GuidanceKind(StrEnum):
    """The kinds of experience that are worth keeping; the `type` of an episodic entry's value."""

    CORRECTION = "correction"
    NEGATIVE_RETRIEVAL = "negative_retrieval"
    ESCALATION_RESOLUTION = "escalation_resolution"
    HIGH_VALUE_SUCCESS = "high_value_success"


@dataclass(frozen=True, kw_only=True, slots=True)
class Guidance:
    """What one memory teaches about a query, on one line.

    confidence: how well it is founded, from 0 to 1; see `recall.trust`
    """

    kind: GuidanceKind
    text: str
    entry_id: str
    confidence: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Reshaped:
    """A query as it is best asked, and what made it so, the best founded first.

    query: the one that was given, word for word, and behind it a line for each guidance
    """

    query: str
    guidance: tuple[Guidance, ...] = ()
