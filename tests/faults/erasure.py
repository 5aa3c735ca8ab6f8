"""Values that can be recognised in a file, and the search for them."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import apsw

_MARK = re.compile(rb"mark-[0-9a-f]{16}")


def new_mark() -> str:
    """A word that stands nowhere else."""
    return f"mark-{secrets.token_hex(8)}"


def marked_value(mark: str, size: int = 0) -> dict[str, Any]:
    """A value with a mark at its beginning, along it, and at its end: no page boundary can cut
    all of them."""
    return {"first": mark, "filling": [mark + "." * 400] * (size // 400), "last": mark}


def marks_in_files(data: Path) -> dict[str, set[str]]:
    """Every mark that stands anywhere in the data directory, and the files it stands in."""
    found: dict[str, set[str]] = {}
    for path in files_of(data):
        for mark in set(_MARK.findall(read_file(path))):
            found.setdefault(mark.decode(), set()).add(path.name)
    return found


def remaining(data: Path, marks: Iterable[str]) -> dict[str, set[str]]:
    """Those of the marks that still stand in a file."""
    found = marks_in_files(data)
    return {mark: found[mark] for mark in marks if mark in found}


def files_of(data: Path) -> list[Path]:
    """Every file of a data directory."""
    return [path for path in data.rglob("*") if path.is_file()]


def read_file(path: Path) -> bytes:
    """What is in a file; one that has just been removed holds nothing."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def tables_with(database: Path, text: str) -> set[str]:
    """The tables that hold a text. They are read row by row, not through any index."""
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    connection.set_busy_timeout(5_000)
    try:
        names = [
            str(row[0])
            for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        ]
        return {
            name
            for name in names
            if any(
                text in str(column)
                for row in connection.execute(f'SELECT * FROM "{name}" NOT INDEXED')
                for column in row
            )
        }
    finally:
        connection.close()
