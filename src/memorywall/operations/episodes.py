"""Recall of episodes, and the profile of a person."""

from __future__ import annotations

from memorywall.longterm import episode_recall
from memorywall.longterm.episode_recall import EpisodeQuery, ScoredEpisode
from memorywall.longterm.profiles import make_profile
from memorywall.operations.binding import multi_transaction_operation, operation
from memorywall.operations.filters import whole_or_prefix
from memorywall.recall.index import index_of
from memorywall.records.copier import copier
from memorywall.records.episode_recall import PROFILES
from memorywall.records.filter import EntryFilter
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.service.runner.operation_runner import OperationTransactions
from memorywall.wire.entries import view
from memorywall.wire.episodes import (
    ProfileResponse,
    RecalledEpisodeResponse,
    RecallEpisodesRequest,
    RecallEpisodesResponse,
)

_query = copier(
    RecallEpisodesRequest, EpisodeQuery, given=["wanted", "profile", "weights", "outcome"]
)
_episode = copier(
    ScoredEpisode,
    RecalledEpisodeResponse,
    entry=lambda one: view(one.entry),
    method=lambda one: one.method.value,
)


@multi_transaction_operation("recall_episodes")
async def recall_episodes(transactions: OperationTransactions) -> RecallEpisodesResponse:
    asked: RecallEpisodesRequest = transactions.call.body
    profile = PROFILES[asked.profile]
    weights = asked.weights or profile.weights
    namespace, prefix = whole_or_prefix(asked.namespace)
    wanted = EntryFilter(
        tenant=transactions.principal.tenant,
        agent_id=asked.agent_id,
        namespace=namespace,
        namespace_prefix=prefix,
        about=() if asked.about is None else (asked.about,),
    )
    query = _query(
        asked,
        wanted=wanted,
        profile=profile,
        weights=weights,
        outcome=asked.outcome or profile.outcome,
    )
    found = await episode_recall.recall_episodes(index_of(transactions), transactions, query)
    return RecallEpisodesResponse(
        episodes=[_episode(one) for one in found],
        tokens=sum(one.tokens for one in found),
        weights=weights,
    )


@operation("get_profile")
async def get_profile(context: OperationContext, call: OperationCall) -> ProfileResponse:
    return await make_profile(context, call.path["subject"], call.query.tokens)
