"""The syntax tree of a file with positions, and the list of its problems."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from memorywall.records.argument_names import nearest_name
from memorywall.workflow.errors import Diagnostic

DEEPEST = 64
_LONGEST_SHOWN = 64
_MOST_SUGGESTIONS = 50
_MOST_KNOWN = 1_000
_SMALLEST_WHOLE = -(2**63)
_LARGEST_WHOLE = 2**64 - 1
_LONGEST_NUMBER = 400

Scalar = str | int | float | bool | None


class Position(NamedTuple):
    """A position in a file: line and column, counted from 1."""

    line: int
    column: int


TOP = Position(1, 1)


@dataclass(kw_only=True, slots=True)
class SyntaxNode:
    """A value with its position. `keys` contains the positions of the keys of a mapping."""

    content: Scalar | list[SyntaxNode] | dict[str, SyntaxNode]
    at: Position
    keys: dict[str, Position] = field(default_factory=dict)

    def plain(self) -> Any:
        """The value without positions."""
        if isinstance(self.content, dict):
            return {key: node.plain() for key, node in self.content.items()}
        if isinstance(self.content, list):
            return [node.plain() for node in self.content]
        return self.content


class Diagnostics:
    """Collects the problems of one file into a list that the files of a workflow share."""

    def __init__(self, file: str, found: list[Diagnostic]) -> None:
        self._file = file
        self._found = found
        self._suggested = 0

    def about(self, file: str) -> Diagnostics:
        """A collector for another file that shares the list."""
        return Diagnostics(file, self._found)

    @property
    def has_problems(self) -> bool:
        """Whether any file has a problem."""
        return bool(self._found)

    def add(self, at: Position, where: str, reason: str) -> None:
        """Adds a problem; `reason` must not contain a value of the file."""
        self._found.append(
            Diagnostic(file=self._file, line=at.line, column=at.column, where=where, reason=reason)
        )

    def nearest(self, word: str, known: Iterable[str]) -> str | None:
        """The most similar known word, None if no word is similar."""
        # The comparison is slow, so it is skipped after many problems.
        self._suggested += 1
        if self._suggested > _MOST_SUGGESTIONS or len(word) > _LONGEST_SHOWN:
            return None
        return nearest_name(word, islice(known, _MOST_KNOWN))


def shown(key: str) -> str:
    """A key in a form for messages."""
    text = "".join(character if character.isprintable() else "?" for character in key)
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "..."


def inside(where: str, key: str | int) -> str:
    """The path of an element of the value at `where`."""
    if isinstance(key, int):
        return f"{where}[{key}]"
    return f"{where}.{shown(key)}" if where else shown(key)


def number(text: str) -> int | float:
    """The number for the JSON text `text`; infinity for a number out of range."""
    if len(text) > _LONGEST_NUMBER:
        return math.inf
    try:
        return int(text)
    except ValueError:
        return float(text)


def scalar(value: Scalar, at: Position, where: str, diagnostics: Diagnostics) -> SyntaxNode:
    """The node of a scalar; values that JSON cannot represent exactly are reported."""
    if isinstance(value, str) and not is_text(value):
        diagnostics.add(at, where, "contains half a surrogate pair, which is not a character")
        return SyntaxNode(content=value.encode(errors="replace").decode(), at=at)
    if isinstance(value, int | float) and not _can_be_kept(value):
        diagnostics.add(at, where, "is a number that cannot be stored")
        return SyntaxNode(content=None, at=at)
    return SyntaxNode(content=value, at=at)


def _can_be_kept(number: float) -> bool:
    """Whether the number is a 64-bit integer or a finite float."""
    if isinstance(number, int):
        return _SMALLEST_WHOLE <= number <= _LARGEST_WHOLE
    return math.isfinite(number)


def is_text(text: str) -> bool:
    """Whether UTF-8 can encode the text; surrogates cannot be encoded."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def add_key(
    mapping: SyntaxNode, key: str, at: Position, where: str, diagnostics: Diagnostics
) -> bool:
    """Records the position of a key of a mapping; False, with a problem reported, for an invalid
    key."""
    if not is_text(key):
        diagnostics.add(at, where, "a key contains half a surrogate pair, which is not a character")
        return False
    if key in mapping.keys:
        diagnostics.add(at, where, f"the key `{shown(key)}` occurs twice")
        return False
    mapping.keys[key] = at
    return True
