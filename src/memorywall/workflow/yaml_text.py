"""From YAML text to a tree with places.

Only PyYAML's parser is used. What plain words mean is decided here by JSON's rules (the core schema
of YAML 1.2): its own 1.1 rules make a truth value of `no`, a number of `12:30` and a date that no
JSON can carry of 2025-06-01.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from memorywall.workflow.tree import (
    DEEPEST,
    TOP,
    Node,
    Position,
    Report,
    Scalar,
    add_key,
    inside,
    number,
    scalar,
)

_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")


class _RefusedError(Exception):
    """Reading ends here."""

    def __init__(self, at: Position, reason: str) -> None:
        super().__init__(reason)
        self.at = at
        self.reason = reason


def parse_yaml(text: str, report: Report) -> Node | None:
    """The one document of `text`, None when it cannot be read at all."""
    try:
        # Typed as anything: the stubs leave the parser's methods untyped.
        loader: Any = yaml.SafeLoader(text)
    except yaml.reader.ReaderError as error:
        report.add(_place(text, error.position), "", "is not YAML: a character is not allowed")
        return None
    try:
        return _document(loader, report)
    except _RefusedError as error:
        report.add(error.at, "", error.reason)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        report.add(_position(mark) if mark else TOP, "", f"is not YAML: {_told(error)}")
    except (ValueError, OverflowError):
        # The scanner lets these through for an escape beyond Unicode and for a directive's number.
        report.add(_position(loader.get_mark()), "", "is not YAML: a number is out of range")
    return None


def _document(loader: Any, report: Report) -> Node | None:
    loader.get_event()
    if loader.check_event(yaml.StreamEndEvent):
        report.add(TOP, "", "is empty")
        return None
    loader.get_event()
    root = _node(loader, "", 0, report)
    loader.get_event()
    if not loader.check_event(yaml.StreamEndEvent):
        raise _RefusedError(_position(loader.peek_event().start_mark), "holds a second document")
    return root


def _node(loader: Any, where: str, depth: int, report: Report) -> Node:
    event = loader.get_event()
    at = _position(event.start_mark)
    if isinstance(event, yaml.AliasEvent):
        raise _RefusedError(at, "aliases are not allowed; write the value out")
    if event.anchor is not None:
        raise _RefusedError(at, "anchors are not allowed")
    if event.tag is not None:
        raise _RefusedError(at, "tags are not allowed")
    if depth > DEEPEST:
        raise _RefusedError(at, f"is nested deeper than {DEEPEST} levels")
    if isinstance(event, yaml.ScalarEvent):
        return scalar(_meaning(event), at, where, report)
    if isinstance(event, yaml.SequenceStartEvent):
        items: list[Node] = []
        while not loader.check_event(yaml.SequenceEndEvent):
            items.append(_node(loader, inside(where, len(items)), depth + 1, report))
        loader.get_event()
        return Node(content=items, at=at)
    return _mapping(loader, at, where, depth, report)


def _mapping(loader: Any, at: Position, where: str, depth: int, report: Report) -> Node:
    content: dict[str, Node] = {}
    mapping = Node(content=content, at=at)
    while not loader.check_event(yaml.MappingEndEvent):
        key = _node(loader, where, depth + 1, report)
        name = key.content
        if not isinstance(name, str):
            report.add(key.at, where, "a key must be text; numbers and such need quotes")
            _node(loader, where, depth + 1, report)
            continue
        value = _node(loader, inside(where, name), depth + 1, report)
        if add_key(mapping, name, key.at, where, report):
            content[name] = value
    loader.get_event()
    return mapping


def _meaning(event: yaml.ScalarEvent) -> Scalar:
    text: str = event.value
    is_plain = event.implicit[0]
    if is_plain and text in _WORDS:
        return _WORDS[text]
    if is_plain and _NUMBER.fullmatch(text):
        return number(text)
    return text


def _told(error: yaml.MarkedYAMLError) -> str:
    """What the parser says, without the one thing in it that is text of the file's own."""
    return re.sub(r"tag handle .*", "tag handle", error.problem or "it cannot be parsed")


def _position(mark: Any) -> Position:
    return Position(mark.line + 1, mark.column + 1)


def _place(text: str, index: int) -> Position:
    before = text[:index]
    return Position(before.count("\n") + 1, index - (before.rfind("\n") + 1) + 1)
