"""Bodies about searching memory by words and meaning."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from memorywall.records.entry import EMPTY_SCOPE, Scope
from memorywall.records.recall import (
    DEFAULT_GUIDANCE,
    DEFAULT_HITS,
    LONGEST_QUERY,
    MOST_GUIDANCE,
    MOST_HITS,
    Found,
    GuidanceKind,
    Hit,
    Mode,
    Outcome,
    Signals,
)
from memorywall.records.tier import Tier
from memorywall.wire.entries import EntryView, view

_PLACES = 6

Query = Annotated[
    str,
    Meta(min_length=1, max_length=LONGEST_QUERY, description="What is asked, in any words."),
]
Namespace = Annotated[
    str | None, Meta(description="The namespace, or a prefix of it that ends in `*`.")
]


class Search(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question and the conditions that every entry found meets."""

    query: Query
    memory_type: Tier | None = None
    agent_id: Annotated[str | None, Meta(description="The owning agent.")] = None
    namespace: Namespace = None
    tags: Annotated[list[str], Meta(description="An entry has all of them.")] = []
    tags_any: Annotated[list[str], Meta(description="An entry has at least one of them.")] = []
    scope: Annotated[Scope, Meta(description="What an entry is bound to.")] = EMPTY_SCOPE
    mode: Annotated[Mode, Meta(description="By words, by meaning, or by both.")] = Mode.HYBRID
    outcome: Annotated[Outcome, Meta(description="How what an entry tells of ended.")] = Outcome.ANY
    limit: Annotated[int, Meta(ge=1, le=MOST_HITS)] = DEFAULT_HITS
    min_trust: Annotated[
        float, Meta(ge=0, le=1, description="How well an entry is founded at least.")
    ] = 0.0
    as_of: Annotated[
        str | None,
        Meta(description="As of this RFC 3339 instant: nothing made or changed later is found."),
    ] = None
    explain: Annotated[bool, Meta(description="Tell what each score is made of.")] = False


class Explain(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a score is made of: the shares of `lexical` to `date` add up, `prior` multiplies them.

    `recency`, `outcome` and `use`, from 0 to 1, are what the prior is made of. `terms` are the
    words of the query that the entry, or what stands beside it in its thread, has.
    """

    lexical: float
    dense: float
    thread: float
    author: float
    date: float
    recency: float
    outcome: float
    use: float
    prior: float
    terms: tuple[str, ...]


class SearchHit(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An entry that was found. `explain` is there where it was asked for."""

    entry: EntryView
    score: float
    explain: Explain | UnsetType = UNSET


class SearchReply(msgspec.Struct, frozen=True, kw_only=True):
    """What was found, best first.

    `model` is the one that meaning was compared with, null for words alone. `pending` counts the
    entries searched that were found by words only, because they are not embedded yet.
    """

    results: list[SearchHit]
    model: str | None
    pending: int


class Reshape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question to be reshaped by what earlier ones have taught."""

    query: Query
    agent_id: Annotated[
        str | None, Meta(description="Whose experience; everything the caller may read if absent.")
    ] = None
    namespace: Annotated[str | None, Meta(description="Where it lies: a namespace, whole.")] = None
    limit: Annotated[
        int, Meta(ge=1, le=MOST_GUIDANCE, description="How many pieces of guidance at most.")
    ] = DEFAULT_GUIDANCE


class GuidanceView(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one entry has taught, on one line, and how well it is founded, from 0 to 1."""

    kind: GuidanceKind
    text: str
    entry_id: str
    confidence: float


class ReshapeReply(msgspec.Struct, frozen=True, kw_only=True):
    """The query, with guidance appended where there is some."""

    query: str
    guidance: list[GuidanceView]


def found_view(found: Found) -> SearchReply:
    """The wire form of what was found."""
    return SearchReply(
        results=[_hit_view(hit) for hit in found.hits], model=found.model, pending=found.pending
    )


def _hit_view(hit: Hit) -> SearchHit:
    return SearchHit(
        entry=view(hit.entry),
        score=round(hit.score, _PLACES),
        explain=UNSET if hit.signals is None else _explain(hit.signals),
    )


def _explain(signals: Signals) -> Explain:
    return Explain(
        lexical=round(signals.lexical, _PLACES),
        dense=round(signals.dense, _PLACES),
        thread=round(signals.thread, _PLACES),
        author=round(signals.author, _PLACES),
        date=round(signals.date, _PLACES),
        recency=round(signals.recency, _PLACES),
        outcome=round(signals.outcome, _PLACES),
        use=round(signals.use, _PLACES),
        prior=round(signals.prior, _PLACES),
        terms=signals.terms,
    )
