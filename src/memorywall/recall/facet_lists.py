"""The documents of a shard by facet.

The own day of a document is in one list, that of its date. Its year, month, day of the month and
weekday are found by the dates that have them, because a list for each would contain every document
four times more. Dates that a text tells beside its own day have lists of their own.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable
from datetime import date

from memorywall.recall.dates import parts_of
from memorywall.recall.segment_columns import Lists

_TOLD = "told "
_NO_DOCUMENTS = array("i")


class FacetLists:
    """Lists of documents, which only grow; removed documents may be in them.

    lists: by the key under which the documents are stored
    has_nodes: whether any document links a node; see `recall.names`
    """

    def __init__(self) -> None:
        self.lists: dict[Hashable, array[int]] = {}
        self.has_nodes = False
        self._dated: dict[Hashable, list[Hashable]] = {}
        """The keys of the lists that together are those of a date, or of a part of one."""

    def add(
        self, document: int, facets: Iterable[Hashable], told: Iterable[tuple[str, int]]
    ) -> None:
        """Adds a document.

        facets: its facets, with its own date
        told: the dates that its text tells, and parts of such dates, without its own
        """
        for key in dict.fromkeys((*facets, *((_TOLD + kind, value) for kind, value in told))):
            there = self.lists.get(key)
            if there is None:
                self._note(key)
                there = self.lists[key] = array("i")
            there.append(document)

    def absorb(self, columns: Lists) -> None:
        """Adds the documents of a segment."""
        for key in columns.keys:
            if key not in self.lists:
                self._note(key)
        columns.append_to(self.lists, "i")

    def at(self, place: Hashable) -> array[int]:
        """The documents with a facet, or with a date or a part of one."""
        keys = self._dated.get(place, (place,))
        if len(keys) == 1:
            return self.lists.get(keys[0], _NO_DOCUMENTS)
        return array("i", b"".join(map(self.lists.__getitem__, keys)))

    def _note(self, key: Hashable) -> None:
        """Notes a new key under the dates and the parts of dates that it belongs to."""
        match key:
            case ("node", _):
                self.has_nodes = True
            case ("date", int(number)):
                for part in parts_of(date.fromordinal(number)):
                    self._dated.setdefault(part, []).append(key)
            case (str(kind), int(value)) if kind.startswith(_TOLD):
                part = (kind.removeprefix(_TOLD), value)
                self._dated.setdefault(part, []).append(key)
