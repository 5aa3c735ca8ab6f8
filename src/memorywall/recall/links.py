"""The neighbours of documents in their threads."""

from __future__ import annotations

from array import array
from collections.abc import Hashable

from memorywall.recall.segment_columns import LinkColumns

NOTHING = -1
"""Stands for a missing neighbour. As an index it means the last element, which readers of these
lists keep free."""


class Links:
    """Threads of documents, which are identified by their numbers."""

    def __init__(self) -> None:
        self.previous = array("i")
        self.next = array("i")
        self._last: dict[Hashable, int] = {}
        self._threads: dict[int, Hashable] = {}

    def last(self, thread: Hashable) -> int:
        """The last document of a thread."""
        return self._last.get(thread, NOTHING)

    def insert(self, thread: Hashable | None, before: int, after: int) -> int:
        """Adds a document between two neighbours of a thread, at an end of a thread, or outside of
        all threads; returns its number."""
        document = len(self.previous)
        self.previous.append(before)
        self.next.append(after)
        if before != NOTHING:
            self.next[before] = document
        if after != NOTHING:
            self.previous[after] = document
        elif thread is not None:
            self._threads.pop(before, None)
            self._last[thread] = document
            self._threads[document] = thread
        return document

    def columns(self) -> LinkColumns:
        """The columns of links without removed documents."""
        threads = []
        for thread, last in self._last.items():
            first = last
            while (before := self.previous[first]) != NOTHING:
                first = before
            threads.append((thread, first, last))
        return LinkColumns(self.previous.tobytes(), self.next.tobytes(), threads)  # type: ignore[arg-type]

    def absorb(self, columns: LinkColumns) -> list[tuple[int, int]]:
        """Adds documents with threads of their own, whose neighbours are numbered as here, and
        appends the threads to those with the same name. Returns the pairs that became neighbours
        by that."""
        base, joined = len(self.previous), []
        self.previous.frombytes(columns.previous)
        self.next.frombytes(columns.next)
        for thread, first, last in columns.threads:
            before, document = self.last(thread), base + first
            if before != NOTHING:
                self.previous[document], self.next[before] = before, document
                del self._threads[before]
                joined.append((before, document))
            self._last[thread] = base + last
            self._threads[base + last] = thread
        return joined

    def among(self, readable: bytearray) -> Links:
        """The same threads with readable documents only."""
        links = Links()
        links.previous = array("i", [NOTHING]) * len(self.previous)
        links.next = array("i", [NOTHING]) * len(self.next)
        for document, may in enumerate(readable):
            before = self.previous[document] if may else NOTHING
            # Each unreadable document is passed once, on the way from the next readable one.
            while before != NOTHING and not readable[before]:
                before = self.previous[before]
            if before != NOTHING:
                links.previous[document] = before
                links.next[before] = document
        return links

    def remove(self, document: int) -> tuple[int, int]:
        """Removes a document from its thread; returns its former neighbours."""
        before, after = self.previous[document], self.next[document]
        if before != NOTHING:
            self.next[before] = after
        if after != NOTHING:
            self.previous[after] = before
        self.previous[document] = self.next[document] = NOTHING
        if (thread := self._threads.pop(document, None)) is not None:
            if before == NOTHING:
                del self._last[thread]
            else:
                self._last[thread] = before
                self._threads[before] = thread
        return before, after
