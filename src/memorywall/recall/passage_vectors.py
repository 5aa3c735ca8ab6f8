"""The vectors of passages of long texts: a byte per dimension, beside the vectors of documents."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt
import simsimd

from memorywall.recall.links import NOTHING
from memorywall.recall.stored_vectors import Bytes, Floats

Number = TypeVar("Number", np.int8, np.float32)
_FIRST_ROOM = 64


class PassageVectors:
    """The vectors of the passages of a document are adjacent. The room of removed documents is free
    again when the shard is rebuilt."""

    def __init__(self, dimensions: int) -> None:
        self._numbers = np.zeros((_FIRST_ROOM, dimensions), np.int8)
        self._scales = np.zeros(_FIRST_ROOM, np.float32)
        self._count = 0
        self._starts: list[int] = []
        self._documents: list[int] = []
        self._groups: dict[int, int] = {}

    def __len__(self) -> int:
        """The number of documents with passages."""
        return len(self._groups)

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self._numbers.nbytes + self._scales.nbytes

    def put(self, document: int, numbers: Bytes, scales: Floats) -> None:
        """Sets the vectors of a document, a row and a factor for each passage."""
        self.remove(document)
        if not len(scales):
            return
        start, end = self._count, self._count + len(scales)
        self._make_room(end)
        self._numbers[start:end], self._scales[start:end] = numbers, scales
        self._groups[document] = len(self._starts)
        self._starts.append(start)
        self._documents.append(document)
        self._count = end

    def remove(self, document: int) -> None:
        """Removes the vectors of a document, if it has any."""
        group = self._groups.pop(document, None)
        if group is not None:
            rows = self._rows_of(group)
            self._numbers[rows] = 0
            self._scales[rows] = 0
            self._documents[group] = NOTHING

    def best(self, asked: Bytes, scale: np.float32) -> tuple[Floats, npt.NDArray[np.intp]]:
        """The similarity of the best passage of each document with passages, and the documents. A
        removed document is the number `NOTHING`.

        asked, scale: the query as one row and its factor; see `quantize`
        """
        rows = self._numbers[: self._count]
        products = np.asarray(simsimd.cdist(asked, rows, metric="dot"))[0]
        similarities = products * self._scales[: self._count] * scale
        best = np.maximum.reduceat(similarities, self._starts).astype(np.float32)
        return best, np.array(self._documents, np.intp)

    def of(self, document: int, query: Floats) -> list[float]:
        """The similarity of each passage of a document to a query, in order."""
        group = self._groups.get(document)
        if group is None:
            return []
        rows = self._rows_of(group)
        near: list[float] = (self._numbers[rows] @ query * self._scales[rows]).tolist()
        return near

    def _rows_of(self, group: int) -> slice:
        after = group + 1
        return slice(
            self._starts[group], self._starts[after] if after < len(self._starts) else self._count
        )

    def _make_room(self, rows: int) -> None:
        if rows <= len(self._scales):
            return
        room = max(rows, 2 * len(self._scales))
        self._numbers, self._scales = grown(self._numbers, room), grown(self._scales, room)


def grown(rows: npt.NDArray[Number], room: int) -> npt.NDArray[Number]:
    """A copy of rows with room for more, which are zeros."""
    larger = np.zeros((room, *rows.shape[1:]), rows.dtype)
    larger[: len(rows)] = rows
    return larger
