"""Lessons from experience: the four kinds that recall uses for guidance (memory wall, 11.4)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from memorywall.kinds.spec import KindSpec
from memorywall.records.tier import Tier

Confidence = Annotated[float, Meta(ge=0, le=1, description="The trust in the lesson, from 0 to 1.")]


class Lesson(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fields that all lessons share.

    question: the question that led to the lesson
    author, date: the author and the date (RFC 3339 or ISO 8601)
    """

    needed: ClassVar[tuple[str, ...]] = ()
    """Texts that must not be empty."""

    type: str = ""
    question: str = ""
    context: str = ""
    confidence: Confidence = 1.0
    author: str = ""
    date: str = ""
    valid_from: str | None = None
    valid_until: str | None = None

    def __post_init__(self) -> None:
        for name in self.needed:
            if not getattr(self, name).strip():
                raise ValueError(f"`{name}` must not be empty")


class Correction(Lesson, frozen=True, kw_only=True):
    """An answer was wrong. The lesson names the right answer, its source, or both."""

    needed: ClassVar[tuple[str, ...]] = ("wrong_answer",)

    type: Literal["correction"] = "correction"
    wrong_answer: str
    right_answer: str = ""
    correct_source: str = ""

    def __post_init__(self) -> None:
        Lesson.__post_init__(self)
        if not (self.right_answer.strip() or self.correct_source.strip()):
            raise ValueError("give `right_answer` or `correct_source`")


class NegativeRetrieval(Lesson, frozen=True, kw_only=True):
    """A document that was retrieved did not help, another one did."""

    needed: ClassVar[tuple[str, ...]] = ("rejected_doc", "accepted_doc")

    type: Literal["negative_retrieval"] = "negative_retrieval"
    rejected_doc: str
    accepted_doc: str


class EscalationResolution(Lesson, frozen=True, kw_only=True):
    """The resolution of an escalated question."""

    needed: ClassVar[tuple[str, ...]] = ("resolution",)

    type: Literal["escalation_resolution"] = "escalation_resolution"
    resolution: str


class HighValueSuccess(Lesson, frozen=True, kw_only=True):
    """An approach that worked."""

    needed: ClassVar[tuple[str, ...]] = ("approach",)

    type: Literal["high_value_success"] = "high_value_success"
    approach: str


CORRECTION = KindSpec(
    name="correction",
    schema=Correction,
    description="A wrong answer, and the right answer or its source.",
    tier=Tier.EPISODIC,
)
NEGATIVE_RETRIEVAL = KindSpec(
    name="negative_retrieval",
    schema=NegativeRetrieval,
    description="A retrieved document that did not help, and the one that did.",
    tier=Tier.EPISODIC,
)
ESCALATION_RESOLUTION = KindSpec(
    name="escalation_resolution",
    schema=EscalationResolution,
    description="How a question was resolved after it had been escalated.",
    tier=Tier.EPISODIC,
)
HIGH_VALUE_SUCCESS = KindSpec(
    name="high_value_success",
    schema=HighValueSuccess,
    description="An approach that worked.",
    tier=Tier.EPISODIC,
)

LESSONS: tuple[KindSpec, ...] = (
    CORRECTION,
    NEGATIVE_RETRIEVAL,
    ESCALATION_RESOLUTION,
    HIGH_VALUE_SUCCESS,
)
