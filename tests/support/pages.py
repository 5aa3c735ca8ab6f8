"""The pages of a database file, read and soiled without the code under test."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

MARK = b"REMAINS-"
_KINDS = {2: 12, 5: 12, 10: 8, 13: 8}


@contextmanager
def open_file(database: Path) -> Iterator[apsw.VFSFile]:
    """A database's file, through SQLite: closing any other descriptor of it would end the locks
    that the connections of this process hold."""
    file = apsw.VFSFile(
        "", str(database), [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READWRITE, 0]
    )
    try:
        yield file
    finally:
        file.xClose()


def read_database(database: Path) -> bytes:
    """All of the file."""
    with open_file(database) as file:
        return file.xRead(file.xFileSize(), 0)


def gaps(database: Path) -> dict[int, tuple[int, int]]:
    """For each page of a tree, where in the file its unused part begins and how long it is. Which
    pages are of a tree is what SQLite says."""
    content = read_database(database)
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        size = int(connection.execute("PRAGMA page_size").get)
        numbers = connection.execute("SELECT pageno FROM dbstat WHERE pagetype <> 'overflow'").get
    finally:
        connection.close()
    found = {}
    for number in numbers:
        page = (number - 1) * size
        header = page + (100 if number == 1 else 0)
        kind, cells, first = struct.unpack_from(">B2xHH", content, header)
        begin = header + _KINDS[kind] + 2 * cells
        found[number] = begin, page + (first or 65_536) - begin
    return found


def soil(database: Path) -> int:
    """Fills the unused part of every page with what looks like remains; in how many there was room.
    Nothing may be in the log."""
    soiled = 0
    with open_file(database) as file:
        for begin, length in gaps(database).values():
            remains = MARK * (length // len(MARK))
            if remains:
                file.xWrite(remains, begin)
                soiled += 1
    return soiled


def is_soiled(database: Path) -> bool:
    """Whether remains stand in the database or in its log."""
    log = database.with_name(database.name + "-wal")
    return MARK in read_database(database) or (log.exists() and MARK in log.read_bytes())


def marks(content: bytes, pattern: re.Pattern[bytes]) -> set[str]:
    """Returns the match in some bytes."""
    return {found.decode() for found in pattern.findall(content)}


def all_rows(database: Path) -> dict[str, list[tuple[apsw.SQLiteValue, ...]]]:
    """Every row of every table, after SQLite has found the file to be sound."""
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        assert connection.execute("PRAGMA integrity_check").get == "ok"
        names = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        return {
            str(name): connection.execute(f'SELECT * FROM "{name}" NOT INDEXED').fetchall()
            for (name,) in names
        }
    finally:
        connection.close()
