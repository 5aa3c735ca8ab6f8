"""Parses JSON and JSON Lines into entries with positions. Every value of an entry has the position
of the entry."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from memorywall.workflow.tree import (
    DEEPEST,
    Diagnostics,
    Position,
    SyntaxNode,
    add_key,
    inside,
    number,
    scalar,
)

Elements = Iterator[tuple[str, SyntaxNode]]
"""The elements of a list, each with its path."""

_SPACE = re.compile(r"[ \t\r\n]*")


class _Pairs(list[tuple[str, Any]]):
    """A JSON object with its duplicate keys."""


_DECODER = json.JSONDecoder(
    object_pairs_hook=_Pairs, parse_int=number, parse_float=number, parse_constant=float
)


def parse_lines(text: str, diagnostics: Diagnostics) -> Elements:
    """The entries of a JSON Lines file; invalid lines are reported and omitted."""
    count = 0
    for line, content in enumerate(text.split("\n"), start=1):
        if content.strip():
            try:
                value = _DECODER.decode(content)
            except json.JSONDecodeError as error:
                diagnostics.add(Position(line, error.colno), "", f"is not JSON: {error.msg}")
            except RecursionError:
                diagnostics.add(Position(line, 1), "", _too_deep())
            else:
                column = len(content) - len(content.lstrip()) + 1
                where = inside("", count)
                yield where, _tree(value, Position(line, column), where, 0, diagnostics)
            count += 1


def parse_list(text: str, diagnostics: Diagnostics) -> Elements:
    """The elements of the list in a JSON file, up to the first syntax error."""
    places = _Positions(text)
    index = _skip(text, 0)
    if text[index : index + 1] != "[":
        diagnostics.add(places.of(index), "", "must be a list of entries")
        return
    count, index = 0, _skip(text, index + 1)
    end = ""
    if text[index : index + 1] == "]":
        end = "]"
        index += 1
    while end != "]":
        try:
            value, after = _DECODER.raw_decode(text, index)
        except json.JSONDecodeError as error:
            diagnostics.add(places.of(error.pos), "", f"is not JSON: {error.msg}")
            return
        except RecursionError:
            diagnostics.add(places.of(index), "", _too_deep())
            return
        where = inside("", count)
        yield where, _tree(value, places.of(index), where, 0, diagnostics)
        count += 1
        after = _skip(text, after)
        end = text[after : after + 1]
        if end not in (",", "]") or not end:
            diagnostics.add(places.of(after), "", "is not JSON: Expecting ',' or ']'")
            return
        index = _skip(text, after + 1)
    if _skip(text, index) != len(text):
        diagnostics.add(places.of(_skip(text, index)), "", "is not JSON: Extra data")


def _tree(value: Any, at: Position, where: str, depth: int, diagnostics: Diagnostics) -> SyntaxNode:
    if depth > DEEPEST:
        diagnostics.add(at, where, _too_deep())
        return SyntaxNode(content=None, at=at)
    if isinstance(value, _Pairs):
        content: dict[str, SyntaxNode] = {}
        mapping = SyntaxNode(content=content, at=at)
        for key, part in value:
            if add_key(mapping, key, at, where, diagnostics):
                content[key] = _tree(part, at, inside(where, key), depth + 1, diagnostics)
        return mapping
    if isinstance(value, list):
        parts = (
            _tree(part, at, inside(where, index), depth + 1, diagnostics)
            for index, part in enumerate(value)
        )
        return SyntaxNode(content=list(parts), at=at)
    return scalar(value, at, where, diagnostics)


class _Positions:
    """Converts offsets in a text to lines and columns; offsets must be requested in rising
    order."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._line = 1
        self._start = 0
        self._seen = 0

    def of(self, index: int) -> Position:
        newlines = self._text.count("\n", self._seen, index)
        if newlines:
            self._line += newlines
            self._start = self._text.rindex("\n", self._seen, index) + 1
        self._seen = index
        return Position(self._line, index - self._start + 1)


def _skip(text: str, index: int) -> int:
    found = _SPACE.match(text, index)
    return found.end() if found else index


def _too_deep() -> str:
    return f"is nested deeper than {DEEPEST} levels"
