"""Requests and responses of search by words and meaning."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from memorywall.records.entry import EMPTY_SCOPE, EntryState, Origin, Scope
from memorywall.records.recall import (
    DEFAULT_GUIDANCE,
    DEFAULT_HITS,
    HIGHEST_DENSE_WEIGHT,
    LONGEST_QUERY,
    MOST_GUIDANCE,
    MOST_HITS,
    EntryOutcome,
    Evidence,
    GuidanceKind,
    Highlight,
    Hit,
    Mode,
    SearchPage,
    Signals,
)
from memorywall.records.tier import Tier
from memorywall.wire.entries import EntryResponse, view
from memorywall.wire.operation import UserOfRequest

_DECIMALS = 6

Query = Annotated[
    str,
    Meta(min_length=1, max_length=LONGEST_QUERY, description="The query, as free text."),
]
Namespace = Annotated[str | None, Meta(description="A namespace, or a prefix followed by `*`.")]


Strict = Annotated[
    bool,
    Meta(
        description="No results unless they probably answer; if the query names things that memory"
        " has by name, only what is about these."
    ),
]


class RecallRequest(UserOfRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question, which is searched for in all readable memory, or in that of some namespaces."""

    question: Query
    namespace: Namespace = None
    limit: Annotated[int, Meta(ge=1, le=MOST_HITS)] = DEFAULT_HITS
    strict: Strict = False


class SupersedeRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The entry that supersedes another one."""

    newer_id: Annotated[str, Meta(min_length=1, description="The id of the newer entry.")]


class SearchRequest(UserOfRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A query, and the conditions that every result must meet."""

    query: Query
    context: Annotated[
        str,
        Meta(
            max_length=LONGEST_QUERY,
            description="The text before the query, such as the previous turn of a conversation. It"
            " counts less than the query.",
        ),
    ] = ""
    memory_type: Tier | None = None
    agent_id: Annotated[str | None, Meta(description="The owning agent.")] = None
    namespace: Namespace = None
    tags: Annotated[list[str], Meta(description="The entry must have all of these tags.")] = (
        msgspec.field(default_factory=list)
    )
    tags_any: Annotated[
        list[str], Meta(description="The entry must have at least one of these tags.")
    ] = msgspec.field(default_factory=list)
    scope: Annotated[Scope, Meta(description="The scope that the entry is bound to.")] = EMPTY_SCOPE
    mode: Annotated[Mode, Meta(description="Search by words, by meaning, or by both.")] = (
        Mode.HYBRID
    )
    kind: Annotated[
        str | None,
        Meta(description="The kind of the values; unlisted kinds are found by this filter only."),
    ] = None
    status: Annotated[
        str | None, Meta(description="The status, which the kind derives from the value.")
    ] = None
    state: Annotated[
        EntryState, Meta(description="The state, which the server sets; default: live.")
    ] = "live"
    about: Annotated[str | None, Meta(description="Only entries about this person.")] = None
    origin: Annotated[Origin | None, Meta(description="The origin of the content.")] = None
    source: Annotated[str | None, Meta(description="The URI of the source of the content.")] = None
    outcome: Annotated[EntryOutcome, Meta(description="The outcome that the entry reports.")] = (
        EntryOutcome.ANY
    )
    limit: Annotated[int, Meta(ge=1, le=MOST_HITS)] = DEFAULT_HITS
    min_trust: Annotated[float, Meta(ge=0, le=1, description="The least trust of an entry.")] = 0.0
    dense_weight: Annotated[
        Annotated[float, Meta(ge=0, le=HIGHEST_DENSE_WEIGHT)] | None,
        Meta(
            description="The weight of meaning in the mode `hybrid`, if words have weight 1;"
            " default: that of the server."
        ),
    ] = None
    as_of: Annotated[
        str | None,
        Meta(
            description="Search the entries as of this instant or date. Entries of tiers without"
            " versions are omitted if they were updated later; earlier versions are found by words."
        ),
    ] = None
    valid_at: Annotated[
        str | None,
        Meta(
            description="Only what holds at this RFC 3339 instant, by `valid_from` and"
            " `valid_until` of the values. A date stands for the end of that day in UTC, and `any`"
            " for all instants; default: that of `as_of`, or now."
        ),
    ] = None
    min_relevance: Annotated[
        float, Meta(ge=0, le=1, description="The least `relevance` of a result.")
    ] = 0.0
    strict: Strict = False
    explain: Annotated[
        bool,
        Meta(description="Whether each result contains the parts of its score and relevance."),
    ] = False


class ExplainResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The parts of a score: the sum of `lexical` to `graph`, times `prior`, `superseded`, `series`
    and `earlier_question`.

    If `graph` is above 0, `link` is what links the entry to one of the best results: a name that
    both have, or the id of one of the two. `superseded` is below 1 for a note of which a newer note
    says nearly the same. `series` is below 1 for an entry of a session with better results, if the
    query asks for an order or a development. If the query has several questions about different
    matters, `question` is the question that the score is for, or null for the whole query;
    `earlier_question` is below 1 for a question on an earlier line than the last one.

    `recency`, `outcome` and `use`, from 0 to 1, are the parts of the prior. `terms` are the words
    of the query and its context that occur in the entry or in its neighbours in the thread, and the
    words that occur there in place of one: a correction, a compound or another name.

    The relevance comes from `words`, the share of the query's words in the entry by their rarity,
    `words_nearby`, the same with its neighbours in the thread, `meaning`, the cosine of the query
    and the text or its best passage, null without a vector, and `by_author`, whether the query
    names the author.
    """

    lexical: float
    dense: float
    thread: float
    author: float
    date: float
    graph: float
    link: str | None
    recency: float
    outcome: float
    use: float
    prior: float
    superseded: float
    series: float
    earlier_question: float
    question: str | None
    terms: tuple[str, ...]
    words: float
    words_nearby: float
    meaning: float | None
    by_author: bool


class HighlightResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The passage of a long text that fits the query best.

    `start` and `end` count characters in the text of `field`, or in all texts of the value if
    `field` is null because several fields contain the passage.
    """

    field: str | None
    start: int
    end: int
    text: str


class SearchHitResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A result of a search. `explain` is present if it was requested, and `highlight` if the text
    is longer than a passage. `relevance` is the probability that it answers the query, which can be
    compared between searches; `score` is comparable within one search only."""

    entry: EntryResponse
    score: float
    relevance: float
    explain: ExplainResponse | UnsetType = UNSET
    highlight: HighlightResponse | UnsetType = UNSET


class SearchResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The results, best first.

    `relevance` is the probability that one of the best results answers the query, and `answered`
    whether that is probable enough to answer from them. `left_out` counts the results that were
    left out for their relevance. `model` is the embedding model, null for a search by words only.
    `searched` counts the readable entries that the search covered; `pending` counts those among
    them that are not embedded yet and can be found by words only. `note`,
    without results only, says this in words and how to search by meaning.
    """

    results: list[SearchHitResponse]
    relevance: float
    answered: bool
    left_out: int
    model: str | None
    searched: int
    pending: int
    note: str | UnsetType = UNSET


class ReshapeRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A query to augment with guidance from lessons."""

    query: Query
    agent_id: Annotated[
        str | None,
        Meta(description="The agent whose lessons apply; by default all readable lessons."),
    ] = None
    namespace: Annotated[str | None, Meta(description="The exact namespace of the lessons.")] = None
    limit: Annotated[int, Meta(ge=1, le=MOST_GUIDANCE, description="The most lessons to use.")] = (
        DEFAULT_GUIDANCE
    )


class GuidanceResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One line of guidance from one entry. `confidence`, from 0 to 1, is its trust."""

    kind: GuidanceKind
    text: str
    entry_id: str
    confidence: float


class ReshapeResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The query, followed by the guidance, if any."""

    query: str
    guidance: list[GuidanceResponse]


def explain_nothing(model: str | None, pending: int) -> str:
    """Says why a search may have found nothing, and what helps.

    model, pending: as in `SearchResponse`
    """
    if model is None:
        return (
            "searched by words only; with an embedder a search finds by meaning: `--embedder local`"
            ' of a server, `embedder="local"` of `memorywall.open`, `MEMORYWALL_EMBEDDER=local` of'
            " `memorywall mcp` (the extra `local`)"
        )
    searched = f"searched by words and by meaning ({model})"
    if pending:
        waiting = "1 entry waits" if pending == 1 else f"{pending:,} entries wait"
        return f"{searched}; {waiting} for the model: try again"
    return searched


def found_view(found: SearchPage) -> SearchResponse:
    """The wire form of the results of a search."""
    return SearchResponse(
        results=[_hit_view(hit) for hit in found.hits],
        relevance=round(found.relevance, _DECIMALS),
        answered=found.answered,
        left_out=found.left_out,
        model=found.model,
        searched=found.searched,
        pending=found.pending,
        note=UNSET if found.hits else explain_nothing(found.model, found.pending),
    )


def _hit_view(hit: Hit) -> SearchHitResponse:
    return SearchHitResponse(
        entry=view(hit.entry),
        score=round(hit.score, _DECIMALS),
        relevance=round(hit.relevance, _DECIMALS),
        explain=UNSET
        if hit.signals is None or hit.evidence is None
        else _explain(hit.signals, hit.evidence),
        highlight=UNSET if hit.highlight is None else _highlight(hit.highlight),
    )


def _highlight(highlight: Highlight) -> HighlightResponse:
    field, start, end, text = highlight
    return HighlightResponse(field=field, start=start, end=end, text=text)


def _explain(signals: Signals, evidence: Evidence) -> ExplainResponse:
    return ExplainResponse(
        lexical=round(signals.lexical, _DECIMALS),
        dense=round(signals.dense, _DECIMALS),
        thread=round(signals.thread, _DECIMALS),
        author=round(signals.author, _DECIMALS),
        date=round(signals.date, _DECIMALS),
        graph=round(signals.graph, _DECIMALS),
        link=signals.link,
        recency=round(signals.recency, _DECIMALS),
        outcome=round(signals.outcome, _DECIMALS),
        use=round(signals.use, _DECIMALS),
        prior=round(signals.prior, _DECIMALS),
        superseded=round(signals.superseded, _DECIMALS),
        series=round(signals.series, _DECIMALS),
        earlier_question=round(signals.earlier_question, _DECIMALS),
        question=signals.question,
        terms=signals.terms,
        words=round(evidence.words, _DECIMALS),
        words_nearby=round(evidence.words_nearby, _DECIMALS),
        meaning=None if evidence.meaning is None else round(evidence.meaning, _DECIMALS),
        by_author=evidence.author,
    )
