"""The content words of a text, by which statements and topics are compared."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from memorywall.records.words import NO_SPACES, fold_accents, mark_pattern, normalize_text

_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_WITHOUT_SPACES = re.compile(f"[{NO_SPACES}]")
_STOP = frozenset(
    "a about actually after again all also am an and any are as at be because been but by can "
    "could did do does for from get go had has have he her him his how i i'd i'll i'm i've if "
    "in instead is it it's its just let like make me meant mistake more my no not now of oh on "
    "one only or our out please said she should so some sorry that that's the their them then "
    "there these they this to too up us use wait was we we'll we're were what when where which "
    "who will with would wrong yes you you're your der die das und ist nicht ich ein eine el la "
    "los las de que y es en un una".split()
)


def _words(text: str) -> list[str]:
    return (_WORD if text.isascii() else _word_with_marks()).findall(text)


@cache
def _word_with_marks() -> re.Pattern[str]:
    letters = rf"[^\W\d_]+(?:{mark_pattern()}+[^\W\d_]*)*"
    return re.compile(rf"{letters}(?:'{letters})?")


@lru_cache(maxsize=4_096)
def content_words(text: str) -> frozenset[str]:
    """Words in lower case without accents and endings of the plural; pairs of letters in texts
    without spaces between words."""
    found: set[str] = set()
    for word in _words(fold_accents(normalize_text(text).lower().replace("’", "'"))):
        if _WITHOUT_SPACES.search(word):
            found.update(word[place : place + 2] for place in range(max(1, len(word) - 1)))
        elif word not in _STOP:
            stem = word.removesuffix("'s")
            found.add(stem[:-1] if len(stem) > 3 and stem.endswith("s") else stem)
    return frozenset(found)
