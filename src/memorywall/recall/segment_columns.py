"""The columns of an index segment: numbers of documents, and postings, as 4-byte integers."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any

import msgspec

from memorywall.recall.packed_documents import Pack
from memorywall.recall.sentence_digests import DigestColumns


class Lists(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Lists of numbers by key, one after the other.

    ends: where each list ends, in bytes
    """

    keys: list[str | tuple[str, str | int]]
    ends: list[int]
    numbers: bytes

    @classmethod
    def of(cls, lists: Mapping[Any, array[int]]) -> Lists:
        """The columns of lists."""
        ends, numbers = [], bytearray()
        for one in lists.values():
            numbers += one.tobytes()
            ends.append(len(numbers))
        return cls(list(lists), ends, bytes(numbers))

    def append_to(self, lists: dict[Any, array[int]], typecode: str) -> None:
        """Appends each list to the one with the same key."""
        start, numbers = 0, self.numbers
        for key, end in zip(self.keys, self.ends, strict=True):
            there = lists.get(key)
            if there is None:
                there = lists[key] = array(typecode)
            there.frombytes(numbers[start:end])
            start = end


class LinkColumns(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The neighbours of each document, and the first and the last document of each thread."""

    previous: bytes
    next: bytes
    threads: list[tuple[tuple[str, ...], int, int]]


class WordColumns(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An inverted index; see `InvertedIndex`."""

    own: Lists
    aside: Lists
    own_lengths: bytes
    lengths: bytes
    questions: bytes
    total: int
    postings: int


class IndexSegment(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The columns of a shard; see `IndexShard`.

    ids: the ids of the documents
    named: the number of documents of each named author
    aside, expiries: with numbers within the segment
    """

    ids: list[str]
    documents: Pack
    links: LinkColumns
    words: WordColumns
    authors: list[str]
    author_numbers: bytes
    named: dict[str, int]
    standings: bytes
    codes: bytes
    aside: list[int]
    expiries: list[tuple[str, int]]
    places: Lists
    sentences: DigestColumns
