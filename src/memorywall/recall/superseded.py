"""Of two notes that say nearly the same, the newer one stands before the older one.

A note is an entry outside of conversations whose value gives a date. Notes of different days with
nearly the same text are mostly versions of one fact, and the newest version holds. Other documents
that resemble each other are not compared: a page that is newer is not therefore right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memorywall.recall.ranking import Ranked
from memorywall.recall.weights import Weights

_COMPARED = 40
"""The most of the best results that are compared with each other."""


def newer_first(ranked: list[Ranked], weights: Weights) -> list[Ranked]:
    """Returns results in the order of their scores, of which older versions of notes lose a part.

    ranked: the results, best first. Only these decide: what the caller may not read or does not
        want supersedes nothing.
    """
    notes = [one for one in ranked[:_COMPARED] if one.document.note_day is not None]
    older = set(_older(notes, weights)) if len(notes) > 1 else set()
    if not older:
        return ranked
    changed = [
        one._replace(score=one.score * weights.superseded, superseded=weights.superseded)
        if one.document.entry_id in older
        else one
        for one in ranked
    ]
    changed.sort(key=lambda one: (-one.score, one.document.entry_id))
    return changed


def _older(notes: Sequence[Ranked], weights: Weights) -> Iterator[str]:
    """Returns the ids of the notes that a newer one among them supersedes."""
    # Only a search with vectors comes here. The product of numpy would start threads.
    import numpy as np
    import simsimd

    vectors = [one.vector() for one in notes]
    rows = [(one, vector) for one, vector in zip(notes, vectors, strict=True) if vector is not None]
    if len(rows) < 2:
        return
    matrix = np.stack([vector for _, vector in rows])
    cosines = np.asarray(simsimd.cdist(matrix, matrix, metric="dot"))
    for place, other in np.argwhere(cosines >= weights.near_copy).tolist():
        one, newer = rows[place][0], rows[other][0]
        most = newer.candidate.lexical + weights.superseded_words
        if _age(newer) > _age(one) and one.candidate.lexical <= most:
            yield one.document.entry_id


def _age(one: Ranked) -> tuple[object, str]:
    return one.document.note_day, one.document.entry_id
