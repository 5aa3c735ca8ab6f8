"""Corrections of a user replace what they correct."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from memorywall.summaries.carriers import Carriers
from memorywall.summaries.statements import Statement
from memorywall.summaries.words import content_words

_REJECTED = re.compile(
    r"\b(?:not|never|instead of|rather than|wrong(?:ly)?|from)\b([^,;.!?]*)", re.IGNORECASE
)
_UNIT = re.compile(r"\d[\d.,]*\s+([^\W\d_]{2,})")
_ENOUGH = 2
_NEVER = frozenset({"problem", "chitchat"})
_RICH = frozenset({"constraint", "conditional", "negation", "decision", "promise"})
"""Classes whose statement says more than its value: most of its words must be repeated."""


def apply_corrections(statements: Sequence[Statement], start: int = 0) -> list[Statement]:
    """Marks what a later correction of the user replaces.

    start: the first statement whose corrections have not been applied yet

    A statement is replaced when it carries nothing but what the correction rejects or restates. One
    that carries more keeps its class, as the correction stands after it.
    """
    current = list(statements)
    for correction in statements[start:]:
        if correction.category != "correction":
            continue
        target = _target(correction, current[: correction.place])
        if target is not None:
            current[target.place] = replace(target, superseded=True)
    return current


def _target(correction: Statement, earlier: Sequence[Statement]) -> Statement | None:
    """The statement that a correction is about: that with most in common, the latest of equals."""
    rejected = " ".join(_REJECTED.findall(correction.text)).lower()
    words = content_words(correction.text)
    best: Statement | None = None
    best_score = 0
    for one in earlier:
        if one.superseded or not one.trusted or one.category in _NEVER:
            continue
        score = _score(correction, one, words, rejected)
        if score >= max(best_score, _ENOUGH):
            best, best_score = one, score
    if best is None or not _may_replace(best, correction, rejected):
        return None
    return best


def _score(correction: Statement, one: Statement, words: frozenset[str], rejected: str) -> int:
    """Returns a score of the values that two statements share; 0 if no values differ."""
    named = sum(2 for value in one.carried.values if _has_word(rejected, value))
    other = _other_values(one.carried, correction.carried)
    if not named and not other:
        return 0
    common, own = words & content_words(one.text), content_words(one.text)
    if one.category in _RICH and 2 * len(common) < len(own):
        return 0
    units = set(_UNIT.findall(one.text.lower())) & set(_UNIT.findall(correction.text.lower()))
    return named + 2 * len(units) + len(common) + (2 if common == own else 0)


def _other_values(old: Carriers, new: Carriers) -> bool:
    """Whether both have a value of one sort, and not the same."""
    sorts = (
        (old.numbers, new.numbers),
        (old.dates, new.dates),
        (old.identifiers, new.identifiers),
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
