"""Compound words, by the vocabulary of the searched texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice

LANGUAGES_WITH_COMPOUNDS = frozenset({"de", "nl", "sv"})
"""Languages that write compounds as one word, by ISO 639-1."""
_LINKS = ("", "s", "es", "n", "en", "er", "e", "ns")
"""The letters between two parts of a compound."""
_SHORTEST_PART = 4
_SHORTEST_STEM = 3
_SHORTEST_HEAD = 5
"""The shortest term whose compounds are looked for: shorter ones end too many other words."""
_SHORTEST_MODIFIER = 3
_BETWEEN = "\n"
"""Stands between two terms; no term contains it."""


class Vocabulary:
    """The terms of an index as one text, in which the search for an ending is fast."""

    def __init__(self, terms: Mapping[str, object]) -> None:
        self._terms = terms
        self._read = (0, _BETWEEN)

    def ending_with(self, head: str) -> Iterator[str]:
        """The compounds whose last part is a term; none for a short term."""
        text, at = self._text(), 0
        while len(head) >= _SHORTEST_HEAD and (at := text.find(head + _BETWEEN, at)) >= 0:
            begin = text.rindex(_BETWEEN, 0, at + 1) + 1
            if at - begin >= _SHORTEST_MODIFIER:
                yield text[begin : at + len(head)]
            at += len(head)

    def _text(self) -> str:
        # An index only gains terms, in their order.
        count, text = self._read
        if count < len(self._terms):
            added = list(islice(self._terms, count, None))
            text += _BETWEEN.join(added) + _BETWEEN
            self._read = (count + len(added), text)
        return text


def parts_of(
    word: str, stem: Callable[[str], str], frequency: Callable[[str], int]
) -> Iterator[str]:
    """The terms of the two parts of a compound, of the longest last part that is a word itself.

    stem: the term of a word
    frequency: the number of readable texts with a term
    """
    whole = stem(word)
    for at in range(_SHORTEST_PART, len(word) - _SHORTEST_PART + 1):
        # Stems of all last parts would take long. That of the compound mostly ends with theirs.
        heads = (one for one in (whole[at:], word[at:]) if len(one) >= _SHORTEST_STEM)
        head = next(filter(frequency, heads), None)
        if head is None:
            continue
        for link in _LINKS:
            modifier = word[: at - len(link)]
            if len(modifier) < _SHORTEST_PART or not word[:at].endswith(link):
                continue
            if frequency(stem(modifier)):
                yield stem(modifier)
                yield head
                return
