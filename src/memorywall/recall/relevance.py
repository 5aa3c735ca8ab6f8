"""The relevance of results: a probability, which unlike a score depends on no other result.

Scores order the results of one search and are scaled to its best result, so the best of ten
unsuitable results has a high one. Relevance comes from two logistic models of few signals, one for
a result and one for a reply. `python -m benchmarks.recall.relevance` calibrates them on questions
with known answers, and on questions that belong to another collection; docs/recall.md has the
figures, each of which is of a set that was left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from memorywall.recall.analyzer import Analyzer
from memorywall.recall.named_things import Aboutness, aboutness_of, names_in
from memorywall.recall.parsed_query import ShardQuery
from memorywall.recall.ranking import Ranked
from memorywall.records.entry import Entry
from memorywall.records.recall import Evidence, SearchSpec

ANSWERED: Final = {True: 0.22, False: 0.3}
"""The relevance from which a reply counts as an answer, by whether meanings were compared. By
models that were fitted on other sets, it loses 1.9 points of R@10 in the mean of seven sets with
meanings, and 2.8 of six sets without."""
_JUDGED = 10
"""The most results of a reply that its relevance depends on."""


_LEAST_WITH_NAME = {
    Aboutness.THING: 0.0,
    Aboutness.MENTION: 0.3,
    Aboutness.LINKED: 0.1,
    Aboutness.NOTHING: 2.0,
}
"""The least relevance of a result of a strict search whose query names things."""


class _HitModel(NamedTuple):
    """The weights of the signals of a result. `of_length` are products with the length of the
    query, because in a long query each word and the meaning say less."""

    constant: float
    words: float
    words_nearby: float
    length: float
    author: float
    words_nearby_of_length: float
    meaning: float = 0.0
    meaning_of_length: float = 0.0


class _ReplyModel(NamedTuple):
    """The weights of the best signals among the results of a reply.

    nobody: that the results have named authors of whom the query names none
    absent: the share of the query's words that are in no text
    unknown: the share of the names in the query that are in no text
    """

    constant: float
    words: float
    words_nearby: float
    author: float
    nobody: float
    absent: float
    unknown: float
    meaning: float = 0.0


_HITS = {
    True: _HitModel(-4.91, 1.17, -1.39, -0.35, -0.38, 5.15, 7.77, -2.14),
    False: _HitModel(-3.55, 5.29, -6.01, -0.45, 0.05, 10.59),
}
"""By whether meanings were compared."""
_REPLIES = {
    True: _ReplyModel(-4.87, 4.26, -1.26, 4.33, -0.6, -2.15, -2.07, 14.48),
    False: _ReplyModel(1.02, 7.75, -3.1, 3.36, -0.78, -2.66, -2.58),
}


class JudgedResult(NamedTuple):
    """A result with its relevance and what that comes from."""

    ranked: Ranked
    entry: Entry
    relevance: float
    evidence: Evidence


class JudgedReply(NamedTuple):
    """The results that a search shows, and the relevance of the whole."""

    kept: list[JudgedResult]
    relevance: float
    answered: bool


def judge(
    spec: SearchSpec,
    parts: Sequence[ShardQuery],
    found: Sequence[tuple[Ranked, Entry]],
    terms: Analyzer,
) -> JudgedReply:
    """Judges the best results of a search, and leaves out those that it does not ask for.

    parts: the searched shards, which must not change meanwhile
    found: the readable results, best first
    """
    judged = []
    for ranked, entry in found:
        evidence = evidence_of(ranked)
        judged.append(JudgedResult(ranked, entry, relevance_of(evidence, ranked), evidence))
    relevance = relevance_of_reply(judged)
    by_meaning = any(one.evidence.meaning is not None for one in judged[:_JUDGED])
    answered = relevance >= ANSWERED[by_meaning]
    kept = [one for one in judged if one.relevance >= spec.min_relevance]
    names = names_in(spec.query, parts, terms) if spec.strict and kept else set()
    if names:
        about = aboutness_of([one.ranked for one in kept], names, terms)
        kept = [
            one
            for one, how in zip(kept, about, strict=True)
            if one.relevance >= _LEAST_WITH_NAME[how]
        ]
        answered = bool(kept)
    elif (spec.strict or spec.only_answers) and not answered:
        kept = []
    return JudgedReply(kept, relevance, answered)


def evidence_of(ranked: Ranked) -> Evidence:
    """Returns what speaks for a result."""
    links, number = ranked.shard.links, ranked.candidate.document
    near = (links.previous[number], links.next[number])
    terms = ranked.parsed.weighted
    own, nearby, total = 0.0, 0.0, sum(term.weight for term in terms) or 1.0
    for term in terms:
        # Each search asks this for each of its hits, so neighbours are asked only for the rest.
        if ranked.contains(term, ()):
            own += term.weight
        elif ranked.contains(term, near):
            nearby += term.weight
    return Evidence(
        words=own / total,
        words_nearby=(own + nearby) / total,
        author=ranked.candidate.author > 0,
        meaning=ranked.similarity(),
    )


def relevance_of(evidence: Evidence, ranked: Ranked) -> float:
    """Returns the probability that a result answers its query, from 0 to 1."""
    by_meaning = evidence.meaning is not None
    model, meaning = _HITS[by_meaning], evidence.meaning or 0.0
    length = math.log1p(len(ranked.parsed.weighted)) / 3
    return _probability(
        model.constant
        + model.words * evidence.words
        + model.words_nearby * evidence.words_nearby
        + model.length * length
        + model.author * evidence.author
        + model.words_nearby_of_length * evidence.words_nearby * length
        + model.meaning * meaning
        + model.meaning_of_length * meaning * length
    )


def relevance_of_reply(found: Sequence[JudgedResult]) -> float:
    """Returns the probability that one of the results answers the query, from 0 to 1; 0 without
    results.

    found: the results, best first
    """
    if not found:
        return 0.0
    best = [one.evidence for one in found[:_JUDGED]]
    meanings = [one.meaning for one in best if one.meaning is not None]
    model = _REPLIES[bool(meanings)]
    author = any(one.author for one in best)
    has_people = any(one.ranked.document.is_named for one in found[:_JUDGED])
    return _probability(
        model.constant
        + model.words * _best(one.words for one in best)
        + model.words_nearby * _best(one.words_nearby for one in best)
        + model.author * author
        + model.nobody * (has_people and not author)
        + model.absent * min(one.ranked.parsed.absent for one in found)
        + model.unknown * min(one.ranked.parsed.unknown for one in found)
        + model.meaning * _best(meanings)
    )


def _best(values: Iterable[float]) -> float:
    return max(values, default=0.0)


def _probability(logit: float) -> float:
    return 1 / (1 + math.exp(-logit))
