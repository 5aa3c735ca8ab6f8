"""How alike a text and a session are in meaning. Pure functions.

Words that both have make their embeddings alike, also where the text uses them for another matter.
So the text is compared with the session a second time, without these words: what it says besides is
alike only if it continues the session.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memorywall.recall.similarity import cosine

LONGEST = 600
"""The characters of a turn that are compared, and of a session as a whole."""
_WORD = re.compile(r"\S+")

TermsOf = Callable[[str], Collection[str]]
"""The terms of a text, without stop words."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The texts by which a text and a session are compared.

    text, turns, whole: the text, turns of the session, and these as one text
    rest, rests: the text and the turns without the words that both have
    """

    text: str
    turns: tuple[str, ...]
    whole: str
    rest: str
    rests: tuple[str, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts, to embed them."""
        return (self.text, *self.turns, self.whole, self.rest, *self.rests)


@dataclass(frozen=True, slots=True)
class Meaning:
    """How alike a text and a session are, from -1 to 1.

    closest: the text and its most similar turn
    whole: the text and all turns as one text
    rest: the same as `closest` without the words that both have
    """

    closest: float
    whole: float
    rest: float


def prepare_comparison(text: str, turns: Sequence[str], terms_of: TermsOf) -> Comparison:
    """Returns the texts by which a text and a session are compared.

    turns: what the person said, at least one turn
    """
    text = text[:LONGEST]
    turns = tuple(turn[:LONGEST] for turn in turns)
    shared = {*terms_of(text)}.intersection(terms_of("\n".join(turns)))
    known: dict[str, bool] = {}

    def is_shared(word: str) -> bool:
        if word not in known:
            known[word] = not shared.isdisjoint(terms_of(word))
        return known[word]

    def strip(one: str) -> str:
        if not shared:
            return one
        rest = " ".join(word for word in _WORD.findall(one) if not is_shared(word))
        return rest or one

    return Comparison(
        text=text,
        turns=turns,
        whole=". ".join(turns)[:LONGEST],
        rest=strip(text),
        rests=tuple(map(strip, turns)),
    )


def measure_meaning(compared: Comparison, rows: Mapping[str, Any]) -> Meaning:
    """Returns how alike a text and a session are.

    rows: the embedding of each text
    """
    row, rest = rows[compared.text], rows[compared.rest]
    return Meaning(
        closest=max(cosine(row, rows[turn]) for turn in compared.turns),
        whole=cosine(row, rows[compared.whole]),
        rest=max(cosine(rest, rows[turn]) for turn in compared.rests),
    )
