"""What happens to knowledge that contradicts other knowledge (memory wall, algorithm 11.7).

One table decides for promotions, imports, merges, and direct writes of facts.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from memorywall.records.entry import AUTHORITY_RANK, Authority

LEAST_CONFIDENCE: Final = 0.6
"""The confidence above which newer knowledge of the same authority replaces the older one."""
REVIEW_CONFIDENCE: Final = 0.95
"""The confidence above which knowledge of a lower authority is worth a review."""
REVIEW_EVIDENCE: Final = 3
"""The evidence count above which knowledge of a lower authority is worth a review."""


class Resolution(StrEnum):
    """The six outcomes of a conflict.

    HUMAN_REVIEW: it has the higher authority, but a person stands behind the older knowledge
    OVERRULE: it has the higher authority; the older knowledge is superseded
    RENEW: it has the same authority, is newer and confident; the older knowledge is superseded
    MANUAL: it has the same authority, and nothing else decides
    SUGGEST_REVIEW: it has a lower authority, but much confidence and evidence
    REJECT: it has a lower authority
    """

    HUMAN_REVIEW = "human_review_required"
    OVERRULE = "superseded"
    RENEW = "superseded_by_newer"
    MANUAL = "manual_resolution"
    SUGGEST_REVIEW = "review_suggested"
    REJECT = "lower_authority"

    @property
    def accepts(self) -> bool:
        """Whether the new knowledge is stored, and the older one superseded."""
        return self in (Resolution.OVERRULE, Resolution.RENEW)

    @property
    def defers(self) -> bool:
        """Whether a proposal waits for a person."""
        return not self.accepts and self is not Resolution.REJECT


class ConflictSide(NamedTuple):
    """What decides about one side of a conflict.

    instant: when it was known, in the stored form
    confidence: 0 to 1; 1 for knowledge that names none
    evidence: the number of observations that support it
    is_confirmed: whether a person stands behind it without having written it
    """

    authority: Authority
    instant: str
    confidence: float = 1.0
    evidence: int = 0
    is_confirmed: bool = False


def resolve(new: ConflictSide, existing: ConflictSide) -> Resolution:
    """Returns what happens to new knowledge that contradicts existing knowledge."""
    rank, other = AUTHORITY_RANK[new.authority], AUTHORITY_RANK[existing.authority]
    if rank > other:
        # Nothing has more authority than what a person curated; only a confirmation is left.
        return Resolution.HUMAN_REVIEW if existing.is_confirmed else Resolution.OVERRULE
    if rank == other:
        is_newer = new.instant > existing.instant and new.confidence > LEAST_CONFIDENCE
        return Resolution.RENEW if is_newer else Resolution.MANUAL
    if new.confidence > REVIEW_CONFIDENCE and new.evidence > REVIEW_EVIDENCE:
        return Resolution.SUGGEST_REVIEW
    return Resolution.REJECT
