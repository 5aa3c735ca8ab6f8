"""The weights of the signals. Each weight is on a plateau: half or double values change little.

The weights are measured; docs/recall.md lists the contribution of each signal.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Weights:
    """The weights of the signals.

    saturation, length_share: k1 and b of BM25
    previous, previous_question, next, aside: the weight of a term in the previous document, in a
        previous document that is a question, in the next document, and in the label; a term in the
        own text has weight 1
    common, common_from: a term is ignored if more than this share of the documents contains it, and
        more than this number
    coverage: the largest bonus for a document with all terms of the query
    date: the weight of a part of a date, multiplied by its rarity
    vector_previous, vector_next: the weights of the neighbours' vectors
    context, vector_context: the weights of a term that occurs only in the text before the query,
        and of the vector of that text
    corrected: the weight of a term in place of one that is in no text and differs by one letter
    compound: the share of a compound for a term that is a part of it, and of a part for a compound
    alias: the share of another name of a thing for the words of its name in the query
    lexical, dense: the weights of words and meaning
    code: the factor of the weight of meaning where most documents are programs, which share few
        words with a query in prose
    question: the factor of words and meaning for a question between people
    assistant: that for a message of an assistant, unless the query asks what it said
    author: the bonus for documents of the named author
    thread: the factor of the mean of the two best documents of a thread
    day: that factor for notes of one day, which have no thread
    near_copy: the cosine from which two notes say nearly the same
    same_matter: the cosine from which two short notes with the same words of the query are about
        one matter
    superseded: the factor of the score of a note of which a newer one says nearly the same
    superseded_words: how much more of the score by words an older note may have
    series: the factor of a score for each better result of the same session, in a query for an
        order or a development
    one_matter: the cosine (without vectors, the containment of words) from which two questions of a
        query are about one matter
    earlier_question: the factor of scores for a question on an earlier line than the last one,
        which may be an earlier message
    passage: the share of the best passage in the meaning of a long text, if it is nearer than the
        whole text
    graph: the bonus for a document that a name or an edge links to the best result
    provenance: the relative change of that bonus for a fact with full trust instead of none; a fact
        that an agent wrote with full confidence has the whole bonus
    prior: the largest relative change of a score by recency, outcome and use
    """

    saturation: float = 1.2
    length_share: float = 0.5
    previous: float = 0.5
    previous_question: float = 0.75
    next: float = 0.25
    aside: float = 0.5
    common: float = 0.5
    common_from: int = 100
    coverage: float = 0.5
    date: float = 1.5
    vector_previous: float = 0.3
    vector_next: float = 0.15
    context: float = 0.5
    vector_context: float = 0.75
    corrected: float = 0.7
    compound: float = 0.5
    alias: float = 0.7
    lexical: float = 1.0
    dense: float = 1.3
    code: float = 3.0
    question: float = 0.8
    assistant: float = 0.5
    author: float = 0.35
    thread: float = 0.25
    day: float = 0.25
    near_copy: float = 0.85
    same_matter: float = 0.68
    superseded: float = 0.8
    superseded_words: float = 0.05
    series: float = 0.85
    one_matter: float = 0.3
    earlier_question: float = 0.7
    passage: float = 0.5
    graph: float = 0.4
    provenance: float = 0.25
    prior: float = 0.1


DEFAULT_WEIGHTS = Weights()
