"""Finds texts that continue a conversation without naming their matter, such as "thanks!", "please
continue" and "did it work?". Pure functions.

Such a text has no words by which sessions can be compared. It continues the person's only session
that is open; with several open sessions nothing tells which one is meant.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from memorywall.records.words import find_words

_WITHOUT_MATTER = frozenset(
    find_words(
        """
        thanks thank thx cheers please continue go going proceed carry resume keep next further yes
        yeah yep no nope ok okay sure alright right correct exactly true agreed great good nice
        perfect excellent fine cool wonderful awesome lovely done well sorry welcome hi hello hey
        again back now much lot really so oh ah hm hmm
        danke bitte weiter ja nein gut genau super hallo vielen dank merci oui non bien bonjour
        suite continuez gracias sí si sigue bien hola grazie sì avanti ciao obrigado obrigada sim
        """
    )
)
"""Words that continue, thank, agree and greet."""
_GENERAL = frozenset(
    find_words(
        """
        work works worked working happen happens happened help helps helped mean means meant explain
        say says said tell told know known see seen think try tried trying get got getting make made
        take takes taking took long want need look looks give gave show let change changed repeat
        clarify elaborate summarize summarise finish finished ready possible sense detail details
        example examples short shorter longer simple simpler better worse different wrong
        """
    )
)
"""Words that say nothing without what `it` or `that` stands for."""
_POINTING = frozenset(
    find_words("it its this that these those they them there one ones he she him her")
)
_ANNOUNCED = re.compile(
    r"\b(?:following up|follow(?:ing)?[ -]up (?:on|to)|as (?:discussed|agreed|promised)|back to"
    r" (?:my|our|the)|any (?:news|updates?|progress) (?:on|about|with)|picking up where)\b",
    re.IGNORECASE,
)


def has_no_matter(text: str, stopwords: Collection[str]) -> bool:
    """Returns whether a text has no word of its own that tells what it is about.

    stopwords: words without a meaning of their own, in lower case
    """
    words = {word.lower() for word in find_words(text)}
    rest = {word for word in words if word not in stopwords} - _WITHOUT_MATTER
    if not words.isdisjoint(_POINTING):
        rest -= _GENERAL
    return bool(words) and not rest


def announces_follow_up(text: str) -> bool:
    """Returns whether a text says that it follows up on something, in whatever words."""
    return _ANNOUNCED.search(text) is not None


def only_open(is_open: Sequence[bool], scores: Sequence[float] = ()) -> int | None:
    """Returns the place of the only open session; None if there are none or several.

    scores: how well the text continues each session; a closed session must not be better than the
        open one
    """
    places = [place for place, one in enumerate(is_open) if one]
    if len(places) != 1 or (scores and scores[places[0]] < max(scores)):
        return None
    return places[0]
