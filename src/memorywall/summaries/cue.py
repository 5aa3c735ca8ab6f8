"""A cue: patterns of which a text needs only few to be searched.

Most patterns begin with a word boundary, so that a search tries them at every character. A pattern
is searched only in a text that has one of the literals without which it cannot match; the literals
are read from the parsed pattern. The result is that of a search with all patterns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

# The parser of the standard library has no public name. Without it every pattern is searched.
_parse: Any = getattr(getattr(re, "_parser", None), "parse", None)
_Part = tuple[Any, Any]
_MOST = 400
"""The most strings that a part of a pattern may stand for."""
_EDGE = "\0"
"""Stands for a word boundary, or an end of the text, between the characters of a pattern."""
_words = re.compile(r"\w+").findall
_WHOLE = re.compile(r"(?:(?<=\0)|(?<=[^\w\0]))\w+(?=\0|[^\w\0])")


class Cue:
    """Alternatives of a pattern, for texts in small letters."""

    def __init__(self, *alternatives: str) -> None:
        self._alternatives = tuple(one for text in alternatives for one in _divide(text))
        self._places = _PATTERNS.add(self._alternatives)

    def search(self, text: str) -> bool:
        """Returns whether the text has a match."""
        candidates = self._places & _PATTERNS.candidates(text)
        return bool(candidates) and _PATTERNS.search(candidates, text)

    def find(self, text: str) -> Iterable[re.Match[str]]:
        """Returns the matches, none of which overlaps another one."""
        candidates = sorted(self._places & _PATTERNS.candidates(text))
        return _PATTERNS.find(candidates, text) if candidates else ()

    def fullmatch(self, text: str) -> bool:
        """Returns whether the whole text is a match."""
        return any(re.fullmatch(one, text) for one in self._alternatives)


class _Patterns:
    """The patterns of all cues, by the literals of which a match has at least one.

    They are parsed with the first text, and each is compiled when a text has one of its literals.
    """

    def __init__(self) -> None:
        self._patterns: list[str] = []
        self._compiled: dict[int, re.Pattern[str]] = {}
        self._parsed = 0
        self._always: set[int] = set()
        self._by_word: dict[str, set[int]] = {}
        self._by_part: dict[str, set[int]] = {}
        self._by_wide_part: dict[str, set[int]] = {}
        self.candidates = lru_cache(maxsize=4)(self._candidates)

    def add(self, patterns: Sequence[str]) -> frozenset[int]:
        """Adds patterns; returns their places."""
        start = len(self._patterns)
        self._patterns += patterns
        return frozenset(range(start, len(self._patterns)))

    def search(self, places: Iterable[int], text: str) -> bool:
        """Returns whether a text has a match of one of the patterns at these places."""
        for place in places:
            if place not in self._compiled:
                self._compiled[place] = re.compile(self._patterns[place])
            if self._compiled[place].search(text):
                return True
        return False

    def find(self, places: Iterable[int], text: str) -> Iterable[re.Match[str]]:
        """Returns the matches of the patterns at these places; the first of two that match at one
        character counts."""
        return re.finditer("|".join(self._patterns[place] for place in places), text)

    def _candidates(self, text: str) -> set[int]:
        """Returns the places of the patterns that may match a text."""
        for place in range(self._parsed, len(self._patterns)):
            self._index(place)
        self._parsed = len(self._patterns)
        found = set(self._always)
        for word in self._by_word.keys() & _words(text):
            found |= self._by_word[word]
        for part, places in self._by_part.items():
            if part in text:
                found |= places
        if not text.isascii():
            for part, places in self._by_wide_part.items():
                if part in text:
                    found |= places
        return found

    def _index(self, place: int) -> None:
        pattern = self._patterns[place]
        # A pattern for the beginning of a text is tried once, which takes no longer than literals.
        is_anchored = pattern.startswith("^")
        literals = None if is_anchored or _parse is None else _needed(list(_parse(pattern)))
        if literals is None:
            self._always.add(place)
        for literal in literals or ():
            part = literal.replace(_EDGE, "")
            index = self._by_part if part.isascii() else self._by_wide_part
            if whole := _WHOLE.findall(literal):
                part, index = max(whole, key=len), self._by_word
            index.setdefault(part, set()).add(place)


_PATTERNS = _Patterns()


def _divide(pattern: str) -> Iterator[str]:
    """Returns the alternatives of a pattern that no parenthesis encloses."""
    depth, start, place = 0, 0, 0
    while place < len(pattern):
        sign = pattern[place]
        if sign == "\\":
            place += 1
        elif sign == "[":
            place = pattern.index("]", place + 2)
        elif sign in "()":
            depth += 1 if sign == "(" else -1
        elif sign == "|" and not depth:
            yield pattern[start:place]
            start = place + 1
        place += 1
    yield pattern[start:]


def _needed(parsed: Sequence[_Part]) -> set[str] | None:
    """Returns strings of which every match has at least one; None if there are no such strings."""
    runs: list[set[str]] = []
    run = {""}
    for place, (operation, argument) in enumerate(parsed):
        options = _options(operation, argument)
        if options is not None and len(run) * len(options) <= _MOST:
            run = {"".join(pair) for pair in product(run, options)}
            continue
        runs.append(run)
        run = {""} if options is None else options
        if options is None:
            before, after = parsed[max(0, place - 1) : place], parsed[place + 1 : place + 2]
            inner = _needed_within(operation, argument, _edges(before), _edges(after))
            runs += [] if inner is None else [inner]
    runs.append(run)
    best = max(runs, key=lambda one: min(len(text.replace(_EDGE, "")) for text in one))
    return best if all(text.replace(_EDGE, "") for text in best) else None


def _needed_within(
    operation: Any, argument: Any, before: list[_Part], after: list[_Part]
) -> set[str] | None:
    """Returns what a part of a pattern needs.

    before, after: what ends a word beside the part
    """
    name = str(operation)
    if name == "SUBPATTERN":
        return _needed([*before, *argument[-1], *after])
    if name in {"MAX_REPEAT", "MIN_REPEAT"} and argument[0] > 0:
        return _needed(list(argument[2]))
    if name == "BRANCH":
        found = [_needed([*before, *one, *after]) for one in argument[1]]
        return None if None in found else set().union(*(one for one in found if one))
    return None


def _edges(parts: Sequence[_Part]) -> list[_Part]:
    """Returns a neighbour that ends a word: a word boundary, or a character of no word."""
    return [
        (name, argument)
        for name, argument in parts
        if str(name) == "AT" or (str(name) == "LITERAL" and not chr(argument).isalnum())
    ]


def _options(operation: Any, argument: Any) -> set[str] | None:
    """Returns all strings that a part of a pattern stands for; None if they are many."""
    name = str(operation)
    if name == "LITERAL":
        return {chr(argument)}
    if name == "AT":
        return {"" if str(argument) == "AT_NON_BOUNDARY" else _EDGE}
    if name in {"ASSERT", "ASSERT_NOT"}:
        return {""}
    if name == "IN":
        return _few({chr(one) for kind, one in argument if str(kind) == "LITERAL"}, len(argument))
    if name == "SUBPATTERN":
        return _strings(argument[-1])
    if name == "BRANCH":
        found = [_strings(one) for one in argument[1]]
        return None if None in found else set().union(*(one for one in found if one))
    if name == "MAX_REPEAT" and tuple(argument[:2]) == (0, 1):
        inner = _strings(argument[2])
        return None if inner is None else {"", *inner}
    return None


def _few(characters: set[str], number: int) -> set[str] | None:
    return characters if len(characters) == number else None


def _strings(parsed: Iterable[_Part]) -> set[str] | None:
    found = {""}
    for operation, argument in parsed:
        options = _options(operation, argument)
        if options is None or len(found) * len(options) > _MOST:
            return None
        found = {"".join(pair) for pair in product(found, options)}
    return found
