"""Corrections of a user replace what they correct."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from memorywall.summaries.carriers import Carriers, carriers
from memorywall.summaries.statements import Statement
from memorywall.summaries.words import content_words

_REJECTED = re.compile(
    r"\b(?:not|never|instead of|rather than|wrong(?:ly)?|from|i (?:said|wrote|told you|gave you))\b"
    r"([^,;.!?]*?)(?=\bbut\b|[,;.!?]|$)",
    re.IGNORECASE,
)
_ELIDED = "[…]"
"""Stands for a value that was corrected, in a statement that carries more."""
_NEAR = 3
"""The words before and after a value that tell what it is the value of."""
_WORD = re.compile(r"\w+")
_UNIT = re.compile(r"\d[\d.,]*\s+([^\W\d_]{2,})")
_ENOUGH = 2
_RICH = frozenset({"constraint", "conditional", "negation", "decision", "promise"})
"""Classes whose statement says more than its value: most of its words must be repeated."""


def apply_corrections(statements: Sequence[Statement], start: int = 0) -> list[Statement]:
    """Marks what a later correction of the user replaces.

    start: the first statement whose corrections have not been applied yet

    A statement is replaced when it carries nothing but what the correction rejects or restates. Of
    one that carries more, the values that the correction is about are elided.
    """
    current = list(statements)
    for correction in statements[start:]:
        if correction.category != "correction":
            continue
        target = _target(correction, current[: correction.place])
        if target is not None:
            current[target.place] = _corrected(target, correction)
    return current


def _corrected(old: Statement, correction: Statement) -> Statement:
    """Returns a statement without the value that a correction replaces."""
    rejected = _rejected(correction)
    words, own = content_words(correction.text), content_words(old.text)
    says_more = old.category in _RICH and 2 * len(words & own) < len(own)
    says_more = says_more or old.category == "problem"
    if not says_more and _may_replace(old, correction, rejected):
        return replace(old, superseded=True)
    text = old.text
    for value in sorted(_wrong_values(old, correction, rejected), key=len, reverse=True):
        text = re.sub(rf"(?<![\w-]){re.escape(value)}(?![\w-])", _ELIDED, text)
    return old if text == old.text else replace(old, text=text, carried=carriers(text), tokens=0)


def _rejected(correction: Statement) -> str:
    """Returns what a correction says that is wrong."""
    return " ".join(_REJECTED.findall(correction.text)).lower()


def _wrong_values(old: Statement, new: Statement, rejected: str) -> set[str]:
    """Returns the values of a statement that a correction replaces: those that it rejects, those
    that have another value at the same place, and the only one of a sort."""
    wrong: set[str] = set()
    stated = _REJECTED.sub("", new.text).lower()
    for name, before, after in zip(Carriers._fields, old.carried, new.carried, strict=True):
        left, other = set(before) - set(after), set(after) - set(before)
        found = {
            one for one in before
            if _has_word(rejected, one.lower()) and not _has_word(stated, one.lower())
        }  # fmt: skip
        found = found or {
            one for one in left if any(_has_place(old.text, one, new.text, two) for two in other)
        }
        if not found and name != "names" and len(left) == len(other) == 1:
            found = left
        wrong |= found
    return wrong


def _has_place(old: str, value: str, new: str, other: str) -> bool:
    """Returns whether the words around two values say that they are values of the same thing."""
    (before, after), (earlier, later) = _near(old, value), _near(new, other)
    common = [
        one
        for pairs in (zip(before, earlier, strict=False), zip(after, later, strict=False))
        for one, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)
    ]
    return any(map(content_words, common)) or value.split()[1:] == other.split()[1:] != []


def _near(text: str, value: str) -> tuple[list[str], list[str]]:
    """Returns the words before a value, the nearest first, and those after it."""
    before, _, after = text.lower().partition(value.lower())
    return _WORD.findall(before)[::-1][:_NEAR], _WORD.findall(after)[:_NEAR]


def _target(correction: Statement, earlier: Sequence[Statement]) -> Statement | None:
    """The statement that a correction is about: that with most in common, the latest of equals."""
    rejected = _rejected(correction)
    words = content_words(correction.text)
    best: Statement | None = None
    best_score = 0
    for one in earlier:
        if one.superseded or not one.trusted or one.category == "chitchat":
            continue
        score = _score(correction, one, words, rejected)
        if score >= max(best_score, _ENOUGH):
            best, best_score = one, score
    return best


def _score(correction: Statement, one: Statement, words: frozenset[str], rejected: str) -> int:
    """Returns a score of the values that two statements share; 0 if no values differ."""
    named = sum(2 for value in one.carried.values if _has_word(rejected, value))
    other = _other_values(one.carried, correction.carried)
    if not named and not other:
        return 0
    common, own = words & content_words(one.text), content_words(one.text)
    places = 0
    if one.role == "user":
        for before, after in zip(one.carried, correction.carried, strict=True):
            left, new = set(before) - set(after), set(after) - set(before)
            pairs = ((a, b) for a in left for b in new)
            places += any(_has_place(one.text, a, correction.text, b) for a, b in pairs)
    if one.category in _RICH and 2 * len(common) < len(own) and not named and not places:
        return 0
    units = set(_UNIT.findall(one.text.lower())) & set(_UNIT.findall(correction.text.lower()))
    is_bare = one.role == "user" and not words - content_words(" ".join(correction.carried.values))
    whole = 2 if common == own else 0
    shared = 2 * len(one.carried.values & correction.carried.values) if one.role == "user" else 0
    return named + shared + 2 * len(units) + len(common) + 3 * places + max(whole, 2 * is_bare)


def _other_values(old: Carriers, new: Carriers) -> bool:
    """Whether both have a value of one sort, and not the same."""
    sorts = (
        (old.numbers, new.numbers),
        (old.dates, new.dates),
        (old.identifiers, new.identifiers),
        (old.words, new.words),
        (old.names, new.names),
    )
    return any(before and after and set(before) != set(after) for before, after in sorts)


def _may_replace(old: Statement, correction: Statement, rejected: str) -> bool:
    """Whether a statement loses nothing when its correction stands for it."""
    before, after = old.carried, correction.carried
    left = {value for value in before.values - after.values if not _has_word(rejected, value)}
    if after.dates:
        left -= {value.lower() for value in before.dates}
    if after.identifiers:
        left -= {value.lower() for value in before.identifiers}
    if after.numbers:
        left -= {value.lower() for value in (*before.amounts, *before.numbers)}
        kept = {value for value in before.numbers if value in after.numbers}
        # Only one of several numbers may be the wrong one.
        if len(set(before.numbers) - kept) > len(set(after.numbers) - kept):
            return False
    return not any(not _consists_of(value, before, after) for value in left)


def _consists_of(value: str, before: Carriers, after: Carriers) -> bool:
    """Whether a value is a form of a number that was replaced, such as `Postgres 13`."""
    digits = [number for number in before.numbers if number in value]
    return bool(digits) and bool(after.numbers)


def _has_word(text: str, value: str) -> bool:
    return bool(re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text))
