"""A mapping of a workflow file whose keys are asked for one by one; what nobody asked for is wrong.

Whatever is missing or of the wrong kind is reported and answered with the default, so that one
reading finds every problem.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from memorywall.workflow.names import Check
from memorywall.workflow.tree import Node, Position, Report, inside, shown

Choice = TypeVar("Choice", bound=str)
MOST_ENTRIES = 1_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Word:
    """A text with its place."""

    text: str
    at: Position
    where: str


class Section:
    """A mapping, or the place of one that is not there: then nothing in it is missed."""

    def __init__(self, node: Node | None, where: str, report: Report) -> None:
        self._report = report
        self.where = where
        self.at = node.at if node else Position(1, 1)
        self._asked: dict[str, None] = {}
        self._keys: dict[str, Position] = node.keys if node else {}
        self._content: dict[str, Node] | None = None
        if node is not None and isinstance(node.content, dict):
            self._content = node.content
        elif node is not None:
            report.add(node.at, where, "must be a mapping")

    @property
    def is_there(self) -> bool:
        return self._content is not None

    def key_places(self) -> Iterator[tuple[str, Position]]:
        """All keys with their places."""
        yield from self._keys.items()

    def word(self, key: str, check: Check, *, required: bool = False) -> Word | None:
        """A text that passes the check."""
        node = self._take(key, required)
        if node is None:
            return None
        return word_of(node, inside(self.where, key), check, self._report)

    def words(self, key: str, check: Check, *, most: int | None = None) -> tuple[Word, ...]:
        """A list of texts that pass the check, each once."""
        found: dict[str, Word] = {}
        for where, node in self.items(key, most=most):
            word = word_of(node, where, check, self._report)
            if word is not None and word.text in found:
                self._report.add(node.at, where, "stands twice in this list")
            elif word is not None:
                found[word.text] = word
        return tuple(found.values())

    def texts(self, key: str, check: Check, *, most: int | None = None) -> tuple[str, ...]:
        """As `words`, without their places."""
        return tuple(word.text for word in self.words(key, check, most=most))

    def flag(self, key: str, default: bool) -> bool:
        """A truth value."""
        node = self._take(key)
        if node is None:
            return default
        if not isinstance(node.content, bool):
            self._wrong(key, node, "must be true or false")
            return default
        return node.content

    def count(self, key: str, most: int = MOST_ENTRIES) -> int | None:
        """A whole number from 1."""
        node = self._take(key)
        if node is None:
            return None
        number = node.content
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= most:
            self._wrong(key, node, f"must be a whole number from 1 to {most}")
            return None
        return number

    def choice(self, key: str, options: tuple[Choice, ...], default: Choice) -> Choice:
        """One of a few words."""
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
        """A mapping that may hold anything JSON can."""
        node = self._take(key, required)
        if node is None:
            return {}
        if not isinstance(node.content, dict):
            self._wrong(key, node, "must be a mapping")
            return {}
        content: dict[str, Any] = node.plain()
        return content

    def section(self, key: str, *, required: bool = False) -> Section:
        """A mapping with keys of its own; one that is not there is as good as empty."""
        return Section(self._take(key, required), inside(self.where, key), self._report)

    def items(
        self, key: str, *, required: bool = False, most: int | None = None
    ) -> list[tuple[str, Node]]:
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

    def place(self, key: str) -> Position:
        """Where the value of a key stands, or the mapping itself without that key."""
        node = (self._content or {}).get(key)
        return node.at if node else self.at

    def finish(self) -> None:
        """Reports the keys that were not asked for."""
        for key, at in self._keys.items():
            if key not in self._asked:
                nearest = self._report.nearest(key, self._asked)
                hint = f"; did you mean `{nearest}`?" if nearest else ""
                self._report.add(at, self.where, f"unknown key `{shown(key)}`{hint}")

    def _take(self, key: str, required: bool = False) -> Node | None:
        self._asked[key] = None
        if self._content is None:
            return None
        node = self._content.get(key)
        if node is None and required:
            self._report.add(self.at, self.where, f"the key `{key}` is missing")
        return node

    def _wrong(self, key: str, node: Node, reason: str) -> None:
        self._report.add(node.at, inside(self.where, key), reason)


def word_of(node: Node, where: str, check: Check, report: Report) -> Word | None:
    """The text of a node, when it is one and passes the check."""
    if not isinstance(node.content, str):
        hint = "; put it in quotes" if isinstance(node.content, int | float) else ""
        report.add(node.at, where, f"must be text{hint}")
        return None
    reason = check(node.content)
    if reason is not None:
        report.add(node.at, where, reason)
        return None
    return Word(text=node.content, at=node.at, where=where)
