"""The figures of the pipeline. Each lies on a plateau: half as much or twice does little harm.

They were found by measuring; docs/recall.md says what each one adds.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Weights:
    """How much each signal counts.

    saturation, length_share: BM25's k1 and b
    previous, previous_question, next, aside: how much a term counts that stands in the document
        before, in one before that asks, in the one after, or in what names and dates a document,
        where one in its own text counts 1
    common, common_from: a term tells nothing that more than this share of the documents has, and
        more than so many
    coverage: by how much at most a document gains that has all terms of the query
    date: for a part of a date that is named, such as the month, times how rare that is
    vector_previous, vector_next: how much of its neighbours' meaning a document has
    lexical, dense: how words and meaning share a score between them
    question: what a document that asks something keeps of both
    author: for what the author who is named said
    thread: times the mean of the two best of a thread
    prior: by how much recency, outcome and use may raise or lower a score together
    """

    saturation: float = 1.2
    length_share: float = 0.5
    previous: float = 0.5
    previous_question: float = 0.75
    next: float = 0.25
    aside: float = 0.5
    common: float = 0.2
    common_from: int = 100
    coverage: float = 0.5
    date: float = 1.5
    vector_previous: float = 0.3
    vector_next: float = 0.15
    lexical: float = 1.0
    dense: float = 1.0
    question: float = 0.8
    author: float = 0.3
    thread: float = 0.3
    prior: float = 0.1


DEFAULT_WEIGHTS = Weights()
