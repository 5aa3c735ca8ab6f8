"""Overwrites residual data in the unused part of SQLite pages.

`secure_delete` overwrites deleted cells in place. When cells move between the pages of a tree,
SQLite compacts the remaining cells and does not clear the rest of the page: a copy of a moved cell
remains between the array of cell pointers and the first cell. A deletion on the other page does not
reach that copy. No reader uses those bytes, so they can be overwritten in the file at any time, if
nothing else writes to the file. In WAL mode only a checkpoint does, and the caller prevents
checkpoints.
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
"""Of the database header: the magic, the page size (1 means 65,536), the reserved bytes at the end
of each page, and whether the file has pointer map pages (`auto_vacuum`)."""
_MAGIC = b"SQLite format 3\0"

_TREE_HEADER = Struct(">B 2x H H")
"""Of the header of a tree page: its type, the number of cells, and the offset of the first cell (0
means 65,536)."""
_SIZE_OF_TREE_HEADER = {2: 12, 5: 12, 10: 8, 13: 8}
_SMALLEST_CELL = 4

LARGEST_PAGE_NUMBER = 2 * 2**24 - 1
"""Overflow pages and free-list pages begin with a page number. In a larger file such a page can
look like a tree page, so nothing is overwritten in such files."""


def find_residual_data(page: bytes, header: int = 0) -> tuple[int, int] | None:
    """Returns the bounds of the unused part of a tree page, if it contains data.

    header: the offset of the tree header, which in the first page follows the file header
    """
    size = _SIZE_OF_TREE_HEADER.get(page[header])
    if size is None:
        return None
    _, cells, content = _TREE_HEADER.unpack_from(page, header)
    pointers = header + size
    begin, end = pointers + 2 * cells, content or _LARGEST_PAGE
    if not begin < end <= len(page) or _ZEROS.startswith(page[begin:end]):
        return None
    # An invalid page is not changed.
    places = Struct(f">{cells}H").unpack_from(page, pointers)
    if cells and not end <= min(places) <= max(places) <= len(page) - _SMALLEST_CELL:
        return None
    return begin, end


class DirtyPages:
    """The pages that may contain residual data: first all, later the changed pages."""

    def __init__(self) -> None:
        # One byte per page, so that `find` locates the next page in C.
        self._changed = bytearray()
        self._unseen: int | None = 1
        """The first page that has not been scanned since all pages were dirty."""
        self.added = 0
        """The number of additions since all pages were clean."""

    @property
    def are_all(self) -> bool:
        """Returns whether every page is dirty, regardless of additions."""
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
        """Marks every page as dirty."""
        self._changed.clear()
        self._unseen = 1

    def clear(self) -> None:
        self._changed.clear()
        self._unseen = None
        self.added = 0

    def __bool__(self) -> bool:
        return self._unseen is not None or 1 in self._changed

    def runs(self, pages: int, *, sweep: bool = True) -> Iterator[tuple[int, int]]:
        """Yields the first page and the length of each run of dirty pages in a file of this number
        of pages. The caller must call `done` for a run before the next.

        sweep: also yield the pages that have not been scanned, after the changed pages
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
    """Overwrites residual data in one database file.

    The file is opened through SQLite. Closing another descriptor of the file would release all
    locks of this process on it.
    """

    def __init__(self, database: Path) -> None:
        flags = apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READWRITE
        self._file = apsw.VFSFile("", os.fspath(database), [flags, 0])

    def close(self) -> None:
        """Syncs the overwritten pages to disk."""
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
        """Processes dirty pages until none is left or the time is over. Raises apsw.Error.

        No process may make a checkpoint meanwhile.

        sweep: also scan the unchanged pages
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
        """Returns the page size and the number of pages; none for a database in an unsupported
        format. Raises apsw.Error."""
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
