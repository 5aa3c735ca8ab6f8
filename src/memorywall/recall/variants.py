"""Variants of the terms of a query: other terms of the searched texts that mean the same or a part.

They are the correction of a word that is in no text, compounds with a word and the parts of a
compound, and the other names that entries give to a thing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

from memorywall.recall.analyzer import Analyzer, one_edit_away
from memorywall.recall.candidates import Variant
from memorywall.recall.compounds import LANGUAGES_WITH_COMPOUNDS, parts_of
from memorywall.recall.languages import ENGLISH
from memorywall.recall.parsed_query import ParsedQuery, ShardQuery
from memorywall.recall.query_weights import Frequencies, shares_of
from memorywall.recall.weights import Weights

_MOST_CORRECTED = 8
"""The most words of a query whose absent terms are corrected. A long query has words that are
simply in no text, and enough others."""
_SHORTEST_WORD = 3
"""The least characters of a word that is a part of a compound."""
_MOST_COMPOUNDED = 20
"""The most words of a query whose compounds and parts count."""
_MOST_COMPOUNDS = 20
"""The most compounds that end with a term."""


def with_variants(
    parts: Sequence[ShardQuery],
    parsed: ParsedQuery,
    frequencies: Frequencies,
    weights: Weights,
    terms: Analyzer,
) -> ParsedQuery:
    """The query with all variants of its terms that are in readable texts."""
    asked = shares_of(parsed, weights)
    found: dict[str, dict[str, float]] = {term: {} for term in asked}
    for term, variants in parsed.variants.items():
        found.setdefault(term, {}).update(variants)
    for term, variant in _compounds(parts, parsed, frequencies, terms):
        if term in found:
            found[term].setdefault(variant, weights.compound)
    for term in _absent(parsed, frequencies):
        if not found[term] and (corrected := _corrected(term, frequencies)) is not None:
            found[term][corrected] = weights.corrected
    kept = {
        term: tuple(
            Variant(text, share)
            for text, share in variants.items()
            if share and text not in asked and frequencies.of(text)
        )
        for term, variants in found.items()
    }
    return replace(parsed, variants={term: some for term, some in kept.items() if some})


def _compounds(
    parts: Sequence[ShardQuery], parsed: ParsedQuery, frequencies: Frequencies, terms: Analyzer
) -> Iterator[tuple[str, str]]:
    """The compounds with words of a query, and the parts of its compounds, each after a term."""
    words: dict[str, list[str]] = {}
    for word, term in parsed.terms:
        # What has no term in English is a stop word, whatever it is in another language.
        if word.isdigit() or (len(word) >= _SHORTEST_WORD and terms.of_word(word)):
            words.setdefault(word, []).append(term)
    if len(words) > _MOST_COMPOUNDED:
        return
    languages = LANGUAGES_WITH_COMPOUNDS.intersection(parsed.languages)
    pairs = pairwise(word for word, _ in parsed.terms)
    backward = ((other, one) for one, other in pairwise(words)) if languages else ()
    for one, other in (*pairs, *backward):
        if one == other or one not in words or other not in words or one.isdigit():
            continue
        for joined in {terms.of_word(one + other): None, **{one + t: None for t in words[other]}}:
            # The stem of both is no compound if it contains no part of the second.
            shortest = len(one) + min(len(other), _SHORTEST_WORD)
            if len(joined) >= shortest and frequencies.of(joined):
                yield from ((term, joined) for term in (*words[one], *words[other]))
    for word, own in words.items():
        for language in (ENGLISH, *sorted(languages)):
            # In English, a word with texts of its own is hardly ever a compound of two others.
            if language != ENGLISH or not any(map(frequencies.of, own)):
                stem = partial(terms.of_word, language=language)
                yield from ((t, part) for part in parts_of(word, stem, frequencies.of) for t in own)
        for head in own if languages else ():
            yield from ((head, compound) for compound in _with_head(head, parts, frequencies))


def _with_head(head: str, parts: Sequence[ShardQuery], frequencies: Frequencies) -> Sequence[str]:
    """The most frequent compounds with a last part."""
    vocabularies = [part.shard.words.vocabulary for part in parts]
    known = {one for vocabulary in vocabularies for one in vocabulary.ending_with(head)}
    # Only readable texts decide which of many are left out.
    readable = sorted(filter(frequencies.of, known))
    readable.sort(key=frequencies.of, reverse=True)
    return readable[:_MOST_COMPOUNDS]


def _absent(parsed: ParsedQuery, frequencies: Frequencies) -> Iterator[str]:
    """The terms to correct: in a short query, those of words that are in no text in any
    language."""
    pairs = (*parsed.terms, *parsed.context)
    if len({word for word, _ in pairs}) <= _MOST_CORRECTED:
        found = {word for word, term in pairs if frequencies.of(term)}
        yield from dict.fromkeys(term for word, term in pairs if word not in found)


def _corrected(term: str, frequencies: Frequencies) -> str | None:
    """The most frequent readable term that is one edit away from a term that is in no text."""
    best, highest = None, 0
    for other in one_edit_away(term):
        frequency = frequencies.of(other)
        if frequency > highest:
            best, highest = other, frequency
    return best
