"""Cuts long texts into passages, which are embedded each.

A vector represents only the beginning of a long text, and blurs its contents. The cut is a pure
function of the text, so only the vectors are stored: that of the whole text first, and those of its
passages in order.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from typing import NamedTuple

CUT = "p1"
"""The name of this way of cutting. It is part of the id of a model, because vectors of passages
that were cut otherwise belong to other texts."""
LONGEST = 800
"""The most characters of a passage, and of a text that is not cut: about 200 tokens."""
_LEAST = 600
_OVERLAP = 100
MOST_PASSAGES = 64
"""The most passages of a text. What stands behind them is found by words."""
_LONGEST_HEADING = 120
_SENTENCE_END = re.compile(  # With the marks of other scripts.
    r"(?:[.!?\u2026][\"')\]\u00bb\u201d]*(?=\s)|[\u3002\uff01\uff1f]|\n)\s*"
)
_HEADING = re.compile(r"^[ \t]*#{1,6}[ \t]+(\S.*)$", re.MULTILINE)


class Passage(NamedTuple):
    """A part of a text, from the character `start` up to `end`.

    heading: the last heading before it, "" without one
    """

    start: int
    end: int
    heading: str


def cut(text: str) -> list[Passage]:
    """The passages of a text, in order; none for a text that one vector represents.

    A passage ends with a sentence if one ends in its last quarter, otherwise between words,
    otherwise anywhere. The next one begins before its end, with a sentence where possible.
    """
    if len(text) <= LONGEST:
        return []
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    headings = [(match.start(), match[1].strip()) for match in _HEADING.finditer(text)]
    passages: list[Passage] = []
    start = 0
    while start < len(text) and len(passages) < MOST_PASSAGES:
        end = _end_of(text, start, ends)
        passages.append(Passage(start, end, _heading_of(headings, start)))
        if end == len(text):
            break
        start = _start_after(text, end, ends)
    return passages


def texts_of(text: str, title: str = "") -> list[str]:
    """The texts to embed: the whole, and its passages with the title of the text and their
    headings."""
    texts = [text]
    for passage in cut(text):
        said = text[passage.start : passage.end].strip()
        above = [part for part in (title, passage.heading) if part and part not in said]
        texts.append("\n".join((*above, said)))
    return texts


def _end_of(text: str, start: int, ends: list[int]) -> int:
    last = start + LONGEST
    if last >= len(text):
        return len(text)
    place = bisect_right(ends, last) - 1
    if place >= 0 and ends[place] > start + _LEAST:
        return ends[place]
    space = text.rfind(" ", start + _LEAST, last)
    return last if space < 0 else space + 1


def _start_after(text: str, end: int, ends: list[int]) -> int:
    """Returns the beginning of the passage that follows a passage with this end."""
    place = bisect_left(ends, end - _OVERLAP)
    if place < len(ends) and ends[place] < end:
        return ends[place]
    space = text.find(" ", end - _OVERLAP, end - 1)
    return end if space < 0 else space + 1


def _heading_of(headings: list[tuple[int, str]], start: int) -> str:
    place = bisect_left(headings, (start, "")) - 1
    return headings[place][1][:_LONGEST_HEADING] if place >= 0 else ""
