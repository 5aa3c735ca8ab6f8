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


def apply_corrections(statements: Sequence[Statement]) -> list[Statement]:
    """Marks what a later correction of the user replaces.

    A statement is replaced when it carries nothing but what the correction rejects or restates. One
    that carries more keeps its class, as the correction stands after it.
    """
    current = list(statements)
    for correction in statements:
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
        if one.superseded or not one.trusted or one.category in {"problem", "chitchat"}:
            continue
        score = _score(correction, one, words, rejected)
        if score >= max(best_score, _ENOUGH):
            best, best_score = one, score
    if best is None or not _may_replace(best, correction, rejected):
        return None
    return best


def _score(correction: Statement, one: Statement, words: frozenset[str], rejected: str) -> int:
    """What two statements have in common; 0 if they have no values that differ."""
    named = sum(2 for value in one.carried.values if value in rejected)
    other = _other_values(one.carried, correction.carried)
    if not named and not other:
        return 0
    units = set(_UNIT.findall(one.text.lower())) & set(_UNIT.findall(correction.text.lower()))
    return named + 2 * len(units) + len(words & content_words(one.text))


def _other_values(old: Carriers, new: Carriers) -> bool:
    """Whether both have a value of one sort, and not the same."""
    sorts = (
        (old.numbers, new.numbers),
        (old.dates, new.dates),
        (old.identifiers, new.identifiers),
        (old.names, new.names),
    )
    return any(before and after and set(before) != set(after) for before, after in sorts)


def _may_replace(old: Statement, correction: Statement, rejected: str) -> bool:
    """Whether a statement loses nothing when its correction stands for it."""
    left = {
        value for value in old.carried.values - correction.carried.values if value not in rejected
    }
    replaced = 0
    for before, after in (
        (old.carried.dates, correction.carried.dates),
        (old.carried.identifiers, correction.carried.identifiers),
        (old.carried.names, correction.carried.names),
    ):
        if after:
            left -= {value.lower() for value in before}
            replaced += len(before)
    if correction.carried.numbers and len(left) <= 2:
        left -= {value.lower() for value in (*old.carried.numbers, *old.carried.amounts)}
    return not left
