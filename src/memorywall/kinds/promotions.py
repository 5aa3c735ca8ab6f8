"""The kinds of promotion: what waits for a person, and what was decided (memory wall, 11.7)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from memorywall.kinds.spec import Edge, KindSpec
from memorywall.records.tier import Tier

CONTRADICTS = "contradicts"
"""The relation between a proposal and an entry that it contradicts."""
CANDIDATE = "candidate"
"""The relation between a promotion and the entry that was to be promoted."""
RESULT = "result"
"""The relation between a promotion and the entry that it made or changed."""
DecisionWord = Literal["pending", "promoted", "merged", "deferred", "rejected", "reverted"]


class Proposal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True,
               forbid_unknown_fields=True):  # fmt: skip
    """A change of memory that waits for a person. It is inert: not searched, and in no context."""

    status: Annotated[
        Literal["draft", "applied", "rejected"],
        Meta(description="`draft` until a person decides."),
    ] = "draft"
    rule: Annotated[str, Meta(description="The rule that deferred it.")]
    reason: Annotated[str, Meta(description="What a person should know to decide.")]
    kind: Annotated[str | None, Meta(description="The kind of the proposed value.")] = None
    value: Annotated[dict[str, Any], Meta(description="The value, as it would be stored.")]
    key: Annotated[str, Meta(description="The key that the entry would have; empty for its id.")]
    replaces: Annotated[
        str | None, Meta(description="The entry whose value it would replace; null for a new one.")
    ] = None
    contradicts: Annotated[
        tuple[str, ...], Meta(description="The ids of the entries that it contradicts.")
    ] = ()


class MeasuredCriterion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True,
                        forbid_unknown_fields=True, gc=False):  # fmt: skip
    """A criterion of a promotion, as it was measured.

    value: 0 to 1; None if it is unknown, and then it does not count
    floor: the least value
    observations: the number of outcomes that it was measured on; None for one without outcomes
    """

    name: str
    value: float | None = None
    floor: float
    weight: float
    observations: int | None = None


class Promotion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True,
                forbid_unknown_fields=True):  # fmt: skip
    """A decision about one candidate, without its content (memory wall, 11.7).

    candidate, candidate_version: the entry that was to be promoted
    to: the tier that it was promoted to
    rule, reason: the rule that decided, and its sentence
    score, parts: the measure of the promotion, and what it was made of
    result: the entry that holds the candidate now, or the proposal that waits for a person
    replaced_version: the version of the result that it replaced; None for a new entry
    superseded: the entries that the result superseded
    promoted_by: who asked for it
    due: the instant from which the server decides, while it is pending
    """

    status: DecisionWord
    candidate: str
    candidate_version: int
    source_tier: Tier
    to: Tier
    namespace: str = ""
    rule: str = ""
    reason: str = ""
    score: float | None = None
    parts: tuple[MeasuredCriterion, ...] = ()
    result: str | None = None
    replaced_version: int | None = None
    superseded: tuple[str, ...] = ()
    promoted_by: str
    decided_at: str | None = None
    due: str | None = None


def _ends(promotion: Any) -> Iterator[Edge]:
    yield Edge(CANDIDATE, promotion.candidate, is_id=True)
    if promotion.result is not None:
        yield Edge(RESULT, promotion.result, is_id=True)


def _contradicted(proposal: Any) -> Iterator[Edge]:
    return (Edge(CONTRADICTS, one, is_id=True) for one in proposal.contradicts)


def _status(value: Any) -> str:
    return str(value.status)


PROPOSAL = KindSpec(
    name="proposal",
    schema=Proposal,
    description="A change of memory that waits for the decision of a person.",
    operations=("create_entry", "promote_entry"),
    listed=False,
    evictable=False,
    is_searchable=False,
    lifetime="",
    statuses=("draft", "applied", "rejected"),
    status=_status,
    edges=_contradicted,
)

PROMOTION = KindSpec(
    name="promotion",
    schema=Promotion,
    description="A decision about the promotion of an entry, with its score and its reason.",
    tier=Tier.EPISODIC,
    operations=("promote_entry", "revert_promotion"),
    listed=False,
    evictable=False,
    is_searchable=False,
    statuses=("pending", "promoted", "merged", "deferred", "rejected", "reverted"),
    status=_status,
    edges=_ends,
    due=lambda promotion: promotion.due,
    lifetime="",
)

PROMOTION_KINDS: tuple[KindSpec, ...] = (PROPOSAL, PROMOTION)
