"""The content words of a text, by which statements and topics are compared."""

from __future__ import annotations

import re
from functools import lru_cache

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_STOP = frozenset(
    "a about actually after again all also am an and any are as at be because been but by can "
    "could did do does for from get go had has have he her him his how i i'd i'll i'm i've if "
    "in instead is it it's its just let like make me meant mistake more my no not now of oh on "
    "one only or our out please said she should so some sorry that that's the their them then "
    "there these they this to too up us use wait was we we'll we're were what when where which "
    "who will with would wrong yes you you're your der die das und ist nicht ich ein eine el la "
    "los las de que y es en un una".split()
)


@lru_cache(maxsize=4_096)
def content_words(text: str) -> frozenset[str]:
    """Words in lower case without endings of the plural; pairs of characters for CJK."""
    found: set[str] = set()
    for word in _WORD.findall(text.lower().replace("’", "'")):
        if _CJK.search(word):
            found.update(word[place : place + 2] for place in range(max(1, len(word) - 1)))
        elif word not in _STOP:
            stem = word.removesuffix("'s")
            found.add(stem[:-1] if len(stem) > 3 and stem.endswith("s") else stem)
    return frozenset(found)
