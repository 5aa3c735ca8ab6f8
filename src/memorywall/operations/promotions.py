"""Promotions of entries, and the decisions about them (memory wall, 11.7)."""

from __future__ import annotations

from memorywall.longterm.decisions import StoredPromotion, list_decisions, load_decision
from memorywall.longterm.promotion import PromotionCandidate, promote
from memorywall.longterm.reversal import revert
from memorywall.operations.binding import multi_transaction_operation, operation
from memorywall.recall.index import index_of
from memorywall.records.decision import Verb
from memorywall.records.errors import ValidationError
from memorywall.records.feature_errors import RuleError
from memorywall.records.tier import Isolation, Tier
from memorywall.service.access.targets import load_authorized_entry
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.service.runner.operation_runner import OperationTransactions
from memorywall.tiers import TIERS
from memorywall.wire.promotions import (
    PromoteRequest,
    PromotionListResponse,
    PromotionQuery,
    PromotionResponse,
    promotion_view,
)


@multi_transaction_operation("promote_entry")
async def promote_entry(transactions: OperationTransactions) -> PromotionResponse:
    call = transactions.call
    asked: PromoteRequest = call.body
    entry_id = call.path["entry_id"]
    if asked.kind is not None and asked.value is None:
        raise ValidationError("`kind` is the kind of `value`; give both, or none of them")
    to, namespace = Tier(asked.to), asked.namespace
    if namespace is None:
        if TIERS[to].isolation is Isolation.NAMESPACE:
            raise ValidationError(f"`namespace` is required for {to} memory")
        entry = await transactions.read(load_authorized_entry, Verb.READ, entry_id)
        namespace = entry.namespace
    candidate = PromotionCandidate(
        entry_id, to, namespace, key=asked.key or "", value=asked.value, kind=asked.kind
    )
    found = await promote(index_of(transactions), transactions, candidate, dry_run=asked.dry_run)
    if found.value.status == "reverted":
        reason = "its promotion was taken back; it can be promoted again once it has changed"
        raise RuleError(reason, rule="reverted")
    if found.value.status == "rejected" and not asked.dry_run:
        # The decision stays; `list_promotions` shows it.
        raise RuleError(f"{found.value.reason} (rule `{found.value.rule}`)", rule=found.value.rule)
    return _view(found)


@operation("list_promotions")
async def list_promotions(context: OperationContext, call: OperationCall) -> PromotionListResponse:
    asked: PromotionQuery = call.query
    found = await list_decisions(
        context, asked.decision, asked.candidate, asked.result, asked.limit
    )
    return PromotionListResponse(promotions=[_view(one) for one in found])


@operation("get_promotion")
async def get_promotion(context: OperationContext, call: OperationCall) -> PromotionResponse:
    return _view(await load_decision(context, call.path["promotion_id"], Verb.READ))


@operation("revert_promotion")
async def revert_promotion(context: OperationContext, call: OperationCall) -> PromotionResponse:
    return _view(await revert(context, call.path["promotion_id"]))


def _view(found: StoredPromotion) -> PromotionResponse:
    entry_id = None if found.entry is None else found.entry.id
    return promotion_view(found.value, id=entry_id, dry_run=found.entry is None)
