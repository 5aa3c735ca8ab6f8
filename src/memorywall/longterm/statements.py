"""Whether two texts say the same, or the opposite.

Both are about words, so that they hold without a model. A model only adds that other words may say
the same; it finds opposites and other numbers similar.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from memorywall.recall.analyzer import Analyzer

_WORDS = re.compile(r"[^\W_]+(?:['\u2019][^\W\d_]+)?")
_PHRASES = re.compile(
    r"\bno longer\b|\bnot any ?more\b|\bno more\b|\bnicht mehr\b|\bkeine?[nmrs]? (\w+) mehr\b"
    r"|\bya no\b|\bnon (\w+) più\b|\bnão (\w+) mais\b|\bn['\u2019e] ?(\w+) plus\b|больше не",
    re.IGNORECASE,
)
"""Negations of several words."""
_CHARACTERS = re.compile("不再|不|没|無|无|ない|ません|않|못")
"""Negations in scripts whose words are not separated."""
_LIST = """
not no never nor without cannot neither none nicht kein keine keinen keiner nie niemals ohne pas
jamais sans aucun aucune ne non mai senza nunca jamás sin nada não sem niet geen nooit zonder не нет
никогда без ani nie bez ikke aldri inte aldrig ei لا ليس لن بدون नहीं मत
"""
_NEGATIONS: Final = frozenset(_LIST.split())
_SHARE = 0.9
"""The share of the words of a text that another text has if they are about the same."""


class ComparedStatement(NamedTuple):
    """A text as it is compared.

    terms: its words without negations, as a search knows them
    figures: its numbers and the words that contain digits
    names: its words that begin with a capital, in lower case
    is_negated: whether it has an odd number of negations
    """

    terms: frozenset[str]
    figures: frozenset[str]
    names: frozenset[str]
    is_negated: bool


def read_statement(text: str, analyzer: Analyzer) -> ComparedStatement:
    """Returns a text as it is compared."""
    text, count = _CHARACTERS.subn("", text)
    text, phrases = _PHRASES.subn(r" \1 \2 \3 \4 ", text)
    words = _WORDS.findall(text)
    kept = " ".join(one for one in words if not _negates(one.lower()))
    count += phrases + sum(_negates(one.lower()) for one in words)
    return ComparedStatement(
        terms=frozenset(analyzer.of(kept)[0]),
        figures=frozenset(one.lower() for one in words if any(map(str.isdigit, one))),
        names=frozenset(one.lower() for one in words if one[0].isupper()),
        is_negated=count % 2 == 1,
    )


def _negates(word: str) -> bool:
    return word in _NEGATIONS or word.endswith(("n't", "n\u2019t"))


def coverage(new: ComparedStatement, old: ComparedStatement) -> float:
    """Returns the share of the words of a statement that another one has, 0 to 1."""
    return len(new.terms & old.terms) / len(new.terms) if new.terms else 0.0


def says_same(new: ComparedStatement, old: ComparedStatement, *, is_near: bool) -> bool:
    """Returns whether the old statement says all that the new one says.

    is_near: whether a model finds their meaning the same; without one their words decide
    """
    if says_other(new, old):
        return False
    if not new.names <= old.terms | old.names | old.figures | new.terms & old.terms:
        return False
    return is_near or coverage(new, old) >= _SHARE


def says_other(new: ComparedStatement, old: ComparedStatement) -> bool:
    """Returns whether a statement has another sign or other figures than one in similar words, so
    that their similarity says nothing."""
    return new.is_negated != old.is_negated or not new.figures <= old.figures


def contradicts(new: ComparedStatement, old: ComparedStatement) -> bool:
    """Returns whether one statement is the negation of the other."""
    if new.is_negated == old.is_negated or new.figures != old.figures:
        return False
    return coverage(new, old) >= _SHARE and coverage(old, new) >= _SHARE
