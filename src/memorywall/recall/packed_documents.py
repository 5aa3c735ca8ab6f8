"""The documents of a shard by number, those of segments in packed form until they are needed."""

from __future__ import annotations

import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple, overload

import msgspec

from memorywall.recall.document import Document

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Document).decode
_SAMPLES = 32
_WINDOW_BITS = 13
"""The binary logarithm of the most bytes of samples of a pack."""
_MEMORY_LEVEL = 1


class Pack(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Documents in packed form, in the order of their ids.

    first, last: the ids of the first and of the last document
    samples: some of the documents, which resemble the others: the dictionary of their compression
    documents: the documents, each compressed by itself, one after the other
    ends: where each of them ends, as 4-byte integers
    """

    first: str
    last: str
    samples: bytes
    documents: bytes
    ends: bytes


def pack(documents: Sequence[Document]) -> Pack:
    """Packs documents in the order of their ids, of which there is at least one."""
    encoded, packed, ends = [_encode(document) for document in documents], bytearray(), array("I")
    samples = b"".join(encoded[:: -(-len(encoded) // _SAMPLES)])[-(1 << _WINDOW_BITS) :]
    for one in encoded:
        compressor = zlib.compressobj(
            zlib.Z_BEST_COMPRESSION, zlib.DEFLATED, -_WINDOW_BITS, _MEMORY_LEVEL, zdict=samples
        )
        packed += compressor.compress(one) + compressor.flush()
        ends.append(len(packed))
    first, last = documents[0].entry_id, documents[-1].entry_id
    return Pack(first, last, samples, bytes(packed), ends.tobytes())


class _PackSlice(NamedTuple):
    """A pack, and the number of its first document."""

    start: int
    pack: Pack
    ends: memoryview

    def read(self, number: int) -> Document:
        at = number - self.start
        begin = self.ends[at - 1] if at else 0
        packed = self.pack.documents[begin : self.ends[at]]
        return _decode(zlib.decompressobj(-_WINDOW_BITS, self.pack.samples).decompress(packed))


class Documents(Sequence[Document | None]):
    """The documents of a shard by number; None in place of a removed one.

    alive: 1 for each document that was not removed; kept by the shard
    """

    def __init__(self, alive: bytearray) -> None:
        self._alive = alive
        self._read: dict[int, Document] = {}
        self._count = 0
        self._starts: list[int] = []
        self._packs: list[_PackSlice] = []
        self._runs: list[tuple[list[str], list[_PackSlice]]] = []
        """Runs of packs with ascending ids, such as those of a tier: the first id of each pack, and
        the packs."""

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, number: int) -> Document | None: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[Document | None]: ...
    def __getitem__(self, number: int | slice) -> Document | Sequence[Document | None] | None:
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(self._count))]
        document = self._read.get(number)
        if document is None and self._alive[number]:
            pack_slice = self._packs[bisect_right(self._starts, number) - 1]
            document = self._read[number] = pack_slice.read(number)
        return document

    def __iter__(self) -> Iterator[Document | None]:
        read = self.__getitem__ if self._packs else self._read.get
        return map(read, range(self._count))

    def append(self, document: Document) -> None:
        """Adds the next document."""
        self._read[self._count] = document
        self._count += 1

    def append_pack(self, added: Pack) -> None:
        """Adds the documents of a pack."""
        pack_slice = _PackSlice(self._count, added, memoryview(added.ends).cast("I"))
        self._count += len(pack_slice.ends)
        self._starts.append(pack_slice.start)
        self._packs.append(pack_slice)
        if not self._runs or self._runs[-1][1][-1].pack.last > added.first:
            self._runs.append(([], []))
        firsts, packs = self._runs[-1]
        firsts.append(added.first)
        packs.append(pack_slice)

    def remove(self, number: int) -> None:
        """Removes a document, which the shard marks as removed."""
        self._read.pop(number, None)

    def find(self, entry_id: str) -> int | None:
        """The number of the document of an entry that was added in a pack and is still there."""
        for firsts, packs in self._runs:
            at = bisect_right(firsts, entry_id) - 1
            if at < 0 or packs[at].pack.last < entry_id:
                continue
            pack_slice = packs[at]
            numbers = range(pack_slice.start, pack_slice.start + len(pack_slice.ends))
            place = bisect_left(
                numbers, entry_id, key=lambda number: pack_slice.read(number).entry_id
            )
            if self._alive[numbers[place]] and pack_slice.read(numbers[place]).entry_id == entry_id:
                return numbers[place]
        return None
