"""Divides text into sentences, in any script. A sentence has no line break."""

from __future__ import annotations

import re
from collections.abc import Iterator

_ABBREVIATIONS = frozenset(
    "approx art bzw ca co corp dept dr e.g eg etc fig i.e ie inc jr ltd mr mrs ms no nr prof "
    "rev sr sra st usw vgl vs z.b".split()
)
# A full stop ends a sentence before white space; marks of CJK end one anywhere.
_END = re.compile(r"[.!?؟।…]+[\"'”’»)\]]*(?=\s)|[。！？｡]+[」』”’）]*")
_BULLET = re.compile(r"^(?:[-*•>#]+|\d{1,3}[.)](?=\s))\s*")
_LAST_WORD = re.compile(r"(\S+?)\.$")
_MONTH = re.compile(
    r"\s(?:Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember)\b"
)
_WHITE = re.compile(r"[^\S\n]+")
# Characters that could hide the start of a line or reverse the order of its characters.
_LINE_BREAKS = re.compile(r"\r\n?|[\v\f\x1c-\x1e\x85\u2028\u2029]")
_INVISIBLE = re.compile(r"[\u202a-\u202e\u2066-\u2069\u200b\ufeff\x00-\x08\x0e-\x1b\x1f\x7f]")


def clean(text: str) -> str:
    """The text with one form of line break and of white space, and without invisible characters."""
    if text.isascii() and text.isprintable() and "  " not in text:
        return text
    return _WHITE.sub(" ", _INVISIBLE.sub("", _LINE_BREAKS.sub("\n", text)))


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text in order, without the marks of lists and headings."""
    for line in clean(text).split("\n"):
        yield from _of_line(_BULLET.sub("", line.strip()))


def _of_line(line: str) -> Iterator[str]:
    start = 0
    for end in _END.finditer(line):
        if _is_abbreviated(line[max(start, end.end() - 12) : end.end()], line, end.end()):
            continue
        piece = line[start : end.end()].strip()
        if piece.rstrip(".").isdigit():
            continue  # the number of a list within a line
        if piece:
            yield piece
        start = end.end()
    rest = line[start:].strip()
    if rest:
        yield rest


def _is_abbreviated(tail: str, line: str, end: int) -> bool:
    """Whether the full stop at `end` belongs to an abbreviation, an initial or an ordinal."""
    word = _LAST_WORD.search(tail.split(" ")[-1])
    if word is None:
        return False
    name = word[1].lower().lstrip("(\"'“„«")
    following = line[end : end + 2].strip()
    if name in _ABBREVIATIONS or (len(name) == 1 and name.isalpha() and word[1].isupper()):
        return name != "no" or following.isdigit()
    # "am 3. Mai", "die 2. rate": an ordinal of German is followed by a month or a small letter.
    is_ordinal = name.isdigit() and len(name) <= 2
    return is_ordinal and (following[:1].islower() or bool(_MONTH.match(line, end)))
