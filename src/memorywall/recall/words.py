"""The words of a slice: which documents have a term, how often, and how long they are.

Each document is held once. What its neighbours in the thread say counts for it too, but is looked
up when a query comes: so nothing has to be changed in one document when another comes or goes.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from copy import copy
from itertools import compress

from memorywall.recall.links import NOTHING, Links

COUNT_BITS = 8
"""A posting is one number: a document's, and below it, in so many bits, how often it has a term."""
_LARGEST_COUNT = (1 << COUNT_BITS) - 1
_POSTING_BYTES = 4.5
_TERM_BYTES = 220
"""About what a term costs besides its postings: its text, a list and a place in a table."""


class Words:
    """An inverted index over documents that are numbered by `links`.

    own: what documents say, as postings by term
    aside: what only names them, by term
    lengths: how many words each document has with its neighbours
    questions: 1 for a document that ends with a question
    """

    def __init__(self, links: Links) -> None:
        self._links = links
        self.own: dict[str, array[int]] = {}
        self.aside: dict[str, array[int]] = {}
        self.lengths = array("i")
        self.questions = bytearray()
        self.total = 0
        """The sum of the lengths of the documents that are there."""
        self._own_lengths = array("i")
        self._postings = 0

    @property
    def size(self) -> int:
        """About how much memory it takes."""
        terms = len(self.own) + len(self.aside)
        return int(self._postings * _POSTING_BYTES) + terms * _TERM_BYTES + 9 * len(self.lengths)

    def add(
        self, document: int, own: Sequence[str], aside: set[str], length: int, *, asks: bool
    ) -> None:
        """Adds the next document, which stands in its thread already. `length` is in words."""
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

    def remove(self, document: int, before: int, after: int) -> None:
        """Leaves a document that has been taken out of its thread out of the lengths. Its postings
        stay, for whoever reads them to pass over."""
        self.total -= self.lengths[document]
        self.lengths[document] = 0
        self._measure(before, after)

    def frequency(self, term: str, readable: bytearray | None) -> int:
        """How many documents say a term, among those that are readable."""
        postings = self.own.get(term, ())
        if readable is None:
            return len(postings)
        return sum(readable[posting >> COUNT_BITS] for posting in postings)

    def has(self, term: str, documents: set[int]) -> bool:
        """Whether one of some documents says a term."""
        return any(posting >> COUNT_BITS in documents for posting in self.own.get(term, ()))

    def total_of(self, readable: bytearray | None) -> int:
        """The sum of the lengths of the documents that are readable."""
        if readable is None:
            return self.total
        return sum(compress(self.lengths, readable))

    def among(self, links: Links, readable: bytearray) -> Words:
        """The same words, with the lengths that readable documents have when these links hold."""
        words = copy(self)
        words._links = links
        words.lengths = array("i", bytes(self.lengths.itemsize * len(self.lengths)))
        words.total = 0
        for document, may in enumerate(readable):
            if may:
                words._measure(document)
        return words

    def _measure(self, *documents: int) -> None:
        """Works out the lengths of documents, passing over those that are not there."""
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
