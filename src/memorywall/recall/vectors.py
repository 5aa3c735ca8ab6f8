"""The vectors of a shard: a byte per dimension. Every query scans all vectors.

The meaning of a document is the sum of its own vector and a fraction of its neighbours' vectors.
The similarity to a sum is the sum of the similarities, so only the own vectors and the lengths of
the sums are stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from itertools import product

import numpy as np
import numpy.typing as npt
import simsimd

from memorywall.recall.links import NOTHING, Links
from memorywall.recall.passage_vectors import PassageVectors, grown
from memorywall.recall.stored_vectors import FACTOR_BYTES, Bytes, Floats, decode, quantize
from memorywall.recall.weights import Weights

_FIRST_ROOM = 64
_AT_ONCE = 4_096


class Vectors:
    """Vectors of documents with the numbers of `links`."""

    def __init__(self, links: Links, dimensions: int, weights: Weights) -> None:
        self._links = links
        self._weights = weights
        self._numbers = np.zeros((_FIRST_ROOM, dimensions), np.int8)
        self._scales = np.zeros(_FIRST_ROOM, np.float32)
        self._lengths = np.zeros(_FIRST_ROOM, np.float32)
        self._changed: set[int] = set()
        self._passages = PassageVectors(dimensions)

    @property
    def size(self) -> int:
        """The size in bytes."""
        own = self._numbers.nbytes + self._scales.nbytes + self._lengths.nbytes
        return own + self._passages.size

    def fits(self, vector: bytes) -> bool:
        """Whether a stored vector has the size of some vectors of these dimensions."""
        return bool(vector) and len(vector) % (self._numbers.shape[1] + FACTOR_BYTES) == 0

    def reserve(self, documents: int) -> None:
        """Makes room for a number of documents, so that no vector is copied as they are added."""
        if documents > len(self._scales):
            self._grow(documents)

    def put(self, document: int, vector: bytes) -> None:
        """Sets the vectors of a document.

        vector: in the stored form, of the whole text and then of each of its passages
        """
        self._make_room(document)
        numbers, scales = decode(vector, self._numbers.shape[1])
        self._numbers[document], self._scales[document] = numbers[0], scales[0]
        self._passages.put(document, numbers[1:], scales[1:])
        self.neighbours_changed(document)

    def put_many(self, vectors: Mapping[int, bytes]) -> None:
        """Sets the vectors of documents, like `put`."""
        if not vectors:
            return
        self._make_room(max(vectors))
        dimensions = self._numbers.shape[1]
        width = dimensions + FACTOR_BYTES
        of_width = {one: vector for one, vector in vectors.items() if len(vector) == width}
        short = np.fromiter(of_width, np.intp, len(of_width))
        decoded = decode(b"".join(of_width.values()), dimensions)
        self._numbers[short], self._scales[short] = decoded
        for links in (self._links.previous, self._links.next):
            self._changed.update(_numbers(links)[short].tolist())
        self._changed.update(of_width)
        self._changed.discard(NOTHING)
        for document, vector in vectors.items():
            if len(vector) != width:
                # A long text has the vectors of its passages, too.
                self.put(document, vector)

    def neighbours_changed(self, document: int) -> None:
        """Must be called for a document with a new vector or new neighbours."""
        links = self._links
        near = (document, links.previous[document], links.next[document])
        self._changed.update(one for one in near if one != NOTHING)

    def remove(self, document: int) -> None:
        """Removes the vector of a document."""
        if document < len(self._scales):
            self._numbers[document] = 0
            self._scales[document] = 0
            self._passages.remove(document)
            self._changed.add(document)

    def settle(self) -> None:
        """Computes pending changes; must be called before `similarities`, without concurrent
        readers."""
        self._make_room(len(self._links.previous) - 1)
        self._measure_changed()

    def similarities(self, query: Floats, readable: npt.NDArray[np.bool_] | None) -> Floats:
        """The similarity of each document to the query, from -1 to 1; 0 without a vector."""
        size = len(self._links.previous)
        asked, (scale,) = quantize(query[None, :])
        if not size or not scale:
            return np.zeros(size, np.float32)
        rows = self._numbers[:size]
        products = np.asarray(simsimd.cdist(asked, rows, metric="dot", out_dtype="float32"))[0]
        # In place as far as possible: a copy takes 4 MB for a million documents. The last element
        # represents missing neighbours.
        own = np.zeros(size + 1, np.float32)
        np.multiply(products, self._scales[:size], out=own[:size])
        own *= scale
        del products
        if len(self._passages):
            best, documents = self._passages.best(asked, scale)
            share = np.float32(self._weights.passage)
            own[documents] += share * np.maximum(best - own[documents], 0)
            own[NOTHING] = 0
        if readable is not None:
            own[:size] *= readable
        weights, links = self._weights, self._links
        near: Floats = own[_numbers(links.previous)]
        near *= np.float32(weights.vector_previous)
        near += own[:size]
        after: Floats = own[_numbers(links.next)]
        after *= np.float32(weights.vector_next)
        near += after
        lengths = self._lengths[:size]
        is_known = lengths > 0
        np.divide(near, lengths, out=near, where=is_known)
        near *= is_known
        return near

    def known(self) -> npt.NDArray[np.bool_]:
        """Whether each document has a vector."""
        known: npt.NDArray[np.bool_] = self._scales[: len(self._links.previous)] > 0
        return known

    def of(self, document: int) -> Floats | None:
        """The vector of the whole text of a document; None without one."""
        if document >= len(self._scales) or not self._scales[document]:
            return None
        vector: Floats = self._numbers[document] * self._scales[document]
        return vector

    def passages(self, document: int, query: Floats) -> list[float]:
        """The similarity of each passage of a document to the query; empty for a short text."""
        return self._passages.of(document, query)

    def among(self, links: Links, readable: bytearray) -> Vectors:
        """The same vectors, with sums over readable neighbours for the given links."""
        vectors = copy(self)
        vectors._links = links
        vectors._lengths = np.zeros_like(self._lengths)
        vectors._changed = {document for document, may in enumerate(readable) if may}
        vectors._measure_changed()
        return vectors

    def _make_room(self, document: int) -> None:
        if document < len(self._scales):
            return
        self._grow(max(document + 1, 2 * len(self._scales)))

    def _grow(self, room: int) -> None:
        self._numbers, self._scales = grown(self._numbers, room), grown(self._scales, room)
        self._lengths = grown(self._lengths, room)

    def _measure_changed(self) -> None:
        """Computes the changed lengths of sums."""
        changed = np.fromiter(self._changed, np.int32, len(self._changed))
        self._changed.clear()
        previous, following = _numbers(self._links.previous), _numbers(self._links.next)
        before = np.float32(self._weights.vector_previous)
        after = np.float32(self._weights.vector_next)
        for start in range(0, len(changed), _AT_ONCE):
            documents = changed[start : start + _AT_ONCE]
            parts = [
                self._rows(documents, np.float32(1)),
                self._rows(previous[documents], before),
                self._rows(following[documents], after),
            ]
            # The square of the length of a sum is the sum of all products of its parts.
            squares = np.zeros(len(documents))
            for (one, scale), (other, factor) in product(parts, parts):
                products = np.asarray(simsimd.dot(one, other)).reshape(-1)
                squares += products * scale * factor
            lengths = np.sqrt(np.maximum(squares, 0))
            self._lengths[documents] = np.where(self._scales[documents] > 0, lengths, 0)

    def _rows(self, documents: npt.NDArray[np.int32], weight: np.float32) -> tuple[Bytes, Floats]:
        """The vectors of documents with their weighted factors, which are 0 for missing
        documents."""
        scales = np.where(documents == NOTHING, np.float32(0), self._scales[documents])
        return self._numbers[documents], scales * weight


def _numbers(buffer: object) -> npt.NDArray[np.int32]:
    return np.frombuffer(buffer, np.int32)  # type: ignore[call-overload, no-any-return]
