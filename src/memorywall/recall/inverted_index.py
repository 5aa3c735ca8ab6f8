"""The inverted index of a shard: the documents of a term, its frequencies, and document lengths.

Each document is stored once. Terms of its neighbours in the thread also count for a document. They
are looked up during a query, so that a new or removed document does not change other documents.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from copy import copy
from itertools import compress

from memorywall.recall.compounds import Vocabulary
from memorywall.recall.links import NOTHING, Links
from memorywall.recall.segment_columns import Lists, WordColumns

COUNT_BITS = 8
"""A posting is one integer: the number of the document, and in this many low bits the frequency."""
_LARGEST_COUNT = (1 << COUNT_BITS) - 1
_POSTING_BYTES = 4.5
_NO_POSTINGS = array("I")
_TERM_BYTES = 220
"""The approximate bytes of a term besides its postings."""


class InvertedIndex:
    """An inverted index over documents with the numbers of `links`.

    own: postings of texts by term
    aside: postings of labels by term
    vocabulary: the terms of `own`
    lengths: the number of words of each document with its neighbours
    questions: 1 for a document that ends with a question
    """

    def __init__(self, links: Links) -> None:
        self._links = links
        self.own: dict[str, array[int]] = {}
        self.aside: dict[str, array[int]] = {}
        self.vocabulary = Vocabulary(self.own)
        self.lengths = array("i")
        self.questions = bytearray()
        self.total = 0
        """The sum of the lengths of present documents."""
        self._own_lengths = array("i")
        self._postings = 0

    @property
    def size(self) -> int:
        """The approximate size in bytes."""
        terms = len(self.own) + len(self.aside)
        return int(self._postings * _POSTING_BYTES) + terms * _TERM_BYTES + 9 * len(self.lengths)

    def add(
        self, document: int, own: Sequence[str], aside: Collection[str], length: int, *, asks: bool
    ) -> None:
        """Adds the next document, which is in its thread already.

        length: in words
        """
        index, shifted = self.own, document << COUNT_BITS
        for term, count in Counter(own).items():
            postings = index.get(term)
            if postings is None:
                postings = index[term] = array("I")
            postings.append(shifted | min(count, _LARGEST_COUNT))
        for term in aside:
            named = self.aside.get(term)
            if named is None:
                named = self.aside[term] = array("i")
            named.append(document)
        self._own_lengths.append(length)
        self._postings += len(own) + len(aside)
        self.lengths.append(0)
        self.questions.append(asks)
        links = self._links
        self._measure(document, links.previous[document], links.next[document])

    def columns(self) -> WordColumns:
        """The columns of an index without removed documents."""
        return WordColumns(
            own=Lists.of(self.own),
            aside=Lists.of(self.aside),
            own_lengths=self._own_lengths.tobytes(),
            lengths=self.lengths.tobytes(),
            questions=bytes(self.questions),
            total=self.total,
            postings=self._postings,
        )

    def absorb(self, columns: WordColumns, joined: Iterable[tuple[int, int]]) -> None:
        """Adds documents, which are in their threads already.

        joined: see `Links.absorb`
        """
        columns.own.append_to(self.own, "I")
        columns.aside.append_to(self.aside, "i")
        self._own_lengths.frombytes(columns.own_lengths)
        self.lengths.frombytes(columns.lengths)
        self.questions.extend(columns.questions)
        self.total += columns.total
        self._postings += columns.postings
        for pair in joined:
            self._measure(*pair)

    def remove(self, document: int, before: int, after: int) -> None:
        """Removes the length of a document that was removed from its thread. Its postings remain,
        and readers skip them."""
        self.total -= self.lengths[document]
        self.lengths[document] = 0
        self._measure(before, after)

    def own_length(self, document: int) -> int:
        """The number of words of a document without its neighbours."""
        return self._own_lengths[document]

    def frequency(self, term: str, readable: bytearray | None) -> int:
        """The number of readable documents whose text contains a term."""
        postings = self.own.get(term)
        if postings is None:
            return 0
        return len(postings) if readable is None else count_marked(readable, postings, COUNT_BITS)

    def has(self, term: str, document: int, near: Iterable[int]) -> bool:
        """Whether a document contains a term in its text or its label, or one of the documents near
        it in its text."""
        own = self.own.get(term)
        if own is not None and (
            _contains(own, document) or any(_contains(own, one) for one in near)
        ):
            return True
        labels = self.aside.get(term)
        return labels is not None and _contains(labels, document, 0)

    def with_all(self, terms: Iterable[str], readable: bytearray | None, most: int) -> list[int]:
        """The readable documents whose text contains all of some terms; none if each of the terms
        is in more than `most` readable documents."""
        counted = sorted((self.frequency(term, readable), term) for term in terms)
        if not counted or counted[0][0] > most:
            return []
        first, *rest = (self.own.get(term, _NO_POSTINGS) for _, term in counted)
        found = [posting >> COUNT_BITS for posting in first]
        # Postings ascend, because documents do.
        return [
            one
            for one in found
            if (readable is None or readable[one]) and all(_contains(other, one) for other in rest)
        ]

    def total_of(self, readable: bytearray | None) -> int:
        """The sum of the lengths of readable documents."""
        if readable is None:
            return self.total
        return sum_marked(readable, self.lengths)

    def among(self, links: Links, readable: bytearray) -> InvertedIndex:
        """The same postings, with lengths of readable documents for the given links."""
        words = copy(self)
        words._links = links
        words.lengths = array("i", bytes(self.lengths.itemsize * len(self.lengths)))
        words.total = 0
        for document, may in enumerate(readable):
            if may:
                words._measure(document)
        return words

    def _measure(self, *documents: int) -> None:
        """Computes the lengths of documents; missing documents are skipped."""
        own, links = self._own_lengths, self._links
        for document in documents:
            if document == NOTHING:
                continue
            length = own[document]
            for neighbour in (links.previous[document], links.next[document]):
                if neighbour != NOTHING:
                    length += own[neighbour]
            self.total += length - self.lengths[document]
            self.lengths[document] = length


def _contains(postings: array[int], document: int, shift: int = COUNT_BITS) -> bool:
    at = bisect_left(postings, document << shift)
    return at < len(postings) and postings[at] >> shift == document


_FEW = 200


def count_marked(marks: bytearray, numbers: array[int], shift: int = 0) -> int:
    """The number of marked documents among `numbers`.

    marks: 1 for each marked document
    numbers: numbers of documents, of 4 bytes, after this many low bits of something else
    """
    numpy = sys.modules.get("numpy")
    if numpy is None or len(numbers) < _FEW:
        return sum(marks[number >> shift] for number in numbers)
    documents = numpy.frombuffer(numbers, numpy.uint32) >> shift
    return int(numpy.count_nonzero(numpy.frombuffer(marks, numpy.uint8)[documents]))


def sum_marked(marks: bytearray, values: array[int]) -> int:
    """The sum of the values of the marked documents.

    values: one for each document, of 4 bytes
    """
    numpy = sys.modules.get("numpy")
    if numpy is None or len(values) < _FEW:
        return sum(compress(values, marks))
    marked = numpy.frombuffer(marks, numpy.bool_)
    return int(numpy.frombuffer(values, numpy.int32)[marked].sum(dtype=numpy.int64))
