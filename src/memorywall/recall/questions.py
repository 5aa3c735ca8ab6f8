"""Several questions in one query: each is searched for beside the whole; the results are merged.

The vector of two questions about two matters is near to neither. Questions about one matter are
better found together, and so is a message that also tells something.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from memorywall.recall.parsed_query import ParsedQuery
from memorywall.recall.ranking import Ranked
from memorywall.recall.similarity import containment, cosine
from memorywall.recall.weights import Weights

_MOST = 6
"""The most questions that are searched for separately."""
_QUESTION = re.compile(r"[^?？]+[?？][?？!]*")  # noqa: RUF001 - question marks of CJK texts
_STATEMENT = re.compile(r"[.!:;…。！：；](?:\s|$)")  # noqa: RUF001


class Question(NamedTuple):
    """A question of a query.

    is_earlier: whether it is on an earlier line than the last question
    """

    text: str
    is_earlier: bool = False


def questions_of(query: str) -> list[Question]:
    """Returns the questions of a query that consists of two to six questions and nothing else;
    else an empty list."""
    lines = [line for line in query.splitlines() if line.strip()]
    found = []
    for number, line in enumerate(lines, 1):
        # The pattern takes quadratic time for a line that does not end with a question.
        if not line.rstrip().rstrip("!").endswith(("?", "？")):  # noqa: RUF001
            return []
        texts = _QUESTION.findall(line)
        if "".join(texts).strip() != line.strip() or any(map(_has_statement, texts)):
            return []
        found += [Question(text.strip(), number < len(lines)) for text in texts]
    return found if 1 < len(found) <= _MOST else []


def _has_statement(text: str) -> bool:
    return _STATEMENT.search(text.rstrip("?？! ")) is not None  # noqa: RUF001


def by_matter(questions: Sequence[ParsedQuery], weights: Weights) -> list[list[int]]:
    """Returns the places of the questions about each matter, of which successive ones are near to
    each other; an empty list if all are about one matter, or if one of them has no words."""
    # In a search by meaning alone, no question has words.
    if len({bool(one.terms) for one in questions}) > 1:
        return []
    matters = [[0]]
    for place, (before, after) in enumerate(pairwise(questions), 1):
        if _nearness(before, after) < weights.one_matter:
            matters.append([])
        matters[-1].append(place)
    return matters if len(matters) > 1 else []


def _nearness(one: ParsedQuery, other: ParsedQuery) -> float:
    if one.vector is not None and other.vector is not None:
        return cosine(one.vector, other.vector)
    return containment({term for _, term in one.terms}, {term for _, term in other.terms})


def merge_rankings(rankings: Iterable[Iterable[Ranked]]) -> list[Ranked]:
    """Merges the results of several rankings; each document keeps its highest score, of equal ones
    that of the last ranking."""
    best: dict[str, Ranked] = {}
    for ranking in rankings:
        for one in ranking:
            known = best.get(one.document.entry_id)
            if known is None or one.score >= known.score:
                best[one.document.entry_id] = one
    return sorted(best.values(), key=lambda one: (-one.score, one.document.entry_id))
