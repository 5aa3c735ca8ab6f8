"""What is overwritten in a database file, and what is never touched."""

from __future__ import annotations

import random
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorywall.storage.sqlite import scrub
from memorywall.storage.sqlite.scrub import DirtyPages, Scrubber, find_residual_data
from tests.support.pages import all_rows, gaps, is_soiled, read_database, soil

_SIZE = 512
_LEAF, _INDEX_LEAF, _INNER, _INDEX_INNER = 13, 10, 5, 2


# One page


def _page(
    kind: int = _LEAF,
    cells: tuple[int, ...] = (400, 450),
    content: int = 400,
    *,
    gap: bytes = b"",
    size: int = _SIZE,
    header: int = 0,
) -> bytes:
    """A page whose cells and whatever stands before its header are all ones, with something in the
    middle of the gap."""
    page = bytearray(size)
    page[:header] = b"\1" * header
    start = header + (8 if kind in (_LEAF, _INDEX_LEAF) else 12)
    page[header : header + 8] = struct.pack(">BHHHB", kind, 0, len(cells), content % 65_536, 0)
    page[start : start + 2 * len(cells)] = struct.pack(f">{len(cells)}H", *cells)
    page[content:] = b"\1" * (size - content)
    page[200 : 200 + len(gap)] = gap
    return bytes(page)


@pytest.mark.parametrize("header", [0, 100])
@pytest.mark.parametrize(
    ("kind", "begin"), [(_LEAF, 12), (_INDEX_LEAF, 12), (_INNER, 16), (_INDEX_INNER, 16)]
)
def test_the_unused_part_of_each_kind_of_page_is_found(kind: int, begin: int, header: int) -> None:
    page = _page(kind, gap=b"x", header=header)
    assert find_residual_data(page, header) == (header + begin, 400)
    assert find_residual_data(_page(kind, header=header), header) is None


def test_remains_at_either_end_are_found() -> None:
    for place in (12, 399):
        page = bytearray(_page())
        page[place] = 1
        assert find_residual_data(bytes(page)) == (12, 400)


def test_a_page_without_cells_is_unused_up_to_its_end() -> None:
    assert find_residual_data(_page(cells=(), content=_SIZE, gap=b"x")) == (8, _SIZE)


def test_the_largest_page_says_its_end_with_a_zero() -> None:
    page = _page(cells=(), content=65_536, gap=b"x", size=65_536)
    assert page[5:7] == b"\0\0"
    assert find_residual_data(page) == (8, 65_536)


@pytest.mark.parametrize(
    "page",
    [
        *(_page(kind, gap=b"x") for kind in (0, 1, 3, 4, 6, 9, 11, 12, 14, 255)),
        _page(content=0, gap=b"x"),
        _page(content=_SIZE + 1, gap=b"x"),
        _page(content=11, gap=b"x"),
        # The pointers reach into the cells, to their beginning, and beyond the page.
        _page(cells=(400,) * 197, gap=b"x"),
        _page(cells=(400,) * 196, gap=b"x"),
        _page(cells=(400,) * 251, gap=b"x"),
        # A cell in the unused part, and one that cannot be whole.
        _page(cells=(400, 399), gap=b"x"),
        _page(cells=(400, _SIZE - 3), gap=b"x"),
        b"\xff" * _SIZE,
        bytes(_SIZE),
    ],
)
def test_a_page_that_is_none_of_a_tree_or_makes_no_sense_is_left_alone(page: bytes) -> None:
    assert find_residual_data(page) is None


@given(
    kind=st.sampled_from([_LEAF, _INDEX_LEAF, _INNER, _INDEX_INNER]),
    cells=st.integers(0, 300),
    rest=st.binary(min_size=_SIZE - 5, max_size=_SIZE - 5),
)
def test_no_page_however_damaged_makes_it_leave_the_unused_part(
    kind: int, cells: int, rest: bytes
) -> None:
    page = struct.pack(">B2xH", kind, cells) + rest
    found = find_residual_data(page)
    if found is not None:
        begin, end = found
        pointers = 8 if kind in (_LEAF, _INDEX_LEAF) else 12
        places = struct.unpack_from(f">{cells}H", page, pointers)
        assert pointers + 2 * cells == begin < end <= _SIZE
        assert all(end <= place < _SIZE for place in places)


# A whole file


_EVERY_SIZE = pytest.mark.parametrize("database", [512, 4_096, 65_536], indirect=True)


@pytest.fixture
def database(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A file with every kind of page, and free ones of which some were overflow pages."""
    path = tmp_path / "pages.db"
    connection = apsw.Connection(str(path))
    size = getattr(request, "param", 4_096)
    connection.execute(f"PRAGMA page_size = {size}; PRAGMA secure_delete = ON").fetchall()
    connection.execute("CREATE TABLE numbered (number INTEGER PRIMARY KEY, text TEXT, value BLOB)")
    connection.execute("CREATE INDEX by_text ON numbered (text, value)")
    connection.execute("CREATE TABLE named (name TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID")
    connection.execute("CREATE TABLE empty (text TEXT)")
    chance = random.Random(4)
    with connection:
        for number in range(2_000):
            # Contents that look like the beginning of a page of a tree.
            value = b"\x0d\x00\x00\x00\x02" * chance.choice((1, 10, 100, 600))
            if number % 50 < 2:
                value *= 30_000 // len(value) * 5
            text = chance.randbytes(chance.randrange(60)).hex()
            connection.execute("INSERT INTO numbered VALUES (?, ?, ?)", (number, text, value))
            connection.execute(
                "INSERT INTO named VALUES (?, ?)", (f"{chance.random()}", value[:900])
            )
    connection.execute("DELETE FROM numbered WHERE number % 3 = 0")
    connection.execute("DELETE FROM named WHERE name LIKE '%7'")
    assert connection.execute("PRAGMA freelist_count").get > 20
    kinds = connection.execute("SELECT DISTINCT pagetype FROM dbstat").get
    assert set(kinds) == {"leaf", "internal", "overflow"}
    connection.close()
    return path


@pytest.fixture
def scrubber(database: Path) -> Iterator[Scrubber]:
    scrubber = Scrubber(database)
    yield scrubber
    scrubber.close()


@_EVERY_SIZE
def test_remains_are_overwritten_and_nothing_else(database: Path, scrubber: Scrubber) -> None:
    rows = all_rows(database)
    scrubber.scrub(DirtyPages(), 60)
    clean = read_database(database)
    for begin, length in gaps(database).values():
        assert not any(clean[begin : begin + length])
    assert soil(database) > 20
    assert is_soiled(database)
    assert all_rows(database) == rows, "what was written into the unused part is seen by no reader"

    suspects = DirtyPages()
    scrubber.scrub(suspects, 60)
    assert not suspects
    assert read_database(database) == clean
    assert all_rows(database) == rows


@_EVERY_SIZE
def test_only_suspected_pages_are_touched(database: Path, scrubber: Scrubber) -> None:
    scrubber.scrub(DirtyPages(), 60)
    soil(database)
    dirty = read_database(database)
    places = {page: place for page, place in gaps(database).items() if place[1] > 100}
    pages = sorted(places)[::3]
    suspects = DirtyPages()
    suspects.clear()
    suspects.add(pages)
    scrubber.scrub(suspects, 60)
    assert not suspects
    expected = bytearray(dirty)
    for page in pages:
        begin, length = places[page]
        expected[begin : begin + length] = bytes(length)
    assert read_database(database) == bytes(expected)


def test_it_goes_on_where_the_time_was_over(database: Path, scrubber: Scrubber) -> None:
    soil(database)
    suspects = DirtyPages()
    suspects.add(list(gaps(database))[::2])
    rounds = 0
    while suspects:
        scrubber.scrub(suspects, 1e-9)
        rounds += 1
    assert rounds > 2
    assert not is_soiled(database)


def test_without_a_sweep_only_changed_pages_are_gone_through(
    database: Path, scrubber: Scrubber
) -> None:
    soil(database)
    suspects = DirtyPages()
    suspects.add(gaps(database))
    scrubber.scrub(suspects, 60, sweep=False)
    assert suspects, "the other pages are still suspected"
    assert list(suspects.runs(10**6, sweep=False)) == []
    assert not is_soiled(database)


def test_it_rests_while_there_is_much_to_do(
    database: Path, scrubber: Scrubber, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scrub, "_SECONDS_WITHOUT_REST", 0.0)
    monkeypatch.setattr(scrub, "_PAGES_AT_ONCE", 1)
    rests: list[None] = []
    scrubber.scrub(DirtyPages(), 60, rest=lambda: rests.append(None))
    assert len(rests) > 20


def _change(database: Path, place: int, content: bytes) -> None:
    with database.open("r+b") as file:
        file.seek(place)
        file.write(content)


@pytest.mark.parametrize(
    ("place", "content"),
    [(0, b"not SQLite's"), (20, b"\x08"), (52, b"\0\0\0\x04")],
    ids=["another magic", "reserved bytes", "pages that map others"],
)
def test_file_in_unsupported_format_is_not_changed(
    database: Path, place: int, content: bytes
) -> None:
    soil(database)
    _change(database, place, content)
    before = database.read_bytes()
    scrubber = Scrubber(database)
    suspects = DirtyPages()
    scrubber.scrub(suspects, 60)
    scrubber.close()
    assert not suspects
    assert database.read_bytes() == before


@pytest.mark.parametrize(("more", "clean"), [(0, True), (1, False)])
def test_a_file_too_large_to_tell_its_pages_apart_is_left_alone(
    database: Path, monkeypatch: pytest.MonkeyPatch, more: int, clean: bool
) -> None:
    assert scrub.LARGEST_PAGE_NUMBER == 0x01FF_FFFF, "the largest that begins with 0 or 1"
    soil(database)
    connection = apsw.Connection(str(database))
    pages = connection.execute("PRAGMA page_count").get
    connection.close()
    monkeypatch.setattr(scrub, "LARGEST_PAGE_NUMBER", pages - more)
    scrubber = Scrubber(database)
    suspects = DirtyPages()
    scrubber.scrub(suspects, 60)
    scrubber.close()
    assert not suspects
    assert is_soiled(database) is not clean


def test_the_locks_of_this_process_outlive_it(database: Path) -> None:
    holder = apsw.Connection(str(database))
    holder.execute("BEGIN EXCLUSIVE")
    Scrubber(database).close()
    # A descriptor of one's own would have ended the lock; only another process can see that.
    code = (
        "import apsw, sys\n"
        "connection = apsw.Connection(sys.argv[1])\n"
        "try:\n    connection.execute('SELECT * FROM numbered').fetchone()\n"
        "except apsw.BusyError:\n    print('busy')\n"
    )
    seen = subprocess.run(
        [sys.executable, "-c", code, str(database)], capture_output=True, text=True, check=True
    )
    assert seen.stdout == "busy\n"
    holder.close()


# Which pages


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.lists(st.integers(1, 3_000), max_size=200)),
            st.tuples(st.just("all"), st.just([])),
            st.tuples(st.just("clear"), st.just([])),
            st.tuples(st.just("go"), st.lists(st.just(0), max_size=40)),
        ),
        max_size=20,
    ),
    st.integers(1, 3_000),
)
def test_every_dirty_page_is_processed(steps: list[tuple[str, list[int]]], pages: int) -> None:
    suspects = DirtyPages()
    changed: set[int] = set()
    unseen = set(range(1, pages + 1))
    for step, values in steps:
        if step == "add":
            suspects.add(values)
            changed |= set(values)
        elif step == "all":
            suspects.add_all()
            changed, unseen = set(), set(range(1, pages + 1))
        elif step == "clear":
            suspects.clear()
            changed, unseen = set(), set()
        runs = suspects.runs(pages)
        for _, (first, count) in zip(values if step == "go" else (), runs, strict=False):
            run = set(range(first, first + count))
            assert run <= changed if changed else run <= set(range(1, pages + 1))
            changed -= run
            unseen -= run
            suspects.done(first, count)
    for first, count in suspects.runs(pages):
        suspects.done(first, count)
        changed -= set(range(first, first + count))
        unseen -= set(range(first, first + count))
    assert not suspects
    assert not changed
    assert not unseen


def test_a_page_number_that_cannot_be_is_not_remembered() -> None:
    suspects = DirtyPages()
    suspects.clear()
    suspects.add([scrub.LARGEST_PAGE_NUMBER + 1, 2**32 - 1])
    assert not suspects
