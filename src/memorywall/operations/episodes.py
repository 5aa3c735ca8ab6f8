"""Recall of episodes, and the profile of a person."""

from __future__ import annotations

from memorywall.kinds.episodes import EPISODE
from memorywall.longterm import episode_recall
from memorywall.longterm.profiles import make_profile
from memorywall.operations.binding import multi_transaction_operation, operation
from memorywall.operations.filters import whole_or_prefix
from memorywall.recall.index import index_of
from memorywall.records.filter import EntryFilter
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.service.runner.operation_runner import OperationTransactions
from memorywall.wire.episodes import ProfileResponse, RecallEpisodesResponse


@multi_transaction_operation("recall_episodes")
async def recall_episodes(transactions: OperationTransactions) -> RecallEpisodesResponse:
    asked = transactions.call.body
    namespace, prefix = whole_or_prefix(asked.namespace)
    wanted = EntryFilter(
        tenant=transactions.principal.tenant,
        kind=EPISODE.name,
        agent_id=asked.agent_id,
        namespace=namespace,
        namespace_prefix=prefix,
        about=() if asked.about is None else (asked.about,),
    )
    index = index_of(transactions)
    return await episode_recall.recall_episodes(index, transactions, asked, wanted)


@operation("get_profile")
async def get_profile(context: OperationContext, call: OperationCall) -> ProfileResponse:
    return await make_profile(context, call.path["subject"], call.query.tokens)
