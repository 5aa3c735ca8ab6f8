"""Index segments: parts of a shard in the form in which the store contains them.

A segment is made from a small shard, and a shard absorbs segments with operations on whole columns.
It contains no vectors and no numbers of uses, which change without their entries.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Sequence

import msgspec

from memorywall.recall.analyzer import Analyzer
from memorywall.recall.document import AuthorDateFields, Document, is_searchable, read
from memorywall.recall.index_shard import IndexShard
from memorywall.recall.inverted_index import COUNT_BITS
from memorywall.recall.packed_documents import pack
from memorywall.recall.segment_columns import IndexSegment, Lists
from memorywall.recall.weights import DEFAULT_WEIGHTS
from memorywall.records.entry import Entry
from memorywall.records.recall import StoredSegment
from memorywall.version import __version__

_FORMAT = 9
"""Must be raised by a change to the analysis of entries or to `IndexSegment` within a release."""
_CHECKSUM_BYTES = 4
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(IndexSegment).decode


def form_of(fields: AuthorDateFields) -> str:
    """Returns the form of a segment: everything besides its entries that decides about its content.
    Segments of another form are not read."""
    return f"{_FORMAT} {__version__} {sys.byteorder} {fields.author} {fields.date}"


def is_current(form: str) -> bool:
    """Returns whether a form is of the present format, whatever its fields."""
    return form.startswith(f"{_FORMAT} {__version__} ")


def build(entries: Sequence[Entry], fields: AuthorDateFields, terms: Analyzer) -> bytes:
    """The segment of the searchable entries among these, at least one, which are in the order of
    their ids and from one tier of one owner."""
    shard = IndexShard("", 0, DEFAULT_WEIGHTS)
    for entry in entries:
        if is_searchable(entry):
            shard.put(*read(entry, fields), terms)
    documents = [document for document in shard.documents if document is not None]
    body = _columns(shard, documents) if documents else b""
    return _checksum(body, entries[0].id, entries[-1].id) + body


def _columns(shard: IndexShard, documents: list[Document]) -> bytes:
    segment = IndexSegment(
        ids=[document.entry_id for document in documents],
        documents=pack(documents),
        links=shard.links.columns(),
        words=shard.words.columns(),
        authors=list(shard.author_numbers),
        author_numbers=shard.authors.tobytes(),
        named={author: count for one in shard.named.values() for author, count in one.items()},
        standings=bytes(shard.standings),
        codes=bytes(shard.codes),
        aside=sorted(shard.aside),
        expiries=shard.expiries,
        places=Lists.of(shard.places.lists),
        sentences=shard.sentences.columns(),
    )
    # Not compressed: a shard of a million entries would take .7 s longer to load.
    return _encode(segment)


def _checksum(body: bytes | memoryview, first: str, last: str) -> bytes:
    """Returns the checksum of the segment of a range. It contains the range, so that neither the
    content of another segment nor an empty one fits."""
    checksum = zlib.crc32(body, zlib.crc32(f"{first} {last}".encode()))
    return checksum.to_bytes(_CHECKSUM_BYTES, "big")


def fits(stored: StoredSegment) -> bool:
    """Returns whether a segment has the content that was written for its range."""
    body = memoryview(stored.content)[_CHECKSUM_BYTES:]
    return stored.content[:_CHECKSUM_BYTES] == _checksum(body, stored.first, stored.last)


def load(stored: StoredSegment, base: int) -> IndexSegment | None:
    """Reads a segment; None for one without documents.

    base: the number of its first document in the shard that absorbs it

    Raises ValueError for content that is not that of the segment.
    """
    if not fits(stored):
        raise ValueError("the content is not that of the segment")
    body = memoryview(stored.content)[_CHECKSUM_BYTES:]
    if not body:
        return None
    try:
        segment = _decode(body)
    except msgspec.DecodeError as error:
        raise ValueError("the content is not that of a segment") from error
    # Numpy takes time and memory, which a server that does not search saves.
    from memorywall.recall.segment_numbers import move_lists, shift_numbers

    links, words = segment.links, segment.words
    return msgspec.structs.replace(
        segment,
        links=msgspec.structs.replace(
            links,
            previous=shift_numbers(links.previous, base),
            next=shift_numbers(links.next, base),
        ),
        words=msgspec.structs.replace(
            words,
            own=move_lists(words.own, base << COUNT_BITS),
            aside=move_lists(words.aside, base),
        ),
        places=move_lists(segment.places, base),
    )
