"""A parsed query, and the shards that it is for."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memorywall.recall.candidates import QueryTerm, Variant
from memorywall.recall.dates import FromEvent
from memorywall.recall.index_shard import IndexShard


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardQuery:
    """A shard with its readable and its wanted documents; None for all."""

    shard: IndexShard
    readable: bytearray | None
    wanted: bytearray | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedQuery:
    """A parsed query.

    terms: pairs of a word and its term
    context: such pairs of the text before the query
    names: such pairs of the names of authors, which are no terms
    variants: other terms that count for a term, by term
    dates: the parts of dates in the query
    events: the dates that are counted from an event, with the query for the event
    author: the only named author, None for no or several authors
    vector: the vector of the query, None for a search by words
    lexical, dense: the weights of words and meaning
    is_weighted: whether the caller has chosen the weight of meaning, so that what the documents are
        does not change it
    languages: the languages of readable documents besides English
    asks_assistant: whether the query asks what an assistant said
    weighted: the terms with their weights, as they were searched for
    mentioned: the terms of each word that is written as a name and names no author
    unknown: the share of the names in the query, authors among them, that are in no readable text
    absent: the share of the weight of terms that are in no readable text
    question: the text, if this is one of several questions of a query
    share: the factor of the scores
    """

    terms: tuple[tuple[str, str], ...]
    context: tuple[tuple[str, str], ...] = ()
    names: tuple[tuple[str, str], ...] = ()
    variants: Mapping[str, tuple[Variant, ...]] = field(default_factory=dict)
    dates: tuple[Hashable, ...] = ()
    events: tuple[tuple[FromEvent, ParsedQuery], ...] = ()
    author: str | None = None
    vector: Any = None
    lexical: float = 1.0
    dense: float = 1.0
    is_weighted: bool = False
    languages: Sequence[str] = ()
    asks_assistant: bool = False
    mentioned: tuple[tuple[str, ...], ...] = ()
    unknown: float = 0.0
    weighted: Sequence[QueryTerm] = ()
    absent: float = 0.0
    question: str | None = None
    share: float = 1.0
