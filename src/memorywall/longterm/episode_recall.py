"""Recall of episodes, which has a ranking of its own (memory wall 11.4.2, algorithm 11.5)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from memorywall.kinds.episodes import Episode, line_of_episode
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
from memorywall.records.episode_recall import PROFILES, EpisodeWeights
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
from memorywall.wire.entries import view
from memorywall.wire.episodes import (
    RecalledEpisodeResponse,
    RecallEpisodesRequest,
    RecallEpisodesResponse,
)

LEAST_SIMILARITY: Final = {SimilarityMethod.COSINE: 0.25, SimilarityMethod.CONTAINMENT: 0.2}
"""The least similarity of an episode by each method, whose values are not comparable."""
_CANDIDATES_FOR_ONE = 3
"""The candidates for each episode that is asked for."""
_UNASSESSED = {EntryOutcome.SUCCESS: 0.5, EntryOutcome.CORRECTION: 0.5}
"""The correctness of an episode that nobody has assessed, by its outcome; of a failure 0."""
_HELPED_OFTEN = math.log1p(32)
"""The logarithm from which more help has no effect."""
_DAY_MILLISECONDS = 24 * 3600 * 1000
_decode = msgspec.json.Decoder(dict[str, Any]).decode


async def recall_episodes(
    index: Index,
    transactions: OperationTransactions,
    asked: RecallEpisodesRequest,
    wanted: EntryFilter,
) -> RecallEpisodesResponse:
    """Returns the episodes that the caller may read with the highest scores, best first. One that
    does not fit into the budget is left out for one that does.

    wanted: the conditions of the request, without those of the outcome
    Raises ValidationError for a query that is blank or too long.
    """
    profile = PROFILES[asked.profile]
    weights = asked.weights or profile.weights
    spec = SearchSpec(
        query=asked.query,
        wanted=wanted,
        outcome=asked.outcome or profile.outcome,
        limit=min(MOST_HITS, asked.limit * _CANDIDATES_FOR_ONE),
    )
    now = transactions.service.now()
    await embed_latest(index, transactions.principal.tenant)
    judged: list[RecalledEpisodeResponse] = []
    entries: dict[str, Entry] = {}
    async with ranking(index, transactions, (spec,)) as (search,):
        if search.parsed is not None:
            found, uses = await transactions.read(_load, index, search)
            entries = {entry.id: entry for _, entry in found}
            terms = {term for _, term in search.parsed.terms}
            judge = partial(_judge, index, terms, weights, profile.half_life_days, asked, now)
            judged = await index.read_texts(
                entries.values(),
                lambda: [
                    one
                    for ranked, entry in found
                    if (one := judge(ranked, entry, uses.get(entry.id, NO_USES))) is not None
                ],
            )
    judged.sort(key=lambda one: (-one.score, one.entry.id))
    episodes = _within(judged, asked)
    transactions.service.record_access((entries[one.entry.id] for one in episodes), now)
    return RecallEpisodesResponse(
        episodes=episodes, tokens=sum(one.tokens for one in episodes), weights=weights
    )


async def _load(
    context: OperationContext, index: Index, search: RankedSearch
) -> tuple[Sequence[tuple[Ranked, Entry]], Mapping[str, UseCounts]]:
    """Returns the candidates, and what feedback says of them."""
    (found,), _ = await show(context, index, (search,))
    return found, await context.transaction.recall.uses([entry.id for _, entry in found])


def _similarity(index: Index, terms: set[str], ranked: Ranked, entry: Entry) -> Similarity:
    """The cosine of the query and the episode; without their vectors the containment of words."""
    cosine = ranked.similarity()
    if cosine is not None:
        return Similarity(cosine, SimilarityMethod.COSINE)
    own, _ = index.terms.of(read(entry, index.fields)[1].own)
    return Similarity(containment(terms, set(own)), SimilarityMethod.CONTAINMENT)


def _judge(
    index: Index,
    terms: set[str],
    weights: EpisodeWeights,
    half_life_days: float,
    asked: RecallEpisodesRequest,
    now: str,
    ranked: Ranked,
    entry: Entry,
    counts: UseCounts,
) -> RecalledEpisodeResponse | None:
    """Returns an episode with its score; None for one that is not similar enough.

    terms: those of the query
    """
    value = _decode(entry.value)
    episode = read_value(entry.kind, entry.kind_version, value)
    similarity = _similarity(index, terms, ranked, entry)
    least = asked.min_similarity
    least = LEAST_SIMILARITY[similarity.method] if least is None else least
    if not isinstance(episode, Episode) or similarity.value < least:
        return None
    stamp = episode.metadata.timestamp
    at = entry.created_at if stamp is None else parse_instant(stamp)
    age = max(0, instant_to_milliseconds(now) - instant_to_milliseconds(at))
    recency = 0.5 ** (age / _DAY_MILLISECONDS / half_life_days)
    correctness = episode.evaluation.correctness
    if correctness is None:
        correctness = _UNASSESSED.get(outcome_of(value, entry.kind) or EntryOutcome.FAILURE, 0.0)
    quality = correctness * (1 + (episode.evaluation.human_rating or 0.0))
    helped = max(0, counts.outcomes.helped - counts.outcomes.harmed)
    use = min(1.0, math.log1p(helped) / _HELPED_OFTEN)
    text = line_of_episode(episode)
    return RecalledEpisodeResponse(
        entry=view(entry),
        text=text,
        tokens=estimate(text),
        score=weights.similarity * similarity.value
        + weights.recency * recency
        + weights.outcome * quality
        + weights.use * use,
        similarity=similarity.value,
        method=similarity.method.value,
        recency=recency,
        outcome=quality,
        use=use,
    )


def _within(
    judged: Sequence[RecalledEpisodeResponse], asked: RecallEpisodesRequest
) -> list[RecalledEpisodeResponse]:
    """Returns the best episodes that fit into the budget together."""
    chosen: list[RecalledEpisodeResponse] = []
    left = math.inf if asked.budget_tokens is None else asked.budget_tokens
    for one in judged:
        if len(chosen) < asked.limit and one.tokens <= left:
            chosen.append(one)
            left -= one.tokens
    return chosen
