"""Overwrites what SQLite leaves behind in the unused part of a page.

`secure_delete` overwrites what is deleted where it stands. But when cells move between the pages of
a tree, SQLite packs what stays and forgets the rest of the page: a copy of what moved away is left
between the array of cell pointers and the first cell, and a deletion on the other page does not
reach it. No reader ever looks at those bytes, so they can be overwritten in the file at any time,
provided nothing else writes to the file: in WAL mode that is a checkpoint, which the caller holds
off.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from struct import Struct

import apsw

_PAGES_AT_ONCE = 64
_SECONDS_WITHOUT_REST = 0.001
_LARGEST_PAGE = 65_536
_ZEROS = bytes(_LARGEST_PAGE)

_FILE_HEADER = Struct(">16s H 2x B 31x I 44x")
"""Of the database: its magic, the size of a page (1 stands for 65,536), the bytes reserved at the
end of each, and whether it has pages that map the others (`auto_vacuum`)."""
_MAGIC = b"SQLite format 3\0"

_TREE_HEADER = Struct(">B 2x H H")
"""Of a page of a tree: its kind, how many cells it has, and where the first begins (0 stands for
65,536)."""
_SIZE_OF_TREE_HEADER = {2: 12, 5: 12, 10: 8, 13: 8}
_SMALLEST_CELL = 4

LARGEST_PAGE_NUMBER = 2 * 2**24 - 1
"""Overflow pages and the list of free pages begin with the number of a page. In a larger file that
can look like the page of a tree, and nothing is overwritten any more."""


def find_residual_data(page: bytes, header: int = 0) -> tuple[int, int] | None:
    """Where in a page of a tree its unused part begins and ends, if that holds anything.

    header: where the header of the tree stands, which in the first page is behind the file's.
    """
    size = _SIZE_OF_TREE_HEADER.get(page[header])
    if size is None:
        return None
    _, cells, content = _TREE_HEADER.unpack_from(page, header)
    pointers = header + size
    begin, end = pointers + 2 * cells, content or _LARGEST_PAGE
    if not begin < end <= len(page) or _ZEROS.startswith(page[begin:end]):
        return None
    # A page that is not as it should be is left alone.
    places = Struct(f">{cells}H").unpack_from(page, pointers)
    if cells and not end <= min(places) <= max(places) <= len(page) - _SMALLEST_CELL:
        return None
    return begin, end


class DirtyPages:
    """The pages that may hold remains: at first all, later those that have been changed."""

    def __init__(self) -> None:
        # A byte for each page, so that the next is found without the interpreter.
        self._changed = bytearray()
        self._unseen: int | None = 1
        """The first page that has not been gone through since all were suspected."""
        self.added = 0
        """How often a page was added since none was suspected."""

    @property
    def are_all(self) -> bool:
        """Whether every page is suspected, whatever is added."""
        return self._unseen == 1

    def add(self, pages: Iterable[int]) -> None:
        changed = self._changed
        for page in pages:
            self.added += 1
            if page >= len(changed):
                if page > LARGEST_PAGE_NUMBER:
                    continue
                changed.extend(bytes(page + 1_024 - len(changed)))
            changed[page] = 1

    def add_all(self) -> None:
        """Whatever was added before makes no difference then."""
        self._changed.clear()
        self._unseen = 1

    def clear(self) -> None:
        self._changed.clear()
        self._unseen = None
        self.added = 0

    def __bool__(self) -> bool:
        return self._unseen is not None or 1 in self._changed

    def runs(self, pages: int, *, sweep: bool = True) -> Iterator[tuple[int, int]]:
        """The first of some pages in a row, and how many they are, until none is left in a file of
        so many pages. Each has to be `done` before the next is asked for.

        sweep: after the changed pages those too that have not been gone through
        """
        changed = self._changed
        first = 0
        while (first := changed.find(1, first)) >= 0:
            end = changed.find(0, first, first + _PAGES_AT_ONCE)
            yield first, (min(first + _PAGES_AT_ONCE, len(changed)) if end < 0 else end) - first
        if not sweep:
            return
        while self._unseen is not None and self._unseen <= pages:
            yield self._unseen, min(_PAGES_AT_ONCE, pages + 1 - self._unseen)
        self.clear()

    def done(self, first: int, count: int) -> None:
        behind = first + count
        if first == self._unseen:
            self._unseen = behind
        marked = max(0, min(behind, len(self._changed)) - first)
        self._changed[first : first + marked] = bytes(marked)


class Scrubber:
    """Overwrites remains in one database file.

    The file is opened through SQLite. Closing a descriptor of our own would end all the locks this
    process has on it.
    """

    def __init__(self, database: Path) -> None:
        flags = apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READWRITE
        self._file = apsw.VFSFile("", os.fspath(database), [flags, 0])

    def close(self) -> None:
        """Whatever was overwritten is on the disk then."""
        try:
            self._file.xSync(apsw.SQLITE_SYNC_NORMAL)
        finally:
            self._file.xClose()

    def scrub(
        self,
        suspects: DirtyPages,
        seconds: float,
        *,
        sweep: bool = True,
        rest: Callable[[], object] = lambda: None,
    ) -> None:
        """Goes through suspects until none is left or the time is over. Raises apsw.Error.

        No checkpoint may be made meanwhile, by anyone.

        sweep: go through the pages that have not been changed as well
        rest: called once a millisecond
        """
        page_size, pages = self.measure()
        if not 0 < pages <= LARGEST_PAGE_NUMBER:
            suspects.clear()
            return
        now = time.monotonic()
        until, rest_at = now + seconds, now + _SECONDS_WITHOUT_REST
        for first, count in suspects.runs(pages, sweep=sweep):
            self._scrub_run(first, min(count, pages + 1 - first), page_size)
            suspects.done(first, count)
            now = time.monotonic()
            if now >= until:
                return
            if now >= rest_at:
                rest()
                rest_at = time.monotonic() + _SECONDS_WITHOUT_REST

    def measure(self) -> tuple[int, int]:
        """The size of a page and how many there are; none when this is not a database of a form
        that is understood here. Raises apsw.Error."""
        header = self._file.xRead(_FILE_HEADER.size, 0)
        if len(header) < _FILE_HEADER.size:
            return 0, 0
        magic, page_size, reserved, maps = _FILE_HEADER.unpack(header)
        if magic != _MAGIC or reserved or maps:
            return 0, 0
        if page_size == 1:
            page_size = _LARGEST_PAGE
        return page_size, self._file.xFileSize() // page_size

    def _scrub_run(self, first: int, count: int, page_size: int) -> None:
        if count <= 0:
            return
        block = self._file.xRead(count * page_size, (first - 1) * page_size)
        for offset in range(0, len(block) - page_size + 1, page_size):
            at_start = first == 1 and offset == 0
            found = find_residual_data(
                block[offset : offset + page_size], _FILE_HEADER.size if at_start else 0
            )
            if found is not None:
                begin, end = found
                place = (first - 1) * page_size + offset + begin
                self._file.xWrite(_ZEROS[: end - begin], place)
