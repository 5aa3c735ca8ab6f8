"""The documents of a shard with a facet, as bytes: one per document, 1 for those with the facet."""

from __future__ import annotations

from array import array
from collections.abc import Hashable

_MOST = 16
"""The most facets whose masks are kept in a shard; the one that was made first goes first."""
_FEW = 512
"""The most documents of a facet whose mask is made anew for each search."""


class FacetMasks:
    """Keeps the masks of facets with many documents, so that a search adds new documents only.

    The lists of a shard only grow, and its documents keep their numbers.
    """

    def __init__(self) -> None:
        self._kept: dict[Hashable, tuple[int, bytearray]] = {}

    @property
    def size(self) -> int:
        """The bytes of the masks."""
        return sum(len(mask) for _, mask in self._kept.values())

    def mask(self, place: Hashable, numbers: array[int], documents: int) -> int:
        """Returns the mask of a facet as a number, its first byte the lowest.

        numbers: the documents with the facet
        documents: the number of documents of the shard
        """
        done, mask = self._kept.get(place, (0, bytearray()))
        if len(mask) < documents:
            mask.extend(bytes(documents - len(mask)))
        for number in numbers[done:]:
            mask[number] = 1
        if len(numbers) > _FEW:
            if place not in self._kept and len(self._kept) >= _MOST:
                del self._kept[next(iter(self._kept))]
            self._kept[place] = len(numbers), mask
        return int.from_bytes(mask, "little")
