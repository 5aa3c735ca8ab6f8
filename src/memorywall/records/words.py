"""The words of a text as Unicode defines them, in one form for all ways of writing them.

Sources: UAX #15 (the normal form NFKC), UAX #29 section 4 (word boundaries).
"""

from __future__ import annotations

import re
from functools import cache
from itertools import chain
from typing import Final
from unicodedata import category, combining, decimal, normalize

_BLOCKS_WITH_MARKS = (
    *((0x300, 0x2000), (0x2C00, 0x3100), (0xA660, 0xAC00), (0xFB1E, 0xFB1F), (0xFE20, 0xFE30)),
    *((0x10A00, 0x11F60), (0x1E000, 0x1E960)),
)
"""The blocks of scripts: to look at all characters would take 100 ms."""
NO_SPACES: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff"
)
"""The letters of Thai, Lao, Burmese, Khmer, Japanese, Chinese and Korean, with few spaces between
words, for a class of a pattern."""
QUESTION_MARKS: Final = ("?", "？", "؟")  # noqa: RUF001
"""Those of Latin, Chinese and Arabic texts."""
_WORD = re.compile(r"[^\W_]+")
_SYMBOL = re.compile("[\u2100-\u2109\u2114-\u2123\u3200-\u33ff\U0001f100-\U0001f1ff]")
"""Symbols whose normal form has letters, such as that of trade marks: no part of the word beside
them."""
_IGNORED = re.compile(
    "[\u00ad\u034f\u061c\u0640\u180b-\u180f\u200c-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f"
    "\ufeff\U000e0000-\U000e01ef]"
)
"""Characters without a meaning for a word: soft hyphens, joiners, directions, variants, and the
stroke that stretches Arabic words."""
_SPACE_IN_NUMBER = re.compile("(?<=\\d)[\u00a0\u2007\u2009\u202f](?=\\d{3}(?!\\d))")
_INSIDE = re.compile(
    "(?<=[^\\W\\d_])\u00b7(?=[^\\W\\d_])|(?<=[\u05d0-\u05ea])[\"'\u05f3\u05f4](?=[\u05d0-\u05ea])"
)
"""The middle dot in a Catalan word, and the marks in a Hebrew abbreviation."""
_DIGIT = re.compile(r"[^\D0-9]")
_RARE = re.compile(
    "[^\0-\u009f\u00a1-\u00ac\u00ae-\u00b6\u00b8-\u02ff\u0370-\u0482\u048a-\u058f\u1e00-\u1fff\u2010-\u2027"
    "\u2030-\u205e\u20a0-\u20cf\u2190-\u2bff\u3000-\u3029\u3030-\u3098\u309b-\u31ff\u3400-\ua4cf\uac00-\ud7af"
    "\uf900-\ufafa\uff00-\uffef]"
)
"""In texts without it, there are no marks, and only the normal form changes anything: a fast test,
with the frequent characters of the frequent scripts."""
_LETTERS = str.maketrans(
    {"ß": "ss", "æ": "ae", "œ": "oe", "þ": "th"}
    | dict(zip("øłđðħŧıς\u064a\u0649\u0643", "olddhtiσ\u06cc\u06cc\u06a9", strict=True))  # noqa: RUF001
)
"""Letters that are written for each other and that no normal form makes equal: those with strokes,
the sigma at the end of a word, and the yeh and kaf of Arabic and Persian."""
_ACCENTS = frozenset({1, 7, *range(10, 37), *range(202, 241)})
"""The combining classes of marks that do not count: accents, nuktas, and the points of Hebrew and
Arabic. Other marks make other letters, such as viramas, and those of Thai and Japanese."""


def normalize_text(text: str) -> str:
    """A text in the normal form NFKC, with the digits of ASCII and without invisible characters."""
    if text.isascii():
        return text
    if _RARE.search(text) is None:
        return normalize("NFKC", text)
    text = _SPACE_IN_NUMBER.sub("'", text)
    text = normalize("NFKC", _SYMBOL.sub(r" \g<0> ", text))
    text = _INSIDE.sub("", _IGNORED.sub("", text))
    return _DIGIT.sub(lambda found: str(decimal(found[0])), text)


@cache
def mark_pattern() -> str:
    """The pattern of a mark that belongs to the letter before it, such as a vowel sign. Patterns of
    Python count marks to no word."""
    codes = chain.from_iterable(range(*block) for block in _BLOCKS_WITH_MARKS)
    marks = [chr(code) for code in codes if category(chr(code)).startswith("M")]
    # In a class with characters of both kinds, each test takes a microsecond.
    long = [one for one in marks if one > "\uffff"]
    return rf"(?:[{''.join(marks[: -len(long)])}]|(?![\0-\uffff])[{''.join(long)}])"


@cache
def _word_with_marks() -> re.Pattern[str]:
    # Made when needed, because it takes 10 ms.
    return re.compile(rf"[^\W_]+(?:{mark_pattern()}+[^\W_]*)*")


def split_words(text: str) -> list[str]:
    """The words of a text in the form of `normalize_text`."""
    has_marks = not text.isascii() and _RARE.search(text) is not None
    return (_word_with_marks() if has_marks else _WORD).findall(text)


def find_words(text: str) -> list[str]:
    """The words of a text, as written but for the normal form."""
    return split_words(normalize_text(text))


def fold_accents(text: str) -> str:
    """A text in the form of `normalize_text` and in lower case, without accents in any script."""
    if text.isascii():
        return text
    split = normalize("NFD", text.translate(_LETTERS)).translate(_LETTERS)
    kept = (one for one in split if one.isascii() or combining(one) not in _ACCENTS)
    return normalize("NFC", "".join(kept))
