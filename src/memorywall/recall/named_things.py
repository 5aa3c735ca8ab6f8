"""The strict search: what a query names, and nothing that is only near to it.

A query for "k8s" is about the thing that has this name. What is about another cluster is near in
meaning and no result of a strict search.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import IntEnum

from memorywall.recall.analyzer import STOPWORDS, Analyzer, one_edit_away, words_of
from memorywall.recall.dates import NAMES_OF_DATES
from memorywall.recall.document import Document
from memorywall.recall.languages import language_of
from memorywall.recall.names import fold_name
from memorywall.recall.parsed_query import ShardQuery
from memorywall.recall.ranking import Ranked
from memorywall.records.words import fold_accents

_CAPITALIZED = re.compile(r"\b[^\W\d_]\w{2,}")
_OPENING = " \t\"'([{\u00ab\u201c\u2018\u00a1\u00bf"
_ENDS = ".!?:\n\u2026"
_CAPITAL_NOUNS = "de"
_NO_NAMES = STOPWORDS | NAMES_OF_DATES
LONGEST_NAME = 5
"""The most words of a name of a thing that a query is searched for."""


def capitalized_names(query: str) -> list[str]:
    """Returns the words of a query that are written as names: with a capital letter within a
    sentence. Names of months and weekdays are dates. German writes every noun so, and has none."""
    names = []
    for found in _CAPITALIZED.finditer(query):
        if not found[0][0].isupper():
            continue
        name, before = found[0], query[: found.start()].rstrip(_OPENING)
        lower = fold_accents(name.lower())
        begins = not before or before[-1] in _ENDS
        if not begins and name[1:2].islower() and lower not in _NO_NAMES:
            names.append(name)
    # Most queries have no such word, and their language does not matter.
    if names and language_of(words_of(query)) == _CAPITAL_NOUNS:
        return []
    return names


def phrases_of(query: str) -> dict[str, None]:
    """Returns the phrases of a query that may be names, without accents and in lower case."""
    words = fold_accents(fold_name(query)).split()
    return dict.fromkeys(
        " ".join(words[start : start + length])
        for length in range(1, LONGEST_NAME + 1)
        for start in range(len(words) - length + 1)
    )


def names_in(query: str, parts: Sequence[ShardQuery], terms: Analyzer) -> set[str]:
    """Returns the names of things of readable documents that a query names: as they are written, by
    their stems, or with one letter wrong."""
    if not any(part.shard.places.has_nodes for part in parts):
        return set()
    found: set[str] = set()
    for phrase in phrases_of(query):
        if phrase in STOPWORDS:
            continue
        spelled = {phrase, " ".join(terms.of_word(word) or word for word in phrase.split())}
        named = {one for one in spelled if _is_name(one, parts)}
        if not named and " " not in phrase:
            named = {one for one in one_edit_away(phrase) if _is_name(one, parts)}
        found |= named
    return found


def _is_name(name: str, parts: Sequence[ShardQuery]) -> bool:
    return any(
        part.shard.frequency((facet, name), part.readable)
        for part in parts
        for facet in ("alias", "node")
    )


class Aboutness(IntEnum):
    """How a result is about the things that a query names."""

    NOTHING = 0
    LINKED = 1
    """It is linked to what has the name."""
    MENTION = 2
    """Its text mentions the name."""
    THING = 3
    """The name is one of its names."""


def aboutness_of(ranked: Sequence[Ranked], names: set[str], terms: Analyzer) -> list[Aboutness]:
    """Returns for each result how it is about one of the names."""
    known = [bool(names.intersection(_names_of(one.document))) for one in ranked]
    # A thing of several names is named by each of them.
    for one, is_thing in zip(ranked, known, strict=True):
        if is_thing:
            names = names.union(fold_accents(name) for name in one.document.aliases)
    stems = [{terms.of_word(word) or word for word in name.split()} for name in names]
    nodes: set[str] = set()
    for one, is_thing in zip(ranked, known, strict=True):
        if is_thing:
            nodes.update((*one.document.nodes, one.document.entry_id))

    def judge(one: Ranked, *, is_thing: bool) -> Aboutness:
        if is_thing:
            return Aboutness.THING
        if _mentions(one, stems):
            return Aboutness.MENTION
        is_linked = one.graph > 0 and (one.link in nodes or one.document.entry_id in nodes)
        return Aboutness.LINKED if is_linked else Aboutness.NOTHING

    return [judge(one, is_thing=some) for one, some in zip(ranked, known, strict=True)]


def _names_of(document: Document) -> Iterator[str]:
    return map(fold_accents, (*document.aliases, *document.nodes))


def _mentions(ranked: Ranked, names: Sequence[set[str]]) -> bool:
    words, number = ranked.shard.words, ranked.candidate.document
    return any(all(words.has(term, number, ()) for term in name) for name in names)
