"""An index shard: the searchable entries of one owner, in memory.

Entries in tiers that are isolated by namespace have no owner; they are one shard in each tenant.
"""

from __future__ import annotations

import heapq
from array import array
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from copy import copy
from typing import TYPE_CHECKING

from memorywall.recall.analyzer import Analyzer, words_of
from memorywall.recall.dates import dates_told, parts_of
from memorywall.recall.document import Document, Text
from memorywall.recall.facet_lists import FacetLists
from memorywall.recall.facet_masks import FacetMasks
from memorywall.recall.inverted_index import InvertedIndex, count_marked
from memorywall.recall.languages import ENGLISH
from memorywall.recall.links import NOTHING, Links
from memorywall.recall.packed_documents import Documents
from memorywall.recall.sentence_digests import LASTING_TIERS, SentenceDigests
from memorywall.recall.weights import Weights
from memorywall.records.recall import UseCounts
from memorywall.records.words import fold_accents

if TYPE_CHECKING:
    from memorywall.recall.segment_columns import IndexSegment
    from memorywall.recall.vectors import Vectors

_DOCUMENT_BYTES = 600
"""The approximate bytes of a document besides its terms and its vector."""
_FEW_DEAD = 256
_LONGEST_COUNTER = 2


class IndexShard:
    """Documents by number, and all indexes over them.

    position: the `seq` of the last event before the load
    authors: the number of each document's author
    standings: the `Standing` of each document
    named: the authors in values by the first word of the name, each with its number of documents
    missing: entries without a vector with their numbers, in the order of their addition
    looked: the position of embedding at the last search for vectors
    aside: documents that a search shows only where it asks for their state or kind, or while they
        are valid
    """

    def __init__(self, owner: str, position: int, weights: Weights) -> None:
        self.owner = owner
        self.weights = weights
        self.position = position
        self.alive = bytearray()
        self.documents = Documents(self.alive)
        self.links = Links()
        self.words = InvertedIndex(self.links)
        self.vectors: Vectors | None = None
        self.authors = array("i")
        self.uses: dict[int, UseCounts] = {}
        self.named: dict[str, Counter[str]] = {}
        self.missing: dict[str, int] = {}
        self.looked = -1
        self.standings = bytearray()
        self.codes = bytearray()
        self._code_count = 0
        self.aside: set[int] = set()
        self.author_numbers: dict[str, int] = {}
        self.places = FacetLists()
        self.sentences = SentenceDigests()
        self.expiries: list[tuple[str, int]] = []
        self._dead = 0
        self._numbers: dict[str, int] = {}
        self._namespaces: set[str] = set()
        self._masks = FacetMasks()

    def __len__(self) -> int:
        """The number of documents."""
        return len(self.documents) - self._dead

    @property
    def size(self) -> int:
        """The approximate size in bytes."""
        vectors = 0 if self.vectors is None else self.vectors.size
        aside = self._masks.size + self.sentences.size
        return len(self.documents) * _DOCUMENT_BYTES + self.words.size + vectors + aside

    @property
    def needs_compaction(self) -> bool:
        """Whether so many documents were removed that the shard should be rebuilt."""
        return self._dead > _FEW_DEAD and self._dead > len(self) / 2

    @property
    def is_whole(self) -> bool:
        """Whether no document was ever removed."""
        return self._dead == 0

    def version(self, entry_id: str) -> int | None:
        """The version of an entry in the shard, None if it is not there."""
        number = self.number(entry_id)
        document = None if number is None else self.documents[number]
        return None if document is None else document.version

    def number(self, entry_id: str) -> int | None:
        """The number of the document of an entry, None if it is not there."""
        number = self._numbers.get(entry_id)
        return self.documents.find(entry_id) if number is None else number

    def put(self, document: Document, text: Text, terms: Analyzer) -> None:
        """Adds a document; replaces the document of an earlier version."""
        thread = self._thread_of(document.entry_id)
        between = self.drop(document.entry_id)
        if between is None or thread != document.thread:
            between = self._facets_of(document)
        number = self.links.insert(document.thread, *between)
        self._numbers[document.entry_id] = number
        self.documents.append(document)
        self.alive.append(1)
        self.authors.append(self._author(document))
        self.standings.append(text.standing(document))
        self.codes.append(text.is_code())
        self._code_count += self.codes[number]
        self.missing[document.entry_id] = number
        if not document.is_searched_always:
            self.aside.add(number)
        if document.expires_at is not None:
            heapq.heappush(self.expiries, (document.expires_at, number))
        self._namespaces.add(document.namespace)
        told = _dates_beside_its_day(document, text)
        self.places.add(number, facets_of(document), sorted(told))
        if document.tier in LASTING_TIERS:
            self.sentences.add(number, text.own)
        own, length = terms.of_document(text.own, document.language)
        label, _ = terms.of_document(text.label)
        # A short number in a key is a counter and says nothing about the content.
        aside = dict.fromkeys(
            term for term in label if len(term) > _LONGEST_COUNTER or not term.isdigit()
        )
        self.words.add(number, own, aside, length, asks=text.asks)
        if self.vectors is not None:
            self.vectors.neighbours_changed(number)

    def absorb(
        self, segment: IndexSegment, vectors: Mapping[str, bytes], uses: Mapping[str, UseCounts]
    ) -> None:
        """Adds the documents of a segment. The ids are larger than those of all documents of their
        threads that are here already.

        vectors, uses: by id, of entries of the segment
        """
        ids, base = segment.ids, len(self.documents)
        self.alive.extend(b"\1" * len(ids))
        self.documents.append_pack(segment.documents)
        joined = self.links.absorb(segment.links)
        self.words.absorb(segment.words, joined)
        self._absorb_authors(segment)
        self.standings.extend(segment.standings)
        self.codes.extend(segment.codes)
        self._code_count += segment.codes.count(1)
        self.aside.update(base + number for number in segment.aside)
        for instant, number in segment.expiries:
            heapq.heappush(self.expiries, (instant, base + number))
        self.places.absorb(segment.places)
        self.sentences.absorb(segment.sentences, base)
        self._namespaces.update(str(key[1]) for key in segment.places.keys if key[0] == "namespace")
        numbers = dict(zip(ids, range(base, base + len(ids)), strict=True))
        self.uses.update((numbers[one], count) for one, count in uses.items())
        if self.vectors is not None:
            there = {one: vector for one, vector in vectors.items() if self.vectors.fits(vector)}
            self.missing.update(item for item in numbers.items() if item[0] not in there)
            self.vectors.put_many({numbers[one]: vector for one, vector in there.items()})
            self.vectors.settle()

    def put_vector(self, entry_id: str, vector: bytes) -> None:
        """Sets the vector of an entry in the shard, unless it is damaged."""
        number = self.number(entry_id)
        if number is not None and self.vectors is not None and self.vectors.fits(vector):
            self.vectors.put(number, vector)
            self.missing.pop(entry_id, None)

    def set_uses(self, uses: Mapping[str, UseCounts]) -> None:
        """Sets the numbers of uses of entries in the shard."""
        for entry_id, count in uses.items():
            if (number := self.number(entry_id)) is not None:
                self.uses[number] = count

    def drop(self, entry_id: str) -> tuple[int, int] | None:
        """Removes a document; returns its former neighbours, None if it was not there."""
        number = self.number(entry_id)
        if number is None:
            return None
        self._bury(number, entry_id)
        before, after = self.links.remove(number)
        self.words.remove(number, before, after)
        if self.vectors is not None:
            for neighbour in (before, after):
                if neighbour != NOTHING:
                    self.vectors.neighbours_changed(neighbour)
        return before, after

    def expire(self, now: str) -> None:
        """Removes expired documents.

        now: an instant in the stored form
        """
        while self.expiries and self.expiries[0][0] <= now:
            _, number = heapq.heappop(self.expiries)
            document = self.documents[number]
            if document is not None:
                self.drop(document.entry_id)

    def at(self, place: Hashable) -> array[int]:
        """The documents with a facet, see `facets_of`, or with a part of a date, see
        `dates.parts_of`; removed documents may be among them."""
        return self.places.at(place)

    def mask(self, place: Hashable) -> int:
        """The same as a number of one byte per document, the first document lowest."""
        return self._masks.mask(place, self.at(place), len(self.documents))

    def frequency(self, place: Hashable, readable: bytearray | None) -> int:
        """The number of readable documents with a facet."""
        numbers = self.at(place)
        if readable is None and self.is_whole:
            return len(numbers)
        return count_marked(self.alive if readable is None else readable, numbers)

    def namespaces(self) -> set[str]:
        """The namespaces of its documents; namespaces of removed documents may be among them."""
        return self._namespaces

    def authors_named(self, word: str, readable: bytearray | None) -> Iterable[str]:
        """The authors of readable documents whose name begins with a word."""
        authors = self.named.get(word, ())
        if readable is None or readable is self.alive:
            return authors
        return [one for one in authors if self.frequency(("author", one), readable)]

    def count(self, readable: bytearray | None) -> int:
        """The number of readable documents."""
        return len(self) if readable is None else readable.count(1)

    def code_count(self, readable: bytearray | None) -> int:
        """The number of readable documents that are programs."""
        if readable is None or not self._code_count:
            return self._code_count
        # As numbers, because a loop over all documents would take longer than the ranking.
        both = int.from_bytes(self.codes, "little") & int.from_bytes(readable, "little")
        return both.bit_count()

    def pending(self, readable: bytearray | None) -> int:
        """The number of readable documents whose vector is still to be computed."""
        if self.vectors is None:
            return 0
        if readable is None:
            return len(self.missing)
        return sum(readable[number] for number in self.missing.values())

    def among(self, readable: bytearray) -> IndexShard:
        """This shard with threads of readable documents only. Valid until the next change."""
        part = copy(self)
        part.links = self.links.among(readable)
        part.words = self.words.among(part.links, readable)
        if self.vectors is not None:
            part.vectors = self.vectors.among(part.links, readable)
        return part

    def author_number(self, author: str) -> int | None:
        """The number of an author."""
        return self.author_numbers.get(author)

    def _thread_of(self, entry_id: str) -> Hashable | None:
        """The thread of an entry, None without one."""
        number = self.number(entry_id)
        document = None if number is None else self.documents[number]
        return None if document is None else document.thread

    def _facets_of(self, document: Document) -> tuple[int, int]:
        """The neighbours of a new document in its thread. Threads are sorted by id, so that they do
        not depend on the order of additions."""
        before, after = NOTHING, NOTHING
        if document.thread is not None:
            before = self.links.last(document.thread)
        while before != NOTHING:
            other = self.documents[before]
            if other is None or other.entry_id < document.entry_id:
                break
            before, after = self.links.previous[before], before
        return before, after

    def _bury(self, number: int, entry_id: str) -> None:
        document = self.documents[number]
        if document is not None and document.is_named:
            authors = self.named[first_word(document.author)]
            authors[document.author] -= 1
            if not authors[document.author]:
                del authors[document.author]
        self.documents.remove(number)
        self.alive[number] = 0
        self._code_count -= self.codes[number]
        self._dead += 1
        self._numbers.pop(entry_id, None)
        self.missing.pop(entry_id, None)
        self.uses.pop(number, None)
        self.aside.discard(number)
        if self.vectors is not None:
            self.vectors.remove(number)

    def _absorb_authors(self, segment: IndexSegment) -> None:
        known = self.author_numbers
        numbers = [known.setdefault(author, len(known)) for author in segment.authors]
        there = array("i")
        there.frombytes(segment.author_numbers)
        self.authors.extend(numbers[number] for number in there)
        for author, count in segment.named.items():
            self.named.setdefault(first_word(author), Counter())[author] += count

    def _author(self, document: Document) -> int:
        number = self.author_numbers.get(document.author)
        if number is None:
            number = self.author_numbers[document.author] = len(self.author_numbers)
        if document.is_named:
            self.named.setdefault(first_word(document.author), Counter())[document.author] += 1
        return number


def first_word(name: str) -> str:
    """The first word of an author's name in lower case; the whole name if it contains no word."""
    return next(iter(words_of(name)), name)


def _dates_beside_its_day(document: Document, text: Text) -> set[tuple[str, int]]:
    """The dates and parts of dates of a document besides those of its day. Nothing is counted from
    a day that nobody told."""
    day = document.day
    if document.date_unit == "day":
        return dates_told(text.own, day).difference(parts_of(day))
    year: set[tuple[str, int]] = {("year", day.year)}
    return year if document.date_unit == "year" else {*year, ("month", day.month)}


def facets_of(document: Document) -> Iterable[Hashable]:
    """The facets of a document: keys for lookups by fields rather than by text."""
    yield ("tier", document.tier)
    yield ("namespace", document.namespace)
    if document.date_unit == "day":
        yield ("date", document.day.toordinal())
    for tag in document.tags:
        yield ("tag", tag)
    for subject in document.subjects:
        yield ("subject", subject)
    for name in document.aliases:
        yield ("alias", fold_accents(name))
    for node in document.nodes:
        yield ("node", fold_accents(node))
    if document.is_named:
        yield ("author", document.author)
    if document.language != ENGLISH:
        yield ("language", document.language)
    for kind, value in (
        ("task", document.task_id),
        ("intent", document.intent_id),
        ("session", document.session_id),
        ("outcome", document.outcome),
        ("kind", document.kind),
    ):
        if value is not None:
            yield (kind, value)
