"""A text as the pieces that a tokenizer encodes apart, and the features of a piece.

The pattern follows the one of `o200k_base`: a word takes the character before it, a run of
punctuation the space before it, and white space ends before the last space.
"""

from __future__ import annotations

import re

_UPPER = "A-Z\u00c0-\u00d6\u00d8-\u00de"
_LOWER = "a-z\u00df-\u00f6\u00f8-\u024f"
# Every repetition is bounded, so that no piece of a long text without spaces is long.
_PATTERN = rf"""
    [^\r\n\w]?(?:[{_UPPER}]{{0,32}}[{_LOWER}]{{1,32}}|[{_UPPER}]{{1,32}})
    |\d{{1,3}}
    |[^\W\d_{_UPPER}{_LOWER}]{{1,64}}
    |[ ]?(?:[^\s\w]|_){{1,64}}[\r\n/]{{0,8}}
    |\s{{0,256}}[\r\n]{{1,64}}
    |\s{{1,256}}(?!\S)
    |\s{{1,256}}
    |.
"""
split = re.compile(_PATTERN, re.VERBOSE | re.DOTALL).findall
"""The pieces of a text, in order; together they are the text."""

_LATIN = re.compile(f"[{_UPPER}{_LOWER}]")
_SCRIPTS = (
    ("kana", re.compile("[\u3040-\u30ff]")),
    ("han", re.compile("[\u3400-\u9fff]")),
    ("hangul", re.compile("[\uac00-\ud7af]")),
    ("arabic", re.compile("[\u0590-\u08ff]")),
    ("cyrillic", re.compile("[\u0370-\u058f]")),
)
_LONGEST = 14

FEATURES: dict[str, float] = {
    **{f"{kind}{length}": max(1.0, 1 + 0.12 * (length - 4))
       for kind in ("word", "spaced", "joined") for length in range(2, _LONGEST + 1, 2)},
    **{f"accented{length}": max(1.2, 1.2 + 0.14 * (length - 4))
       for length in range(2, _LONGEST + 1, 2)},
    "capitals": 0.6, "number": 1.0, "underscore": 0.5, "mark1": 1.0, "mark2": 1.0, "mark3": 1.0,
    "more_marks": 0.25, "newline": 1.0, "space": 1.0, "kana": 0.65, "han": 0.6, "hangul": 0.6,
    "arabic": 0.3, "cyrillic": 0.3, "other": 1.5,
}  # fmt: skip
"""Every feature, with the tokens of one occurrence that a fit without data for it keeps."""


def features_of(piece: str) -> dict[str, int]:
    """Returns how often each feature occurs in a piece."""
    if _LATIN.match(piece[-1]):
        return {_word(piece): 1} if not _shouts(piece) else {"capitals": (len(piece) + 1) // 2}
    if piece[0].isdigit():
        return {"number": 1}
    if piece.isspace():
        return {"newline" if piece[-1] in "\r\n" else "space": 1}
    if piece.isalpha() or ord(piece[0]) > 0x2FFF:
        return _letters(piece)
    return _marks(piece)


def _word(piece: str) -> str:
    kind = "word" if piece[0].isalpha() else "spaced" if piece[0] == " " else "joined"
    length = len(piece) - (kind != "word")
    if not piece.isascii():
        kind = "accented"
    return f"{kind}{min(_LONGEST, (length + 1) // 2 * 2)}"


def _shouts(piece: str) -> bool:
    return len(piece) > 2 and piece.isupper()


def _letters(piece: str) -> dict[str, int]:
    counted = {name: len(pattern.findall(piece)) for name, pattern in _SCRIPTS}
    found = {name: number for name, number in counted.items() if number}
    if rest := len(piece) - sum(found.values()):
        found["other"] = rest
    return found


def _marks(piece: str) -> dict[str, int]:
    marks = piece.strip()
    if marks == "_":
        return {"underscore": 1}
    wide = sum(ord(one) > 0x2FFF for one in marks)
    found = {f"mark{min(3, len(marks) - wide)}": 1} if len(marks) > wide else {}
    if len(marks) - wide > 3:
        found["more_marks"] = len(marks) - wide - 3
    if wide:
        found["other"] = wide
    return found
