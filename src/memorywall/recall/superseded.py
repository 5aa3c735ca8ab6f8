"""Of notes that say another value of the same matter, the newest stands first.

A note is an entry outside of conversations whose value gives a date. Notes of different days with
nearly the same text are mostly versions of one fact, and the newest version holds. So are short
notes that are near in meaning and have the same words of the query, such as a name. Other documents
that resemble each other are not compared: a page that is newer is not therefore right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from memorywall.recall.ranking import Ranked
from memorywall.recall.weights import Weights

_COMPARED = 40
"""The most of the best results that are compared with each other."""
_SHORT = 20
"""The most words of a note that states one value. Longer notes that are near add to each other."""
_SAME_WORDS = 0.6
"""The least share of the query's words in the older note that the newer one has, too."""
_SAME_MEANING = 0.7
"""The least share of the older note's meaning for the query that the newer one has, too."""
_BEFORE = 1.0001
"""The factor by which the newest note stands before an older one."""


class _Note(NamedTuple):
    """A note with its vector and the words of the query that it contains."""

    ranked: Ranked
    vector: Any
    words: dict[str, float]
    length: int

    @property
    def age(self) -> tuple[object, str]:
        document = self.ranked.document
        return document.note_day, document.entry_id


def newer_first(ranked: list[Ranked], weights: Weights) -> list[Ranked]:
    """Returns results in the order of their scores, of which older versions of notes lose a part.
    The newest one of short notes on a matter stands before the others.

    ranked: the results, best first. Only these decide: what the caller may not read or does not
        want supersedes nothing.
    """
    notes = [note for one in ranked[:_COMPARED] if (note := _note(one)) is not None]
    if len(notes) < 2:
        return ranked
    older, scores = _judge(notes, weights)
    if not older:
        return ranked
    changed = []
    for one in ranked:
        entry_id = one.document.entry_id
        factor = weights.superseded if entry_id in older else 1.0
        score = max(one.score * factor, scores.get(entry_id, 0.0))
        changed.append(one._replace(score=score, superseded=score / one.score if one.score else 1))
    changed.sort(key=lambda one: (-one.score, one.document.entry_id))
    return changed


def _note(one: Ranked) -> _Note | None:
    """A note with a vector; None for any other document."""
    vector = one.vector() if one.document.note_day is not None else None
    if vector is None:
        return None
    contained = {term.text: term.weight for term in one.parsed.weighted if one.contains(term, ())}
    return _Note(one, vector, contained, one.shard.words.own_length(one.candidate.document))


def _judge(notes: Sequence[_Note], weights: Weights) -> tuple[set[str], dict[str, float]]:
    """Returns the ids of the notes that a newer one supersedes, and the least scores of the newest
    notes on a matter."""
    # Only a search with vectors comes here. The product of numpy would start threads.
    import numpy as np
    import simsimd

    matrix = np.stack([note.vector for note in notes])
    cosines = np.asarray(simsimd.cdist(matrix, matrix, metric="dot"))
    older: set[str] = set()
    scores: dict[str, float] = {}
    for place, other in np.argwhere(cosines >= weights.same_matter).tolist():
        one, newer = notes[place], notes[other]
        if newer.age <= one.age:
            continue
        if cosines[place, other] >= weights.near_copy:
            most = newer.ranked.candidate.lexical + weights.superseded_words
            if one.ranked.candidate.lexical <= most:
                older.add(one.ranked.document.entry_id)
        elif _is_other_value(one, newer):
            older.add(one.ranked.document.entry_id)
            newest = newer.ranked.document.entry_id
            scores[newest] = max(scores.get(newest, 0.0), one.ranked.score * _BEFORE)
    # A note that was superseded itself stands before none.
    return older, {entry_id: one for entry_id, one in scores.items() if entry_id not in older}


def _is_other_value(one: _Note, newer: _Note) -> bool:
    """Whether two notes that are near in meaning are short and have the same words of the query."""
    if max(one.length, newer.length) > _SHORT or not one.words:
        return False
    shared = sum(weight for text, weight in one.words.items() if text in newer.words)
    return (
        shared >= _SAME_WORDS * sum(one.words.values())
        and newer.ranked.candidate.dense >= _SAME_MEANING * one.ranked.candidate.dense
    )
