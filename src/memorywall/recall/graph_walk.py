"""The walk over the graph of memory: from the best results to what names and edges link to them.

The answer to "where does the owner of the billing service live?" is an entry that shares no word
with the question. The entry about the owner of the service is found, and both name the same person.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from memorywall.recall.analyzer import Analyzer
from memorywall.recall.document import Document
from memorywall.recall.index_shard import IndexShard
from memorywall.recall.parsed_query import ShardQuery
from memorywall.records.words import fold_accents

_MOST_LINKED = 50
"""The most documents that a name links. What so many share says little about each."""
_MOST_WITH_WORD = 100


class Link(NamedTuple):
    """What links a document to one of the best results.

    share: of the bonus, 0 to 1; the more documents have the name, the less
    node: the common name, or the id of one of the two entries
    """

    share: float
    node: str


class Seed(NamedTuple):
    """A result from which the walk begins.

    share: its score as a share of the best one
    """

    share: float
    shard: IndexShard
    number: int
    document: Document


def walk(
    parts: Sequence[ShardQuery], seeds: Sequence[Seed], terms: Analyzer
) -> list[dict[int, Link]]:
    """The wanted documents that are linked to a seed, by number, for each part. One step is
    walked."""
    found: list[dict[int, Link]] = [{} for _ in parts]

    @cache
    def is_frequent(node: str) -> bool:
        # The seed is one of them. To collect all documents of a frequent name takes long.
        counts = (one.shard.frequency(("node", fold_accents(node)), one.readable) for one in parts)
        return sum(counts) > _MOST_LINKED + 1

    for seed in seeds:
        for node in (*seed.document.nodes, seed.document.entry_id):
            if is_frequent(node):
                continue
            linked = [
                set(_readable(one, _linked(one, node, seed.document, terms))) for one in parts
            ]
            for one, numbers in zip(parts, linked, strict=True):
                if one.shard is seed.shard:
                    numbers.discard(seed.number)
            count = sum(map(len, linked))
            if not 0 < count <= _MOST_LINKED:
                continue
            link = Link(seed.share / count, node)
            for one, numbers, links in zip(parts, linked, found, strict=True):
                for number in numbers:
                    is_wanted = one.wanted is None or one.wanted[number]
                    if is_wanted and (number not in links or links[number] < link):
                        links[number] = link
    return found


def _linked(part: ShardQuery, node: str, document: Document, terms: Analyzer) -> Iterator[int]:
    """The documents that link a node, the entry with this id, and those that mention this name."""
    shard = part.shard
    yield from shard.at(("node", fold_accents(node)))
    if node != document.entry_id:
        if (number := shard.number(node)) is not None:
            yield number
        words = (terms.of_word(word, document.language) for word in node.split())
        named = {term for term in words if term}
        yield from shard.words.with_all(named, part.readable, _MOST_WITH_WORD)


def _readable(part: ShardQuery, numbers: Iterator[int]) -> Iterator[int]:
    readable = part.shard.alive if part.readable is None else part.readable
    return (number for number in numbers if readable[number])
