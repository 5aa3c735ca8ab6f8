"""The weights of the parts of a query, with statistics of readable documents only."""

from __future__ import annotations

import math
from collections.abc import Sequence

from memorywall.recall.candidates import DatePart, QueryTerm, ScoringQuery, Variant
from memorywall.recall.parsed_query import ParsedQuery, ShardQuery
from memorywall.recall.weights import Weights


class Frequencies:
    """The numbers of readable documents whose text contains a term, each counted once."""

    def __init__(self, parts: Sequence[ShardQuery]) -> None:
        self._parts = parts
        self._vocabularies = [one.shard.words.own for one in parts]
        self._known: dict[str, int] = {}

    def of(self, term: str) -> int:
        """The number of readable documents with a term."""
        # Most of the asked terms, such as those that differ by a letter, are in no text.
        for vocabulary in self._vocabularies:
            if term in vocabulary:
                break
        else:
            return 0
        known = self._known.get(term)
        if known is None:
            counts = (one.shard.words.frequency(term, one.readable) for one in self._parts)
            known = self._known[term] = sum(counts)
        return known


def weigh(
    parts: Sequence[ShardQuery], parsed: ParsedQuery, frequencies: Frequencies, weights: Weights
) -> ScoringQuery:
    """The query for all shards."""
    size, total = 0, 0
    for one in parts:
        size += one.shard.count(one.readable)
        total += one.shard.words.total_of(one.readable)
    terms: list[QueryTerm] = []
    common: list[QueryTerm] = []
    for text, share in shares_of(parsed, weights).items():
        frequency, variants = frequencies.of(text), parsed.variants.get(text, ())
        if variants and not frequency:
            # The best variant stands for a word that is in no text.
            best = max(one.share for one in variants)
            variants = tuple(Variant(one.text, one.share / best) for one in variants)
            frequency = max(frequencies.of(one.text) for one in variants)
            share *= best
        term = QueryTerm(text, share * _rarity(size, frequency), variants)
        is_common = frequency > max(weights.common_from, weights.common * size)
        (common if is_common else terms).append(term)
    dates = []
    for place in parsed.dates:
        frequency = sum(one.shard.frequency(place, one.readable) for one in parts)
        if frequency:
            dates.append(DatePart(place, _rarity(size, frequency)))
    # Common terms are ignored beside other terms, and are used if there are no others.
    average = total / size if size else 0.0
    assistant = assistant_factor(parsed, weights)
    return ScoringQuery(terms or common, dates, average, parsed.vector, assistant)


def absent_share(terms: Sequence[QueryTerm], frequencies: Frequencies) -> float:
    """The share of the weight of terms that are in no readable text, nor any of their variants."""
    total = sum(term.weight for term in terms)
    absent = (one.weight for one in terms if not one.variants and not frequencies.of(one.text))
    return sum(absent) / total if total else 0.0


def unknown_share(parsed: ParsedQuery, frequencies: Frequencies) -> float:
    """The share of the names in a query that are in no readable text. Authors are known."""
    unknown = sum(not any(map(frequencies.of, terms)) for terms in parsed.mentioned)
    names = len(parsed.mentioned) + bool(parsed.names)
    return unknown / names if names else 0.0


def shares_of(parsed: ParsedQuery, weights: Weights) -> dict[str, float]:
    """The terms of a query with its context, each with the share that its place gives it."""
    shares = dict.fromkeys((term for _, term in parsed.terms), 1.0)
    for _, term in parsed.context:
        shares.setdefault(term, weights.context)
    return shares


def assistant_factor(parsed: ParsedQuery, weights: Weights) -> float:
    """The factor of messages of assistants."""
    return 1.0 if parsed.asks_assistant else weights.assistant


def are_code(parts: Sequence[ShardQuery]) -> bool:
    """Whether most of the readable documents are programs."""
    code = sum(one.shard.code_count(one.readable) for one in parts)
    return code > 0 and 2 * code > sum(one.shard.count(one.readable) for one in parts)


def _rarity(size: int, frequency: int) -> float:
    return math.log(1 + (size - frequency + 0.5) / (frequency + 0.5))
