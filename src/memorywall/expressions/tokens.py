"""Splits the text of a condition into tokens, in time proportional to its length."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, cast

from memorywall.records.feature_errors import ExpressionError

LONGEST_TEXT = 4_000
"""Characters."""
TokenKind = Literal["word", "number", "string", "symbol", "end"]
_TOKEN = re.compile(
    r"(?P<space>[ \t\r\n]+)"
    r"|(?P<word>[A-Za-z_][A-Za-z0-9_-]*)"
    r"|(?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)"
    r'|(?P<string>"(?:[^"\\]|\\.)*")'
    r"|(?P<symbol><=|>=|!=|[=<>()\[\],.])"
)


@dataclass(frozen=True, slots=True)
class Token:
    """A token and the offset of its first character."""

    kind: TokenKind
    text: str
    offset: int


def error_at(text: str, offset: int, problem: str) -> ExpressionError:
    """The error of a problem at an offset of a text."""
    line = text.count("\n", 0, offset) + 1
    column = offset - (text.rfind("\n", 0, offset) + 1) + 1
    place = f"column {column}" if line == 1 else f"line {line}, column {column}"
    return ExpressionError(f"invalid condition at {place}: {problem}", line=line, column=column)


def split_tokens(text: str) -> Iterator[Token]:
    """Yields the tokens of a condition and a last one of kind `end`. Raises ExpressionError."""
    if len(text) > LONGEST_TEXT:
        raise error_at(text, LONGEST_TEXT, f"a condition has at most {LONGEST_TEXT} characters")
    offset = 0
    while offset < len(text):
        found = _TOKEN.match(text, offset)
        if found is None:
            missing = "the string has no end" if text[offset] == '"' else "unexpected character"
            raise error_at(text, offset, missing)
        if found.lastgroup != "space":
            yield Token(cast(TokenKind, found.lastgroup), found[0], offset)
        offset = found.end()
    yield Token("end", "", offset)
