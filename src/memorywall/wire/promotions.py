"""Promotions: requests, responses, operations."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from memorywall.kinds.promotions import (
    PROMOTION,
    PROPOSAL,
    DecisionWord,
    MeasuredCriterion,
    Promotion,
)
from memorywall.records.copier import copier
from memorywall.records.errors import (
    MemoryConflictError,
    MemoryNotFoundError,
    ResourceNotFoundError,
    TransitionError,
)
from memorywall.records.feature_errors import RuleError
from memorywall.records.tier import Tier
from memorywall.wire.operation import Operation, UserOfRequest
from memorywall.wire.operation_group import OperationGroup

MOST_PROMOTIONS = 100


class PromoteRequest(UserOfRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an entry is promoted to."""

    to: Annotated[
        Literal["session", "episodic", "semantic", "procedural"], Meta(description="The tier.")
    ]
    namespace: Annotated[
        str | None,
        Meta(description="The namespace of the result; default: that of the entry."),
    ] = None
    key: Annotated[str | None, Meta(description="The key of the result; default: its id.")] = None
    value: Annotated[
        dict[str, Any] | None,
        Meta(description="The value of the result; default: that of the entry."),
    ] = None
    kind: Annotated[str | None, Meta(description="The kind of `value`.")] = None
    dry_run: Annotated[bool, Meta(description="Only decide, and store nothing.")] = False


class PromotionQuery(UserOfRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which decisions a list has."""

    decision: Annotated[DecisionWord | None, Meta(description="Only with this decision.")] = None
    candidate: Annotated[str | None, Meta(description="Only about this entry.")] = None
    result: Annotated[str | None, Meta(description="Only those that made this entry.")] = None
    limit: Annotated[int, Meta(ge=1, le=MOST_PROMOTIONS)] = MOST_PROMOTIONS


class PromotionResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A decision about a candidate. `id` is null for a dry run.

    `rule` names the rule that decided, and `parts` has the criteria of which `score` is the
    weighted mean; a criterion without a `value` is unknown and does not count. `result` is the
    entry that holds the candidate now, or the proposal that waits for a person.
    """

    id: str | None
    decision: DecisionWord
    candidate: str
    candidate_version: int
    source_tier: Tier
    to: Tier
    namespace: str
    rule: str
    reason: str
    score: float | None
    parts: tuple[MeasuredCriterion, ...]
    result: str | None
    superseded: tuple[str, ...]
    promoted_by: str
    decided_at: str | None
    dry_run: bool = False

    @property
    def kind(self) -> str:
        """The kind of what the decision has made, as far as it decides about the status."""
        waits = self.decision == "deferred" and not self.dry_run
        return PROPOSAL.name if waits else PROMOTION.name


class PromotionListResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Decisions, the newest first."""

    promotions: list[PromotionResponse]


promotion_view = copier(Promotion, PromotionResponse, given=["id", "dry_run"], decision="status")
"""The wire form of a decision."""

_PROMOTIONS = OperationGroup(name="Promotions", source="memory wall 11.7")

PROMOTION_OPERATIONS: tuple[Operation, ...] = (
    _PROMOTIONS(
        "promote_entry",
        "POST /memory/{entry_id}/promote",
        "Promote an entry to a tier that lasts longer, if it is worth it.",
        body=PromoteRequest,
        reply=PromotionResponse,
        defers=True,
        not_found=(MemoryNotFoundError, ResourceNotFoundError),
        raises=(RuleError, MemoryConflictError),
    ),
    _PROMOTIONS(
        "list_promotions",
        "GET /promotions",
        "List the decisions about promotions of the caller, newest first.",
        query=PromotionQuery,
        reply=PromotionListResponse,
    ),
    _PROMOTIONS(
        "get_promotion",
        "GET /promotions/{promotion_id}",
        "Get a decision with its score, its parts and its reason.",
        reply=PromotionResponse,
    ),
    _PROMOTIONS(
        "revert_promotion",
        "POST /promotions/{promotion_id}/revert",
        "Take a promotion back, with what was derived from its result.",
        reply=PromotionResponse,
        raises=(TransitionError,),
    ),
)
