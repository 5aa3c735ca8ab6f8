"""Two-pass retrieval: what was learned reshapes a query before anything is retrieved with it.

The first pass looks among episodic entries for what experience says about the query; the second
gives the query back with one line for each memory that applies. The value of such an entry has a
`type`, may have a `confidence` from 0 to 1, and tells, each as a text:

- `correction`: `wrong_answer`, and `right_answer` or `correct_source` or both
- `negative_retrieval`: `rejected_doc` and `accepted_doc`
- `escalation_resolution`: `resolution`, what the one it was handed to did
- `high_value_success`: `approach`, what worked

Any other field, such as the question it was about, helps to find it. A memory whose fields are
missing or of another type gives no guidance.

Relevance is not read off the shares of a hit: they are shares of the best that was found, so even
among memories that have nothing to do with the query the best of them has a high one. And the words
that `Signals` names may be a neighbour's. So each memory is held against the query by itself: at
least half of the words of the query that are terms stand in the memory; or else its meaning is like
the query's. How like two texts are that have nothing in common differs from model to model. That is
measured on a few plain sentences, and a memory must come at least half of the way from there to one
that means the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from memorywall.recall.document import read
from memorywall.recall.index import Index
from memorywall.recall.search import search
from memorywall.recall.terms import words_of
from memorywall.recall.trust import trust_of
from memorywall.records.clock import instant_to_milliseconds
from memorywall.records.entry import Entry
from memorywall.records.errors import UnavailableError, ValidationError
from memorywall.records.filter import Filter
from memorywall.records.principal import Principal
from memorywall.records.recall import (
    DEFAULT_GUIDANCE,
    MOST_GUIDANCE,
    MOST_HITS,
    Guidance,
    GuidanceKind,
    Reshaped,
    Sought,
)
from memorywall.records.tier import Tier
from memorywall.storage.port import Transaction

LONGEST_TEXT = 200
"""Characters of a field that are shown: enough to steer by, too few to fill a context with."""

_DAY_MILLISECONDS = 24 * 3600 * 1000
_DAYS = {
    GuidanceKind.CORRECTION: 180,
    GuidanceKind.NEGATIVE_RETRIEVAL: 90,
    GuidanceKind.ESCALATION_RESOLUTION: 120,
    GuidanceKind.HIGH_VALUE_SUCCESS: 60,
}
"""How long each kind holds unless it is confirmed: what was wrong stays wrong for longer than what
worked keeps working."""
_LEAST_CONFIDENCE = 0.3
_RELEVANT = 0.5
_HEADING = "What was learned from queries like this:"
_SENTENCES = (
    "The kettle is on the stove.",
    "Prices of apples rose last autumn.",
    "She painted the fence green.",
    "A train leaves every hour.",
)
"""They have nothing in common with each other, nor with most queries."""
_NOT_THE_TOPIC = frozenset({"type", "confidence"})
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class _Lesson(NamedTuple):
    """What a memory says.

    avoid, prefer: what it says against and for; None where it says nothing against anything
    """

    text: str
    avoid: str | None
    prefer: str


class _Memory(NamedTuple):
    """A memory that may apply. `since`: when it was made or last confirmed, in milliseconds."""

    entry: Entry
    kind: GuidanceKind
    lesson: _Lesson
    confidence: float
    since: int


async def reshape(
    index: Index,
    principal: Principal,
    query: str,
    *,
    agent_id: str | None = None,
    namespace: str | None = None,
    limit: int = DEFAULT_GUIDANCE,
) -> Reshaped:
    """A query with guidance from what the caller may read; unchanged where nothing applies.

    agent_id, namespace: whose memories, and where they lie; all of them by default
    Raises ValidationError and MemoryAccessError like `search`.
    """
    if not 1 <= limit <= MOST_GUIDANCE:
        raise ValidationError(f"`limit` must be from 1 to {MOST_GUIDANCE}")
    wanted = Filter(
        tenant=principal.tenant, tiers=(Tier.EPISODIC,), agent_id=agent_id, namespace=namespace
    )
    sought = Sought(query=query, wanted=wanted, limit=MOST_HITS, min_trust=_LEAST_CONFIDENCE)
    now = index.door.now()
    found = await search(index, principal, sought, counted=False)
    memories = [
        memory for hit in found.hits if (memory := _memory(index, hit.entry, now)) is not None
    ]
    relevant = await _relevant(index, principal.tenant, query, memories)
    chosen = _without_contradictions(relevant)[:limit]
    if not chosen:
        return Reshaped(query=query)
    index.door.accesses.note((memory.entry for memory in chosen), now)
    index.door.accesses.count(principal.tenant, (memory.entry.id for memory in chosen))
    lines = "\n".join(f"- {memory.lesson.text}" for memory in chosen)
    return Reshaped(
        query=f"{query}\n\n{_HEADING}\n{lines}",
        guidance=tuple(
            Guidance(
                kind=memory.kind,
                text=memory.lesson.text,
                entry_id=memory.entry.id,
                confidence=memory.confidence,
            )
            for memory in chosen
        ),
    )


def _memory(index: Index, entry: Entry, now: str) -> _Memory | None:
    """What an entry teaches; None where it is of no such kind, is stale or not well founded."""
    value = _decode(entry.value)
    kind, given = value.get("type"), value.get("confidence", 1.0)
    if not isinstance(kind, str) or kind not in _DAYS or not _is_share(given):
        return None
    lesson = _lesson(GuidanceKind(kind), value)
    document, _ = read(entry, index.fields)
    # It cannot have been said after it was written.
    since = min(document.moment, instant_to_milliseconds(entry.created_at))
    if entry.updated_at > entry.created_at:
        since = instant_to_milliseconds(entry.updated_at)
    age = instant_to_milliseconds(now) - since
    confidence = trust_of(entry, value)
    if (
        lesson is None
        or age > _DAYS[GuidanceKind(kind)] * _DAY_MILLISECONDS
        or confidence < _LEAST_CONFIDENCE
    ):
        return None
    return _Memory(entry, GuidanceKind(kind), lesson, confidence, since)


def _is_share(given: object) -> bool:
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    return is_number and 0 <= given <= 1  # type: ignore[operator]


def _lesson(kind: GuidanceKind, value: Mapping[str, Any]) -> _Lesson | None:
    if kind is GuidanceKind.CORRECTION:
        wrong, right = _shown(value, "wrong_answer"), _shown(value, "right_answer")
        source = _shown(value, "correct_source")
        if not wrong or right is None or source is None or not (right or source):
            return None
        where = f" (see {source})" if right and source else ""
        return _opposed(f"Wrong: {wrong}. Right: {right or source}{where}.", wrong, right or source)
    if kind is GuidanceKind.NEGATIVE_RETRIEVAL:
        rejected, accepted = _shown(value, "rejected_doc"), _shown(value, "accepted_doc")
        if not rejected or not accepted:
            return None
        return _opposed(f"Instead of {rejected} look in {accepted}.", rejected, accepted)
    if kind is GuidanceKind.ESCALATION_RESOLUTION:
        resolution = _shown(value, "resolution")
        return _Lesson(f"Resolved by: {resolution}.", None, resolution) if resolution else None
    approach = _shown(value, "approach")
    return _Lesson(f"Worked before: {approach}.", None, approach) if approach else None


def _opposed(text: str, avoid: str, prefer: str) -> _Lesson | None:
    """A lesson with two sides; None where they are the same."""
    if avoid.casefold() == prefer.casefold():
        return None
    return _Lesson(text, avoid, prefer)


def _shown(value: Mapping[str, Any], name: str) -> str | None:
    """A field in quotation marks, on one line and short; empty where it is not there or blank,
    None where it is no text. What is stored cannot end its line, nor its quotation."""
    text = value.get(name, "")
    if not isinstance(text, str):
        return None
    # What is not printable may break lines, or turn the direction of what follows.
    text = "".join(one if one.isprintable() else " " for one in text).replace('"', "'")
    text = " ".join(text.split())
    if len(text) > LONGEST_TEXT:
        text = text[: LONGEST_TEXT - 1].rstrip() + "…"
    return f'"{text}"' if text else ""


async def _relevant(
    index: Index, tenant: str, query: str, memories: Iterable[_Memory]
) -> list[_Memory]:
    """The memories that are about the query, see above."""
    asked = {term for word in words_of(query) if (term := index.terms.of_word(word))}
    by_words: list[_Memory] = []
    others: list[_Memory] = []
    for memory in memories:
        shared = len(asked & _terms(index, memory.entry))
        (by_words if asked and shared >= _RELEVANT * len(asked) else others).append(memory)
    if index.embedder is None or not others:
        return by_words
    return by_words + await _like(index, tenant, query, others)


def _terms(index: Index, entry: Entry) -> set[str]:
    """The terms of what an entry is about: the name of its kind tells nothing of that."""
    value = _decode(entry.value)
    topic = {name: part for name, part in value.items() if name not in _NOT_THE_TOPIC}
    _, text = read(msgspec.structs.replace(entry, value=msgspec.json.encode(topic)), index.fields)
    terms, _ = index.terms.of(" ".join((text.own, entry.key, *entry.tags)))
    return set(terms)


async def _like(
    index: Index, tenant: str, query: str, memories: Sequence[_Memory]
) -> list[_Memory]:
    """The memories whose meaning is like the query's; none while the embedder cannot be had."""
    # The base install has no numpy, and nothing that gives vectors.
    import numpy as np

    embedder = index.embedder
    assert embedder is not None  # noqa: S101 - asked by the caller
    try:
        rows = await index.embed([query, *_SENTENCES])
    except (UnavailableError, TimeoutError):
        return []

    async def script(transaction: Transaction) -> dict[str, bytes]:
        ids = [memory.entry.id for memory in memories]
        return await transaction.recall.vectors(tenant, embedder.model, ids)

    vectors = await index.door.store.read(tenant, script)
    unlike = float(np.mean(rows[1:] @ rows[0]))
    least = unlike + _RELEVANT * (1 - unlike)
    return [
        memory
        for memory in memories
        if (vector := vectors.get(memory.entry.id)) is not None
        and float(np.frombuffer(vector, "<f2").astype(np.float32) @ rows[0]) >= least
    ]


def _without_contradictions(memories: Iterable[_Memory]) -> list[_Memory]:
    """The memories, best founded first, then newest; without those that say the same as one before
    or contradict it."""
    ordered = sorted(memories, key=lambda one: (-one.confidence, -one.since, one.entry.id))
    chosen: list[_Memory] = []
    for memory in ordered:
        if not any(_clash(memory.lesson, other.lesson) for other in chosen):
            chosen.append(memory)
    return chosen


def _clash(one: _Lesson, other: _Lesson) -> bool:
    """Whether two lessons prefer the same, or one warns of what the other prefers, or both warn of
    the same and prefer different things."""
    avoid, prefer = _folded(one)
    other_avoid, other_prefer = _folded(other)
    if avoid is None or other_avoid is None:
        return prefer in (other_prefer, other_avoid) or avoid == other_prefer
    return avoid in (other_avoid, other_prefer) or prefer == other_avoid


def _folded(lesson: _Lesson) -> tuple[str | None, str]:
    """Both sides of a lesson, as they compare."""
    avoid = None if lesson.avoid is None else lesson.avoid.casefold()
    return avoid, lesson.prefer.casefold()
