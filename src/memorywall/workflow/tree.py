"""What a file holds, with the place of everything in it, and the list of what is wrong with it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice
from typing import Any, NamedTuple

from memorywall.workflow.errors import Problem

DEEPEST = 64
_LONGEST_SHOWN = 64
_MOST_SUGGESTIONS = 50
_MOST_KNOWN = 1_000
_SMALLEST_WHOLE = -(2**63)
_LARGEST_WHOLE = 2**64 - 1
_LONGEST_NUMBER = 400

Scalar = str | int | float | bool | None


class Position(NamedTuple):
    """A place in a file, counted from 1."""

    line: int
    column: int


TOP = Position(1, 1)


@dataclass(kw_only=True, slots=True)
class Node:
    """A value and its place. `keys` has the places of a mapping's keys."""

    content: Scalar | list[Node] | dict[str, Node]
    at: Position
    keys: dict[str, Position] = field(default_factory=dict)

    def plain(self) -> Any:
        """The value without places."""
        if isinstance(self.content, dict):
            return {key: node.plain() for key, node in self.content.items()}
        if isinstance(self.content, list):
            return [node.plain() for node in self.content]
        return self.content


class Report:
    """Collects the problems of one file into a list that the files of a workflow share."""

    def __init__(self, file: str, found: list[Problem]) -> None:
        self._file = file
        self._found = found
        self._suggested = 0

    def about(self, file: str) -> Report:
        """A report on another file that ends in the same list."""
        return Report(file, self._found)

    @property
    def has_problems(self) -> bool:
        """Whether anything is wrong, in any of the files."""
        return bool(self._found)

    def add(self, at: Position, where: str, reason: str) -> None:
        """Notes a problem; `reason` must hold no value of the file."""
        self._found.append(
            Problem(file=self._file, line=at.line, column=at.column, where=where, reason=reason)
        )

    def nearest(self, word: str, known: Iterable[str]) -> str | None:
        """The known word that was probably meant."""
        # Finding it is slow, and who has this many to correct will look the words up.
        self._suggested += 1
        if self._suggested > _MOST_SUGGESTIONS or len(word) > _LONGEST_SHOWN:
            return None
        return next(iter(get_close_matches(word, list(islice(known, _MOST_KNOWN)), n=1)), None)


def shown(key: str) -> str:
    """A key as a message may hold it."""
    text = "".join(character if character.isprintable() else "?" for character in key)
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "..."


def inside(where: str, key: str | int) -> str:
    """The path to a part of what stands at `where`."""
    if isinstance(key, int):
        return f"{where}[{key}]"
    return f"{where}.{shown(key)}" if where else shown(key)


def number(text: str) -> int | float:
    """The number JSON means by `text`; infinity for one that no computer word holds."""
    if len(text) > _LONGEST_NUMBER:
        return math.inf
    try:
        return int(text)
    except ValueError:
        return float(text)


def scalar(value: Scalar, at: Position, where: str, report: Report) -> Node:
    """A value that has no parts, if JSON can carry it to the server and back."""
    if isinstance(value, str) and not is_text(value):
        report.add(at, where, "holds half a surrogate pair, which is no character")
        return Node(content=value.encode(errors="replace").decode(), at=at)
    if isinstance(value, int | float) and not _can_be_kept(value):
        report.add(at, where, "is a number that cannot be kept")
        return Node(content=None, at=at)
    return Node(content=value, at=at)


def _can_be_kept(number: float) -> bool:
    """Whether it is a whole number of 64 bits or a finite one with a point."""
    if isinstance(number, int):
        return _SMALLEST_WHOLE <= number <= _LARGEST_WHOLE
    return math.isfinite(number)


def is_text(text: str) -> bool:
    """Whether UTF-8 can hold the text; surrogates have no place in it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def add_key(mapping: Node, key: str, at: Position, where: str, report: Report) -> bool:
    """Notes the place of a mapping's key; False when it cannot be one."""
    if not is_text(key):
        report.add(at, where, "a key holds half a surrogate pair, which is no character")
        return False
    if key in mapping.keys:
        report.add(at, where, f"the key `{shown(key)}` stands twice")
        return False
    mapping.keys[key] = at
    return True
