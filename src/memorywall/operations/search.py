"""Search by words and meaning, and augmentation of queries."""

from __future__ import annotations

from dataclasses import replace

from memorywall.operations.binding import multi_transaction_operation
from memorywall.operations.filters import (
    in_body,
    instant_of_validity,
    past_instant,
    whole_or_prefix,
)
from memorywall.recall.augment_query import augment_query
from memorywall.recall.index import index_of
from memorywall.recall.search import search
from memorywall.records.copier import copier
from memorywall.records.filter import EntryFilter
from memorywall.records.recall import Guidance, SearchSpec
from memorywall.service.requests.validation import check_tags
from memorywall.service.runner.operation_runner import OperationTransactions
from memorywall.wire.search import (
    GuidanceResponse,
    RecallRequest,
    ReshapeResponse,
    SearchRequest,
    SearchResponse,
    found_view,
)


@multi_transaction_operation("search_entries")
async def search_entries(transactions: OperationTransactions) -> SearchResponse:
    return await _search(transactions, transactions.call.body, only_answers=False)


@multi_transaction_operation("recall")
async def recall(transactions: OperationTransactions) -> SearchResponse:
    asked: RecallRequest = transactions.call.body
    wanted = SearchRequest(
        query=asked.question, namespace=asked.namespace, limit=asked.limit, strict=asked.strict
    )
    return await _search(transactions, wanted, only_answers=True)


async def _search(
    transactions: OperationTransactions, asked: SearchRequest, *, only_answers: bool
) -> SearchResponse:
    spec = _search_spec(asked, transactions.principal.tenant, transactions.service.now())
    spec = replace(spec, only_answers=only_answers)
    return found_view(await search(index_of(transactions), transactions, spec))


_guidance = copier(Guidance, GuidanceResponse, confidence=lambda one: round(one.confidence, 6))


@multi_transaction_operation("reshape_query")
async def reshape_query(transactions: OperationTransactions) -> ReshapeResponse:
    asked = transactions.call.body
    reshaped = await augment_query(
        index_of(transactions),
        transactions,
        asked.query,
        agent_id=asked.agent_id,
        namespace=asked.namespace,
        limit=asked.limit,
    )
    guidance = [_guidance(one) for one in reshaped.guidance]
    return ReshapeResponse(query=reshaped.query, guidance=guidance)


_spec = copier(
    SearchRequest,
    SearchSpec,
    given=["wanted", "reference_time", "valid_at"],
    defaults=["only_answers"],
    session_id="scope.session_id",
)


def _search_spec(asked: SearchRequest, tenant: str, now: str) -> SearchSpec:
    """Returns the search of a request. Raises ValidationError, which names the field."""
    with in_body():
        as_of = past_instant("as_of", asked.as_of, now)
        valid_at = instant_of_validity("valid_at", asked.valid_at)
    namespace, prefix = whole_or_prefix(asked.namespace)
    return _spec(
        asked,
        reference_time=as_of,
        valid_at=valid_at,
        wanted=EntryFilter(
            tenant=tenant,
            tiers=() if asked.memory_type is None else (asked.memory_type,),
            agent_id=asked.agent_id,
            namespace=namespace,
            namespace_prefix=prefix,
            tags=check_tags(asked.tags, "tags", is_new=False),
            tags_any=check_tags(asked.tags_any, "tags_any", is_new=False),
            task_id=asked.scope.task_id,
            intent_id=asked.scope.intent_id,
            kind=asked.kind,
            statuses=() if asked.status is None else (asked.status,),
            state=asked.state,
            about=() if asked.about is None else (asked.about,),
            origin=asked.origin,
            source=asked.source,
        ),
    )
