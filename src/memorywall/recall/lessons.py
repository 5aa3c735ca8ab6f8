"""Whether a lesson acts: the rule for queries and for contexts."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from memorywall.kinds.lessons import Lesson
from memorywall.kinds.registry import read as read_value
from memorywall.recall.document import AuthorDateFields, read, trust_of
from memorywall.records.clock import instant_to_milliseconds
from memorywall.records.entry import Entry
from memorywall.records.recall import GuidanceKind
from memorywall.records.validity import validity_of

LEAST_CONFIDENCE: Final = 0.3
"""The least trust in a lesson that acts."""
_DAY_MILLISECONDS = 24 * 3600 * 1000
_DAYS = {
    GuidanceKind.CORRECTION: 180,
    GuidanceKind.NEGATIVE_RETRIEVAL: 90,
    GuidanceKind.ESCALATION_RESOLUTION: 120,
    GuidanceKind.HIGH_VALUE_SUCCESS: 60,
}
"""The validity of each kind without confirmation. Errors stay errors for longer than successful
approaches stay successful."""
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class ActingLesson(NamedTuple):
    """A lesson that is valid, confirmed recently enough, and trusted.

    confidence: the trust in it, from 0 to 1
    since: the instant of its creation or last confirmation, in milliseconds since the epoch
    """

    kind: GuidanceKind
    lesson: Lesson
    confidence: float
    since: int


def lesson_of(entry: Entry) -> Lesson | None:
    """The lesson that an entry is, by its kind or the `type` of its value; None for any other."""
    return _lesson_in(entry, _decode(entry.value))


def _lesson_in(entry: Entry, value: dict[str, Any]) -> Lesson | None:
    said = read_value(entry.kind, entry.kind_version, value)
    return said if isinstance(said, Lesson) else None


def find_acting_lesson(entry: Entry, fields: AuthorDateFields, now: str) -> ActingLesson | None:
    """The lesson of an entry; None if it is none, does not hold, is stale or has low trust.

    now: the present in the stored form
    """
    value = _decode(entry.value)
    said = _lesson_in(entry, value)
    if said is None:
        return None
    kind = GuidanceKind(said.type)
    document, _ = read(entry, fields)
    # A lesson cannot be newer than its entry.
    since = min(document.moment, instant_to_milliseconds(entry.created_at))
    if entry.updated_at > entry.created_at:
        since = instant_to_milliseconds(entry.updated_at)
    age = instant_to_milliseconds(now) - since
    confidence = trust_of(entry, value)
    if age > _DAYS[kind] * _DAY_MILLISECONDS or confidence < LEAST_CONFIDENCE:
        return None
    if not validity_of(value).holds_at(now):
        return None
    return ActingLesson(kind, said, confidence, since)
