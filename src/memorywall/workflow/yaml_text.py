"""Parses YAML text into a syntax tree with positions.

Only the event parser of ruamel.yaml is used. Plain scalars are interpreted by JSON's rules (the
core schema of YAML 1.2). A resolver of YAML 1.1 would read `no` as a boolean, `12:30` as a number
and 2025-06-01 as a date, which JSON cannot represent.
"""

from __future__ import annotations

import re
from typing import Any

from ruamel.yaml.docinfo import DocInfo
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.events import (
    AliasEvent,
    MappingEndEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)
from ruamel.yaml.loader import SafeLoader
from ruamel.yaml.reader import ReaderError

from memorywall.workflow.tree import (
    DEEPEST,
    TOP,
    Diagnostics,
    Position,
    Scalar,
    SyntaxNode,
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
    """Ends the parsing of a file."""

    def __init__(self, at: Position, reason: str) -> None:
        super().__init__(reason)
        self.at = at
        self.reason = reason


def parse_yaml(text: str, diagnostics: Diagnostics) -> SyntaxNode | None:
    """The document in `text`; None, with a problem reported, on failure."""
    try:
        # Typed as anything: the methods of the parser are untyped.
        loader: Any = SafeLoader(text)
    except ReaderError as error:
        diagnostics.add(
            _position_at(text, error.position), "", "is not YAML: a character is not allowed"
        )
        return None
    # The scanner stores directives here and does not create the list itself.
    loader.doc_infos = [DocInfo()]
    try:
        return _document(loader, diagnostics)
    except _RefusedError as error:
        diagnostics.add(error.at, "", error.reason)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        diagnostics.add(_position(mark) if mark else TOP, "", f"is not YAML: {_message_of(error)}")
    except (ValueError, OverflowError):
        # The scanner lets these through for an escape beyond Unicode and for a directive's number.
        diagnostics.add(_position(loader.get_mark()), "", "is not YAML: a number is out of range")
    return None


def _document(loader: Any, diagnostics: Diagnostics) -> SyntaxNode | None:
    loader.get_event()
    if loader.check_event(StreamEndEvent):
        diagnostics.add(TOP, "", "is empty")
        return None
    loader.get_event()
    root = _node(loader, "", 0, diagnostics)
    loader.get_event()
    if not loader.check_event(StreamEndEvent):
        raise _RefusedError(_position(loader.peek_event().start_mark), "holds a second document")
    return root


def _node(loader: Any, where: str, depth: int, diagnostics: Diagnostics) -> SyntaxNode:
    event = loader.get_event()
    at = _position(event.start_mark)
    if isinstance(event, AliasEvent):
        raise _RefusedError(at, "aliases are not allowed; write the value out")
    if event.anchor is not None:
        raise _RefusedError(at, "anchors are not allowed")
    if event.tag is not None:
        raise _RefusedError(at, "tags are not allowed")
    if depth > DEEPEST:
        raise _RefusedError(at, f"is nested deeper than {DEEPEST} levels")
    if isinstance(event, ScalarEvent):
        return scalar(_meaning(event), at, where, diagnostics)
    if isinstance(event, SequenceStartEvent):
        items: list[SyntaxNode] = []
        while not loader.check_event(SequenceEndEvent):
            items.append(_node(loader, inside(where, len(items)), depth + 1, diagnostics))
        loader.get_event()
        return SyntaxNode(content=items, at=at)
    return _mapping(loader, at, where, depth, diagnostics)


def _mapping(
    loader: Any, at: Position, where: str, depth: int, diagnostics: Diagnostics
) -> SyntaxNode:
    content: dict[str, SyntaxNode] = {}
    mapping = SyntaxNode(content=content, at=at)
    while not loader.check_event(MappingEndEvent):
        key = _node(loader, where, depth + 1, diagnostics)
        name = key.content
        end = loader.last_event.end_mark
        if not isinstance(name, str):
            diagnostics.add(key.at, where, "a key must be text; numbers and such need quotes")
            _node(loader, where, depth + 1, diagnostics)
            continue
        value = _node(loader, inside(where, name), depth + 1, diagnostics)
        if value.content is None and loader.last_event.value == "":
            # The parser gives a missing value the position of what follows it.
            value = SyntaxNode(content=None, at=Position(end.line + 1, end.column + 2))
        if add_key(mapping, name, key.at, where, diagnostics):
            content[name] = value
    loader.get_event()
    return mapping


def _meaning(event: ScalarEvent) -> Scalar:
    text: str = event.value
    is_plain = event.implicit[0]
    if is_plain and text in _WORDS:
        return _WORDS[text]
    if is_plain and _NUMBER.fullmatch(text):
        return number(text)
    return text


def _message_of(error: MarkedYAMLError) -> str:
    """The message of the parser without text of the file."""
    message = re.sub(r"tag handle .*", "tag handle", error.problem or "it cannot be parsed")
    # The parser formats the name of a token as a tuple in one message.
    return re.sub(r"\(('<.*>'),\)", r"\1", message)


def _position(mark: Any) -> Position:
    return Position(mark.line + 1, mark.column + 1)


def _position_at(text: str, index: int) -> Position:
    before = text[:index]
    return Position(before.count("\n") + 1, index - (before.rfind("\n") + 1) + 1)
