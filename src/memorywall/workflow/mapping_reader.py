"""Reads a mapping of a workflow file key by key; keys that are never read are reported.

A missing or invalid value is reported and replaced by the default, so that one pass finds every
problem.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from memorywall.records.identifiers import normalize_name
from memorywall.workflow.names import Check
from memorywall.workflow.tree import Diagnostics, Position, SyntaxNode, inside, shown

Choice = TypeVar("Choice", bound=str)
MOST_ENTRIES = 1_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class LocatedText:
    """A text with its position."""

    text: str
    at: Position
    where: str


class MappingReader:
    """A mapping, or the position of a missing mapping, whose required keys are not reported."""

    def __init__(self, node: SyntaxNode | None, where: str, diagnostics: Diagnostics) -> None:
        self._report = diagnostics
        self.where = where
        self.at = node.at if node else Position(1, 1)
        self._asked: dict[str, None] = {}
        self._keys: dict[str, Position] = node.keys if node else {}
        self._content: dict[str, SyntaxNode] | None = None
        if node is not None and isinstance(node.content, dict):
            self._content = node.content
        elif node is not None:
            diagnostics.add(node.at, where, "must be a mapping")

    @property
    def is_there(self) -> bool:
        return self._content is not None

    def key_positions(self) -> Iterator[tuple[str, Position]]:
        """All keys with their positions."""
        yield from self._keys.items()

    def located_text(self, key: str, check: Check, *, required: bool = False) -> LocatedText | None:
        """A text that passes the check; None, with a problem reported, otherwise."""
        node = self._take(key, required)
        if node is None:
            return None
        return locate_text(node, inside(self.where, key), check, self._report)

    def words(self, key: str, check: Check, *, most: int | None = None) -> tuple[LocatedText, ...]:
        """A list of distinct texts that pass the check.

        most: the most elements, None for no limit
        """
        found: dict[str, LocatedText] = {}
        for where, node in self.items(key, most=most):
            word = locate_text(node, where, check, self._report)
            if word is not None and word.text in found:
                self._report.add(node.at, where, "occurs twice in this list")
            elif word is not None:
                found[word.text] = word
        return tuple(found.values())

    def texts(self, key: str, check: Check, *, most: int | None = None) -> tuple[str, ...]:
        """Like `words`, without positions."""
        return tuple(word.text for word in self.words(key, check, most=most))

    def flag(self, key: str, default: bool) -> bool:
        """A boolean."""
        node = self._take(key)
        if node is None:
            return default
        if not isinstance(node.content, bool):
            self._wrong(key, node, "must be true or false")
            return default
        return node.content

    def count(self, key: str, most: int = MOST_ENTRIES) -> int | None:
        """A whole number from 1 to `most`."""
        node = self._take(key)
        if node is None:
            return None
        number = node.content
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= most:
            self._wrong(key, node, f"must be a whole number from 1 to {most}")
            return None
        return number

    def choice(self, key: str, options: tuple[Choice, ...], default: Choice) -> Choice:
        """One of the given words."""
        node = self._take(key)
        if node is None:
            return default
        for option in options:
            if node.content == option:
                return option
        listed = ", ".join(f"`{option}`" for option in options)
        self._wrong(
            key, node, f"must be {listed}" if len(options) == 1 else f"must be one of {listed}"
        )
        return default

    def mapping(self, key: str, *, required: bool = False) -> dict[str, Any]:
        """A mapping with any JSON content."""
        node = self._take(key, required)
        if node is None:
            return {}
        if not isinstance(node.content, dict):
            self._wrong(key, node, "must be a mapping")
            return {}
        content: dict[str, Any] = node.plain()
        return content

    def section(self, key: str, *, required: bool = False) -> MappingReader:
        """A reader of a nested mapping; a missing mapping counts as empty."""
        return MappingReader(self._take(key, required), inside(self.where, key), self._report)

    def items(
        self, key: str, *, required: bool = False, most: int | None = None
    ) -> list[tuple[str, SyntaxNode]]:
        """The elements of a list, each with its path."""
        node = self._take(key, required)
        if node is None:
            return []
        if not isinstance(node.content, list):
            self._wrong(key, node, "must be a list")
            return []
        if required and not node.content:
            self._wrong(key, node, "must not be empty")
        if most is not None and len(node.content) > most:
            self._wrong(key, node, f"must have at most {most} elements")
        where = inside(self.where, key)
        return [(inside(where, index), item) for index, item in enumerate(node.content[:most])]

    def position(self, key: str) -> Position:
        """The position of the value of a key, or of the mapping if the key is missing."""
        node = (self._content or {}).get(key)
        return node.at if node else self.at

    def finish(self) -> None:
        """Reports the keys that were not read."""
        for key, at in self._keys.items():
            if key not in self._asked:
                nearest = self._report.nearest(key, self._asked)
                hint = f"; do you mean `{nearest}`?" if nearest else ""
                self._report.add(at, self.where, f"unknown key `{shown(key)}`{hint}")

    def _take(self, key: str, required: bool = False) -> SyntaxNode | None:
        self._asked[key] = None
        if self._content is None:
            return None
        node = self._content.get(key)
        if node is None and required:
            self._report.add(self.at, self.where, f"the key `{key}` is missing")
        return node

    def _wrong(self, key: str, node: SyntaxNode, reason: str) -> None:
        self._report.add(node.at, inside(self.where, key), reason)


def locate_text(
    node: SyntaxNode, where: str, check: Check, diagnostics: Diagnostics
) -> LocatedText | None:
    """The text of a node in NFC, as the server stores names, if it passes the check; None, with a
    problem reported, otherwise."""
    if not isinstance(node.content, str):
        hint = "; put it in quotes" if isinstance(node.content, int | float) else ""
        diagnostics.add(node.at, where, f"must be text{hint}")
        return None
    text = normalize_name(node.content)
    reason = check(text)
    if reason is not None:
        diagnostics.add(node.at, where, reason)
        return None
    return LocatedText(text=text, at=node.at, where=where)
