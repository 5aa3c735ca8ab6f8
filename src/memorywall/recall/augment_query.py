"""Query augmentation: lessons augment a query before a retriever runs it.

The first pass searches episodic entries for lessons about the query. The second pass returns the
query with one line for each lesson that applies. The value of such an entry has a `type`,
optionally a `confidence` from 0 to 1, and these text fields:

- `correction`: `wrong_answer`, and `right_answer` or `correct_source` or both
- `negative_retrieval`: `rejected_doc` and `accepted_doc`
- `escalation_resolution`: `resolution`, the action after the escalation
- `high_value_success`: `approach`, the successful approach

Other fields, such as the original question, improve the search. A lesson with missing or invalid
fields gives no guidance.

The signals of a hit do not show relevance. They are relative to the best hit, so the best of
several irrelevant lessons has high signals, and the words in `Signals` may be those of a neighbour.
Each lesson is therefore compared with the query by itself. A lesson is relevant if it contains at
least half of the query's terms, or if its meaning is similar. The similarity of unrelated texts
depends on the model and is measured on a few sentences. A lesson must reach at least half of the
distance from that similarity to 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from memorywall.kinds.episodes import cut_text
from memorywall.kinds.lessons import Lesson
from memorywall.recall.analyzer import words_of
from memorywall.recall.document import read
from memorywall.recall.index import Index
from memorywall.recall.lessons import LEAST_CONFIDENCE, find_acting_lesson
from memorywall.recall.search import search
from memorywall.records.entry import Entry
from memorywall.records.errors import UnavailableError, ValidationError
from memorywall.records.filter import EntryFilter
from memorywall.records.principal import Maintenance
from memorywall.records.recall import (
    DEFAULT_GUIDANCE,
    GUIDANCE_HEADING,
    MOST_GUIDANCE,
    MOST_HITS,
    AugmentedQuery,
    Guidance,
    GuidanceKind,
    SearchSpec,
    without_guidance,
)
from memorywall.records.tier import Tier
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.runner.maintenance import inspect
from memorywall.service.runner.operation_runner import OperationTransactions

LONGEST_TEXT = 200
"""The most characters of a field in guidance, so that guidance does not fill a context."""

_RELEVANT = 0.5
_SENTENCES = (
    "The kettle is on the stove.",
    "Prices of apples rose last autumn.",
    "She painted the fence green.",
    "A train leaves every hour.",
)
"""Sentences that are unrelated to each other and to most queries."""
_NOT_THE_TOPIC = frozenset({"type", "confidence"})
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class _Lesson(NamedTuple):
    """The content of a lesson.

    avoid, prefer: the discouraged and the recommended text; `avoid` is None if there is none
    """

    text: str
    avoid: str | None
    prefer: str


class _Memory(NamedTuple):
    """A lesson that may apply. `since` is the instant of its creation or last confirmation, in
    milliseconds since the epoch."""

    entry: Entry
    kind: GuidanceKind
    lesson: _Lesson
    confidence: float
    since: int


async def augment_query(
    index: Index,
    transactions: OperationTransactions,
    query: str,
    *,
    agent_id: str | None = None,
    namespace: str | None = None,
    limit: int = DEFAULT_GUIDANCE,
) -> AugmentedQuery:
    """A query with guidance from lessons that the caller may read; unchanged if no lesson applies.
    Guidance of an earlier augmentation is replaced.

    agent_id, namespace: only lessons of this agent, in this namespace; None for all
    Raises ValidationError and MemoryAccessError like `search`.
    """
    if not 1 <= limit <= MOST_GUIDANCE:
        raise ValidationError(f"`limit` must be from 1 to {MOST_GUIDANCE}")
    query = without_guidance(query)
    tenant = transactions.principal.tenant
    wanted = EntryFilter(
        tenant=tenant, tiers=(Tier.EPISODIC,), agent_id=agent_id, namespace=namespace
    )
    spec = SearchSpec(query=query, wanted=wanted, limit=MOST_HITS, min_trust=LEAST_CONFIDENCE)
    now = index.services.now()
    found = await search(index, transactions, spec, counted=False)
    memories = [
        memory for hit in found.hits if (memory := _memory(index, hit.entry, now)) is not None
    ]
    relevant = await _relevant(index, transactions, query, memories)
    chosen = _without_contradictions(relevant)[:limit]
    if not chosen:
        return AugmentedQuery(query=query)
    index.services.record_access((memory.entry for memory in chosen), now)
    index.services.usage_tracker.count(tenant, (memory.entry.id for memory in chosen))
    lines = "\n".join(f"- {memory.lesson.text}" for memory in chosen)
    return AugmentedQuery(
        query=f"{query}\n\n{GUIDANCE_HEADING}\n{lines}",
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
    """Returns the guidance of an entry; None if it is no lesson that acts."""
    acting = find_acting_lesson(entry, index.fields, now)
    if acting is None:
        return None
    lesson = _lesson(acting.kind, msgspec.structs.asdict(acting.lesson))
    if lesson is None:
        return None
    return _Memory(entry, acting.kind, lesson, acting.confidence, acting.since)


def guidance_of(kind: GuidanceKind, lesson: Lesson) -> str | None:
    """Returns the line of guidance of a lesson; None for one that guides to nothing."""
    found = _lesson(kind, msgspec.structs.asdict(lesson))
    return None if found is None else found.text


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
    """A lesson with two sides; None if the sides are equal."""
    if avoid.casefold() == prefer.casefold():
        return None
    return _Lesson(text, avoid, prefer)


def _shown(value: Mapping[str, Any], name: str) -> str | None:
    """A field in quotation marks, on one line and shortened. Empty for a missing or blank field,
    None for a value that is not text. A stored text cannot end its line or its quotation."""
    text = value.get(name, "")
    if not isinstance(text, str):
        return None
    # Characters that are not printable may break lines or change the direction of text.
    text = "".join(one if one.isprintable() else " " for one in text).replace('"', "'")
    text = cut_text(text, LONGEST_TEXT)
    return f'"{text}"' if text else ""


async def _relevant(
    index: Index, transactions: OperationTransactions, query: str, memories: Iterable[_Memory]
) -> list[_Memory]:
    """The lessons that are relevant to the query; see the module's docstring."""
    asked = {term for word in words_of(query) if (term := index.terms.of_word(word))}
    by_words: list[_Memory] = []
    others: list[_Memory] = []
    for memory in memories:
        shared = len(asked & _terms(index, memory.entry))
        (by_words if asked and shared >= _RELEVANT * len(asked) else others).append(memory)
    if index.embedder is None or not others:
        return by_words
    return by_words + await _like(index, transactions, query, others)


def _terms(index: Index, entry: Entry) -> set[str]:
    """The terms of the content of an entry, without the name of its kind."""
    value = _decode(entry.value)
    topic = {name: part for name, part in value.items() if name not in _NOT_THE_TOPIC}
    _, text = read(msgspec.structs.replace(entry, value=msgspec.json.encode(topic)), index.fields)
    terms, _ = index.terms.of(" ".join((text.own, entry.key, *entry.tags)))
    return set(terms)


async def _like(
    index: Index, transactions: OperationTransactions, query: str, memories: Sequence[_Memory]
) -> list[_Memory]:
    """The lessons with a meaning similar to the query; none while the embedder is unavailable."""
    # The base install has no numpy and no embedder.
    import numpy as np

    from memorywall.recall.stored_vectors import decode

    embedder = index.embedder
    assert embedder is not None  # noqa: S101 - asked by the caller
    try:
        rows = await index.embed([query, *_SENTENCES])
    except (UnavailableError, TimeoutError):
        return []

    async def load_vectors(context: OperationContext) -> dict[str, bytes]:
        ids = [memory.entry.id for memory in memories]
        return await context.transaction.recall.vectors(embedder.model, ids)

    tenant = transactions.principal.tenant
    vectors = await inspect(transactions.service, tenant, Maintenance.INDEX, load_vectors)
    unlike = float(np.mean(rows[1:] @ rows[0]))
    least = unlike + _RELEVANT * (1 - unlike)
    near = []
    for memory in memories:
        if (vector := vectors.get(memory.entry.id)) is not None:
            numbers, factors = decode(vector, embedder.dimensions)
            if float(numbers[0] @ rows[0] * factors[0]) >= least:
                near.append(memory)
    return near


def _without_contradictions(memories: Iterable[_Memory]) -> list[_Memory]:
    """The lessons in the order of confidence, then newest first, without lessons that repeat or
    contradict an earlier one."""
    ordered = sorted(memories, key=lambda one: (-one.confidence, -one.since, one.entry.id))
    chosen: list[_Memory] = []
    for memory in ordered:
        if not any(_clash(memory.lesson, other.lesson) for other in chosen):
            chosen.append(memory)
    return chosen


def _clash(one: _Lesson, other: _Lesson) -> bool:
    """Whether two lessons recommend the same, or one discourages what the other recommends, or both
    discourage the same and recommend different texts."""
    avoid, prefer = _casefolded(one)
    other_avoid, other_prefer = _casefolded(other)
    if avoid is None or other_avoid is None:
        return prefer in (other_prefer, other_avoid) or avoid == other_prefer
    return avoid in (other_avoid, other_prefer) or prefer == other_avoid


def _casefolded(lesson: _Lesson) -> tuple[str | None, str]:
    """Both sides of a lesson in a form for comparison."""
    avoid = None if lesson.avoid is None else lesson.avoid.casefold()
    return avoid, lesson.prefer.casefold()
