"""The text of a summary: one line for consecutive statements of one speaker.

    User: The booking is for May. It is for two.
    Assistant: Booked.
    Data from tool: “status: confirmed”

A statement has no line break, so that a line's start is always the summarizer's own, and content
that is not trusted never reads as a speaker's words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_SPEAKERS = {"user": "User", "assistant": "Assistant", "system": "System", "summary": "Summary"}
_ROLES = {label: role for role, label in _SPEAKERS.items()}
_DATA = re.compile(r"Data from (\w+): “(.*)”$")


@dataclass(frozen=True, slots=True)
class Line:
    """The text of one speaker in one turn, or in one line of a summary.

    speaker: the name that stands before each statement; "" for none, and in a line of a summary,
        whose text has the names
    """

    role: str
    trusted: bool
    text: str
    speaker: str = ""


def read_lines(summary: str) -> Iterator[Line]:
    """The lines of a summary. A line without a label has the role summary."""
    for text in filter(None, summary.split("\n")):
        data = _DATA.match(text)
        if data:
            yield Line(data[1], False, data[2])
            continue
        label, colon, rest = text.partition(": ")
        if colon and label in _ROLES:
            yield Line(_ROLES[label], True, rest)
        else:
            yield Line("summary", True, text)


def write_lines(lines: Iterable[Line]) -> str:
    """The text of a summary; consecutive lines of one speaker become one."""
    written: list[str] = []
    parts: list[str] = []
    last: tuple[str, bool] | None = None
    for line in lines:
        if (line.role, line.trusted) != last and last is not None:
            written.append(_written(*last, " ".join(parts)))
            parts = []
        last = (line.role, line.trusted)
        parts.append(line.text)
    if last is not None:
        written.append(_written(*last, " ".join(parts)))
    return "\n".join(written)


def _written(role: str, trusted: bool, text: str) -> str:
    if trusted:
        return f"{_SPEAKERS.get(role, role.capitalize())}: {text}"
    return f"Data from {role}: “{text}”"
