"""Searches by words and meaning, and their results."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from memorywall.records.entry import Entry
from memorywall.records.filter import EntryFilter

DEFAULT_HITS = 10
MOST_HITS = 100
HIGHEST_DENSE_WEIGHT = 100.0
DEFAULT_GUIDANCE = 3
MOST_GUIDANCE = 20
LONGEST_QUERY = 2_000
"""The most characters of a query; the cost of a search grows with them."""

GUIDANCE_HEADING = "What was learned from queries like this:"
"""The line of an augmented query after which the guidance follows, one line for each lesson."""


def without_guidance(query: str) -> str:
    """Returns a query without the guidance that an augmentation appended to it.

    Guidance names what to avoid as well as what to prefer, so its words say nothing about what a
    document must contain.
    """
    return query.partition(f"\n\n{GUIDANCE_HEADING}\n")[0]


class Mode(StrEnum):
    """The signals that find candidates: words, meaning, or both."""

    HYBRID = "hybrid"
    LEXICAL = "lexical"
    DENSE = "dense"


class EntryOutcome(StrEnum):
    """The outcome that an entry reports (memory wall, 11.4.2)."""

    SUCCESS = "success"
    FAILURE = "failure"
    CORRECTION = "correction"
    ANY = "any"


class StoredSegment(NamedTuple):
    """An index segment: the part of the index for the entries of one tier of one owner in a range.

    first, last: the ids of the first and of the last entry of the range
    form: what the content depends on besides the entries
    """

    first: str
    last: str
    form: str
    content: bytes


class ContextOutcomes(NamedTuple):
    """The outcomes of the contexts that contained an entry, from the feedback on them.

    succeeded, failed: the contexts that contained it; a corrected one counts as failed
    helped, harmed: those among them whose feedback named it as used
    """

    succeeded: int = 0
    failed: int = 0
    helped: int = 0
    harmed: int = 0


class UseCounts(NamedTuple):
    """The number of uses of an entry, and the outcomes of the contexts that contained it."""

    uses: int
    outcomes: ContextOutcomes = ContextOutcomes()


NO_USES = UseCounts(0)


class LastUse(NamedTuple):
    """The last use of an entry.

    kind: the kind of its value, "" for free JSON
    at: the instant of its last use, or of its creation before the first one; None where it is
        unknown, because an earlier version counted the uses
    """

    entry_id: str
    kind: str
    namespace: str
    at: str | None


class EntryVector(NamedTuple):
    """The vectors of an entry at a version, in the form of `recall.stored_vectors`."""

    entry_id: str
    version: int
    vector: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchSpec:
    """A search.

    query: free text, at most `LONGEST_QUERY` characters
    context: the text before the query, such as the previous turn, at most as long; it counts less
        than the query; empty for none
    wanted: the conditions that an entry must meet; its page is ignored
    session_id: the session that an entry must be bound to, None for any
    mode: default: words and meaning
    outcome: the outcome that an entry must report; default: any
    limit: the most hits, at most `MOST_HITS`
    min_trust: the least trust of an entry, 0 to 1; see `recall.trust`
    dense_weight: in the mode `hybrid`, the weight of meaning, 0 to `HIGHEST_DENSE_WEIGHT`, if words
        have weight 1; None for that of the server and the searched entries
    reference_time: an instant in the stored form, as of which entries are searched: entries that
        were created later are omitted, entries that were updated later are shown in the version of
        that instant, or omitted if their tier keeps no versions; None for now
    valid_at: an instant in the stored form, at which what an entry says must hold, see
        `records.validity`; `ANY_TIME` if it does not matter; None for `reference_time` or now
    explain: whether each hit contains the parts of its score
    min_relevance: the least relevance of a hit, 0 to 1; see `recall.relevance`
    only_answers: whether there are no hits unless one of them probably answers the query
    strict: like `only_answers`; if the query names things, hits are only about these
    """

    query: str
    wanted: EntryFilter
    context: str = ""
    session_id: str | None = None
    mode: Mode = Mode.HYBRID
    outcome: EntryOutcome = EntryOutcome.ANY
    limit: int = DEFAULT_HITS
    min_trust: float = 0.0
    dense_weight: float | None = None
    reference_time: str | None = None
    valid_at: str | None = None
    explain: bool = False
    min_relevance: float = 0.0
    only_answers: bool = False
    strict: bool = False


class Evidence(NamedTuple):
    """What speaks for a hit, in numbers that do not depend on other hits.

    words: the share of the query's words that the entry contains, weighted by their rarity
    words_nearby: the same with the words of its neighbours in the thread
    author: whether the query names the author of the entry
    meaning: the cosine of the query and the entry or its best passage, -1 to 1; None without a
        vector
    """

    words: float
    words_nearby: float
    author: bool
    meaning: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Signals:
    """The parts of a score.

    lexical, dense, thread, author, date, graph: the signals, before the prior is applied
    link: what links the entry to one of the best results, if `graph` is above 0: a name that both
        have, or the id of one of the two
    recency, outcome, use: the parts of the prior, each from 0 to 1
    prior: the factor of the sum of the signals
    superseded: a further factor, below 1 for a note of which a newer one says nearly the same
    series: a further factor, below 1 in a query for an order or a development, for an entry of a
        session with better results
    earlier_question: a further factor, below 1 if `question` is on an earlier line than the last
        question of the query
    question: the question that the score is for if the query has several; None for the whole query
    terms: the words of the query and its context that occur in the entry or in its neighbours in
        the thread, and the words that occur there in place of one; see `recall.variants`
    """

    lexical: float = 0.0
    dense: float = 0.0
    thread: float = 0.0
    graph: float = 0.0
    link: str | None = None
    author: float = 0.0
    date: float = 0.0
    recency: float = 0.0
    outcome: float = 0.0
    use: float = 0.0
    prior: float = 1.0
    superseded: float = 1.0
    series: float = 1.0
    earlier_question: float = 1.0
    question: str | None = None
    terms: tuple[str, ...] = ()


class Highlight(NamedTuple):
    """The passage of a long text that fits a query best.

    field: the field of the value that contains it, None for a passage of several fields
    start, end: its first character and the one after its last, in the text of the field; in the
        searched text of the value if `field` is None
    text: the passage
    """

    field: str | None
    start: int
    end: int
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    """A result of a search, with its value in clear text.

    relevance: the probability that it answers the query, 0 to 1; see `recall.relevance`
    evidence: what the relevance comes from
    highlight: the best passage of a long text, None for a short one
    """

    entry: Entry
    score: float
    relevance: float = 0.0
    evidence: Evidence | None = None
    signals: Signals | None = None
    highlight: Highlight | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchPage:
    """The hits, best first.

    relevance: the probability that one of the best results answers the query, 0 to 1
    answered: whether that is probable enough to answer from the hits
    left_out: the number of results that are no hits because of their relevance
    model: the model of the embedder, None if no embedder was used
    searched: the number of readable entries that were searched
    pending: the number of searched entries whose vector is still to be computed
    """

    hits: list[Hit] = field(default_factory=list)
    relevance: float = 0.0
    answered: bool = False
    left_out: int = 0
    model: str | None = None
    searched: int = 0
    pending: int = 0


class GuidanceKind(StrEnum):
    """The kinds of lessons; the `type` of the value of an episodic entry."""

    CORRECTION = "correction"
    NEGATIVE_RETRIEVAL = "negative_retrieval"
    ESCALATION_RESOLUTION = "escalation_resolution"
    HIGH_VALUE_SUCCESS = "high_value_success"


@dataclass(frozen=True, kw_only=True, slots=True)
class Guidance:
    """Guidance from one lesson about a query, on one line.

    confidence: the trust in the lesson, from 0 to 1; see `recall.trust`
    """

    kind: GuidanceKind
    text: str
    entry_id: str
    confidence: float


@dataclass(frozen=True, kw_only=True, slots=True)
class AugmentedQuery:
    """A query with guidance, in the order of confidence.

    query: the given query, followed by a line for each guidance
    """

    query: str
    guidance: tuple[Guidance, ...] = ()
