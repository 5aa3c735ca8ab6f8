"""The strict search: what a query names, and nothing that is only near to it.

A query for "k8s" is about the thing that has this name. What is about another cluster is near in
meaning and no result of a strict search.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memorywall.recall.analyzer import STOPWORDS, Analyzer, one_edit_away
from memorywall.recall.document import Document
from memorywall.recall.names import fold_name
from memorywall.recall.parsed_query import ShardQuery
from memorywall.recall.ranking import Ranked
from memorywall.records.words import fold_accents

LONGEST_NAME = 5
"""The most words of a name of a thing that a query is searched for."""


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


def are_about(ranked: Sequence[Ranked], names: set[str], terms: Analyzer) -> list[bool]:
    """Returns for each result whether it has or mentions one of the names, or is linked to one that
    does."""
    known = [names.intersection(_names_of(one.document)) for one in ranked]
    # A thing of several names is named by each of them.
    for one, some in zip(ranked, known, strict=True):
        if some:
            names = names.union(fold_accents(name) for name in one.document.aliases)
    stems = [{terms.of_word(word) or word for word in name.split()} for name in names]
    named = [bool(some) or _mentions(one, stems) for one, some in zip(ranked, known, strict=True)]
    nodes: set[str] = set()
    for one, is_named in zip(ranked, named, strict=True):
        if is_named:
            nodes.update((*one.document.nodes, one.document.entry_id))
    return [
        is_named or (one.graph > 0 and (one.link in nodes or one.document.entry_id in nodes))
        for one, is_named in zip(ranked, named, strict=True)
    ]


def _names_of(document: Document) -> Iterator[str]:
    return map(fold_accents, (*document.aliases, *document.nodes))


def _mentions(ranked: Ranked, names: Sequence[set[str]]) -> bool:
    words, number = ranked.shard.words, ranked.candidate.document
    return any(all(words.has(term, number, ()) for term in name) for name in names)
