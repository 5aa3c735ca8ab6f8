"""Recall of episodes, which has a ranking of its own (memory wall 11.4.2, algorithm 11.5)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import msgspec

from memorywall.kinds.episodes import EPISODE, Episode, line_of_episode
from memorywall.kinds.registry import read as read_value
from memorywall.recall.document import read
from memorywall.recall.findable import embed_latest
from memorywall.recall.index import Index
from memorywall.recall.outcomes import outcome_of
from memorywall.recall.ranking import Ranked
from memorywall.recall.search import RankedSearch, ranking, show
from memorywall.recall.similarity import Similarity, SimilarityMethod, containment
from memorywall.records.clock import instant_to_milliseconds, parse_instant
from memorywall.records.entry import Entry
from memorywall.records.episode_recall import EpisodeProfile, EpisodeWeights
from memorywall.records.filter import EntryFilter
from memorywall.records.recall import (
    MOST_HITS,
    NO_USES,
    EntryOutcome,
    SearchSpec,
    UseCounts,
)
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.runner.operation_runner import OperationTransactions
from memorywall.tokens.estimate import estimate

LEAST_SIMILARITY: Final = {SimilarityMethod.COSINE: 0.25, SimilarityMethod.CONTAINMENT: 0.2}
"""The least similarity of an episode by each method, whose values are not comparable."""
_CANDIDATES_FOR_ONE = 3
"""The candidates for each episode that is asked for."""
_UNASSESSED = {EntryOutcome.SUCCESS: 0.5, EntryOutcome.CORRECTION: 0.5, EntryOutcome.FAILURE: 0.0}
"""The correctness of an episode that nobody has assessed, by its outcome."""
_HELPED_OFTEN = math.log1p(32)
"""The logarithm from which more help has no effect."""
_DAY_MILLISECONDS = 24 * 3600 * 1000
_decode = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(frozen=True, kw_only=True, slots=True)
class EpisodeQuery:
    """A query for episodes.

    wanted: the conditions that an episode must meet besides its kind
    weights: those of the score
    limit: the most episodes
    min_similarity: the least similarity; None for `LEAST_SIMILARITY`
    budget_tokens: the most tokens of the short forms; None for no limit
    """

    query: str
    wanted: EntryFilter
    profile: EpisodeProfile
    weights: EpisodeWeights
    outcome: EntryOutcome
    limit: int
    min_similarity: float | None = None
    budget_tokens: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoredEpisode:
    """An episode with its score.

    text, tokens: its short form, and the tokens of that
    score: the weighted sum of the parts
    similarity, method: the similarity to the query, and how it was measured
    recency: 0 to 1
    outcome: the correctness times 1 plus the rating of a person, 0 to 2
    use: how often feedback says that it helped, 0 to 1
    """

    entry: Entry
    text: str
    tokens: int
    score: float
    similarity: float
    method: SimilarityMethod
    recency: float
    outcome: float
    use: float


async def recall_episodes(
    index: Index, transactions: OperationTransactions, asked: EpisodeQuery
) -> list[ScoredEpisode]:
    """Returns the episodes that the caller may read with the highest scores, best first. One that
    does not fit into the budget is left out for one that does.

    Raises ValidationError for a query that is blank or too long.
    """
    spec = SearchSpec(
        query=asked.query,
        wanted=msgspec.structs.replace(asked.wanted, kind=EPISODE.name),
        outcome=asked.outcome,
        limit=min(MOST_HITS, asked.limit * _CANDIDATES_FOR_ONE),
    )
    now = transactions.service.now()
    await embed_latest(index, transactions.principal.tenant)
    async with ranking(index, transactions, (spec,)) as (search,):
        if search.parsed is None:
            return []
        found, uses = await transactions.read(_load, index, search)
        judge = partial(_judge_all, index, search, found, uses, asked, now)
        judged = await index.read_texts((entry for _, entry in found), judge)
    recalled = _within(judged, asked)
    transactions.service.record_access((one.entry for one in recalled), now)
    return recalled


async def _load(
    context: OperationContext, index: Index, search: RankedSearch
) -> tuple[Sequence[tuple[Ranked, Entry]], Mapping[str, UseCounts]]:
    """Returns the candidates, and what feedback says of them."""
    (found,), _ = await show(context, index, (search,))
    return found, await context.transaction.recall.uses([entry.id for _, entry in found])


def _judge_all(
    index: Index,
    search: RankedSearch,
    found: Sequence[tuple[Ranked, Entry]],
    uses: Mapping[str, UseCounts],
    asked: EpisodeQuery,
    now: str,
) -> list[ScoredEpisode]:
    """Returns the candidates that are similar enough, best first."""
    terms = set() if search.parsed is None else {term for _, term in search.parsed.terms}
    judged = []
    for ranked, entry in found:
        episode = read_value(entry.kind, entry.kind_version, _decode(entry.value))
        similarity = _similarity(index, terms, ranked, entry)
        least = asked.min_similarity
        least = LEAST_SIMILARITY[similarity.method] if least is None else least
        if isinstance(episode, Episode) and similarity.value >= least:
            counts = uses.get(entry.id, NO_USES)
            judged.append(_judge(entry, episode, similarity, counts, asked, now))
    return sorted(judged, key=lambda one: (-one.score, one.entry.id))


def _similarity(index: Index, terms: set[str], ranked: Ranked, entry: Entry) -> Similarity:
    """The cosine of the query and the episode; without their vectors the containment of words."""
    cosine = ranked.similarity()
    if cosine is not None:
        return Similarity(cosine, SimilarityMethod.COSINE)
    own, _ = index.terms.of(read(entry, index.fields)[1].own)
    return Similarity(containment(terms, set(own)), SimilarityMethod.CONTAINMENT)


def _judge(
    entry: Entry,
    episode: Episode,
    similarity: Similarity,
    counts: UseCounts,
    asked: EpisodeQuery,
    now: str,
) -> ScoredEpisode:
    at = entry.created_at
    if episode.metadata.timestamp is not None:
        at = parse_instant(episode.metadata.timestamp)
    age = max(0, instant_to_milliseconds(now) - instant_to_milliseconds(at))
    recency = 0.5 ** (age / _DAY_MILLISECONDS / asked.profile.half_life_days)
    correctness = episode.evaluation.correctness
    if correctness is None:
        outcome = outcome_of(_decode(entry.value), entry.kind)
        correctness = 0.0 if outcome is None else _UNASSESSED[outcome]
    quality = correctness * (1 + (episode.evaluation.human_rating or 0.0))
    helped = max(0, counts.outcomes.helped - counts.outcomes.harmed)
    use = min(1.0, math.log1p(helped) / _HELPED_OFTEN)
    weights, text = asked.weights, line_of_episode(episode)
    return ScoredEpisode(
        entry=entry,
        text=text,
        tokens=estimate(text),
        score=weights.similarity * similarity.value
        + weights.recency * recency
        + weights.outcome * quality
        + weights.use * use,
        similarity=similarity.value,
        method=similarity.method,
        recency=recency,
        outcome=quality,
        use=use,
    )


def _within(judged: Sequence[ScoredEpisode], asked: EpisodeQuery) -> list[ScoredEpisode]:
    """Returns the best episodes that fit into the budget together."""
    chosen: list[ScoredEpisode] = []
    left = math.inf if asked.budget_tokens is None else asked.budget_tokens
    for one in judged:
        if len(chosen) == asked.limit:
            break
        if one.tokens <= left:
            chosen.append(one)
            left -= one.tokens
    return chosen
