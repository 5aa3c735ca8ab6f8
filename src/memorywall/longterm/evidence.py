"""What is known of a candidate before it is judged: its neighbours in the target tier, and what
became of the contexts that contained it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from memorywall.kinds.content_parts import spoken_text
from memorywall.kinds.contexts import CONTEXT, USED
from memorywall.kinds.promotions import MeasuredCriterion
from memorywall.kinds.sessions import TURN
from memorywall.kinds.working_memory import SCRATCH
from memorywall.longterm.criteria import DUPLICATE, LASTING, Measures, measure, score_of
from memorywall.longterm.duplicates import load_written_since
from memorywall.longterm.statements import (
    ComparedStatement,
    contradicts,
    coverage,
    read_statement,
    says_other,
    says_same,
)
from memorywall.longterm.worthiness import RECORD, candidate_of, is_own_statement, judge
from memorywall.recall.document import meaning_of
from memorywall.recall.index import Index, are_large
from memorywall.recall.search import search
from memorywall.recall.similarity import SimilarityMethod
from memorywall.records.entry import Entry, origin_of
from memorywall.records.filter import EntryFilter
from memorywall.records.principal import Principal
from memorywall.records.recall import LONGEST_QUERY, NO_USES, ContextOutcomes, Evidence, SearchSpec
from memorywall.records.tier import Isolation, Tier
from memorywall.records.validity import ANY_TIME
from memorywall.records.worthiness import Verdict
from memorywall.service.entries.writes import with_lifetime
from memorywall.service.requests.event_log import last_sequence
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.runner.operation_runner import OperationTransactions
from memorywall.tiers import TIERS

_NEIGHBOURS = 5
_HITS = 20
"""The hits among which are the neighbours: others are about other people."""
_MOST_CONTEXTS = 64
_TEXTS = frozenset({None, SCRATCH.name, TURN.name})
"""The kinds of candidates that are judged by their text."""
_LONGEST_COMPARED = 16_000
"""The characters of a text that are compared; longer texts say the same if they are equal."""
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Neighbour(NamedTuple):
    """An entry of the target tier that is similar to a candidate.

    similarity: by the method of the measurement; 0 if it says something else in similar words
    says_same, contradicts: see `statements`
    """

    entry_id: str
    version: int
    similarity: float
    says_same: bool
    contradicts: bool


class KnownOfCandidate(NamedTuple):
    """What the store says of a candidate.

    end: when it would expire in the target tier; None for never
    since: the `seq` of the last event of the log
    outcomes: of the contexts that contained it; none for a tier that is not measured on them
    places: the number of sessions, tasks and agents whose contexts used it, likewise
    """

    end: str | None
    since: int
    outcomes: ContextOutcomes = ContextOutcomes()
    places: int = 0


class Measured(NamedTuple):
    """A candidate and what was measured of it.

    entry: the candidate with its value in clear text
    value: what the target tier would store
    parts: the criteria with their values
    text: what of it is compared
    refused_by: the rule that finds it not worth remembering, and its sentence; None for none
    known: what the store said of it before it was compared with the target
    """

    entry: Entry
    value: dict[str, Any]
    text: str
    parts: tuple[MeasuredCriterion, ...]
    neighbours: tuple[Neighbour, ...] = ()
    refused_by: tuple[str, str] | None = None
    known: KnownOfCandidate | None = None

    @property
    def score(self) -> float:
        """The measure of the promotion, 0 to 1."""
        return score_of(self.parts)


async def measure_candidate(
    index: Index,
    transactions: OperationTransactions,
    entry: Entry,
    value: dict[str, Any] | None,
    to: Tier,
    namespace: str,
    *,
    is_asked: bool,
) -> Measured:
    """Measures a candidate against the memory of the target tier that the caller may read. What is
    not worth keeping is compared with nothing.

    entry: the candidate with its value in clear text
    value: what the target would store; None for the candidate's own
    is_asked: whether somebody asked for the promotion of this candidate, so that what a person said
        is kept
    """
    given = value
    value = value_of(entry) if given is None else given
    # A value of a caller's own, or of a kind, has a form that its namespace or kind checks.
    is_judged = to is not Tier.SESSION and given is None and entry.kind in _TEXTS
    if is_judged and is_asked:
        is_judged = not is_own_statement(origin_of(entry.provenance), value)

    def read() -> tuple[str, Verdict | None]:
        # Another tier stores it as a value without the kind of its own.
        text = meaning_of(replace(entry, kind=None), value, index.fields)
        return text, judge(candidate_of(value)) if is_judged else None

    text, verdict = await index.read_texts([entry], read)
    # Data without a text are a state of work, unless somebody says that they are more.
    is_data = verdict is not None and verdict.rule == RECORD and not is_asked
    if verdict is not None and (is_data or not verdict.worthy):
        refused_by = (verdict.rule, "it is not worth keeping")
        return Measured(entry, value, text, measure(Measures(None), to), (), refused_by)
    known = await transactions.read(_load_known, entry, to)
    neighbours = await _find_neighbours(index, transactions, entry, text, to, namespace, known.end)
    measures = Measures(
        similarity=max((one.similarity for one in neighbours), default=0.0) if text else None,
        outcomes=known.outcomes,
        places=known.places,
    )
    return Measured(entry, value, text, measure(measures, to), neighbours, known=known)


def value_of(entry: Entry) -> dict[str, Any]:
    """Returns the value of a candidate as another tier has it: an item of working memory and a turn
    are their content."""
    value = _decode(entry.value)
    if entry.kind not in (SCRATCH.name, TURN.name):
        return value
    content = value.get("content")
    if entry.kind == TURN.name and content is not None:
        content = spoken_text(content)
    return content if isinstance(content, dict) else {"text": content}


async def _find_neighbours(
    index: Index,
    transactions: OperationTransactions,
    entry: Entry,
    text: str,
    to: Tier,
    namespace: str,
    end: str | None,
) -> tuple[Neighbour, ...]:
    """Returns what is similar to a text in the target. What is about other people, or belongs to
    another session, says nothing about the candidate.

    end: when the candidate would expire in the target; None for never
    """
    query = text[:LONGEST_QUERY]
    if not query.strip():
        return ()
    is_shared = TIERS[to].isolation is Isolation.NAMESPACE
    principal = transactions.principal
    wanted = EntryFilter(
        tenant=principal.tenant,
        tiers=(to,),
        namespace=namespace if is_shared else None,
        agent_id=None if is_shared else principal.id,
    )
    spec = SearchSpec(query=query, wanted=wanted, limit=_HITS, explain=True, valid_at=ANY_TIME)
    found = await search(index, transactions, spec, counted=False)
    hits = [hit for hit in found.hits if _may_say_same(principal, entry, hit.entry, to)]
    hits = hits[:_NEIGHBOURS]
    compare = partial(_compare, index, text, end, [(hit.entry, hit.evidence) for hit in hits])
    if len(text) < LONGEST_QUERY and not are_large(hit.entry for hit in hits):
        return compare()
    return await index.in_thread(compare)


async def add_newest(
    context: OperationContext, index: Index, measured: Measured, made: Entry
) -> Measured:
    """Adds to the neighbours what was written to the target since the candidate was measured, such
    as another candidate of the same text that was promoted at the same time.

    made: the entry that the promotion would store
    """
    if measured.known is None:
        return measured
    there = {one.entry_id for one in measured.neighbours}
    newest = [
        one
        for one in await load_written_since(context, made, measured.known.since)
        if one.id not in there and _may_say_same(context.principal, measured.entry, one, made.tier)
    ]
    if not newest:
        return measured
    others = [(one, None) for one in newest]
    compare = partial(_compare, index, measured.text, measured.known.end, others)
    size = len(measured.text) + sum(len(one.value) for one in newest)
    added = await context.transaction.compute(size, compare)
    return measured._replace(neighbours=(*measured.neighbours, *added))


def _may_say_same(principal: Principal, candidate: Entry, other: Entry, to: Tier) -> bool:
    """Whether an entry of the target is about the same people, and in the same session if the
    target has sessions."""
    is_there = to is not Tier.SESSION or other.scope.session_id == candidate.scope.session_id
    return is_there and set(other.subjects) == set(principal.subjects or candidate.subjects)


def _compare(
    index: Index,
    text: str,
    end: str | None,
    others: Iterable[tuple[Entry, Evidence | None]],
) -> tuple[Neighbour, ...]:
    new = read_statement(text[:_LONGEST_COMPARED], index.terms)
    return tuple(_neighbour(index, text, new, *other, end) for other in others)


def _neighbour(
    index: Index,
    text: str,
    new: ComparedStatement,
    entry: Entry,
    evidence: Evidence | None,
    end: str | None,
) -> Neighbour:
    """Compares a text with an entry. What expires before `end` may contradict it, and keeps nothing
    of it."""
    lasts = entry.expires_at is None or (end is not None and end <= entry.expires_at)
    other = meaning_of(entry, _decode(entry.value), index.fields)
    old = read_statement(other[:_LONGEST_COMPARED], index.terms)
    is_whole = max(len(text), len(other)) <= _LONGEST_COMPARED
    meaning = None if evidence is None else evidence.meaning
    covered = coverage(new, old)
    near = meaning is not None and meaning >= DUPLICATE[SimilarityMethod.COSINE]
    similarity = covered if meaning is None else meaning
    return Neighbour(
        entry_id=entry.id,
        version=entry.version,
        similarity=similarity if lasts and not says_other(new, old) else 0.0,
        says_same=lasts and (says_same(new, old, is_near=near) if is_whole else text == other),
        contradicts=is_whole and contradicts(new, old),
    )


async def _load_known(context: OperationContext, entry: Entry, to: Tier) -> KnownOfCandidate:
    context.decide_by_row()
    made = replace(entry, tier=to, kind=None, ttl=None, expires_at=None)
    end = (await with_lifetime(context, made)).expires_at
    transaction = context.transaction
    since = await last_sequence(transaction)
    if to not in LASTING:
        return KnownOfCandidate(end, since)
    uses = (await transaction.recall.uses([entry.id])).get(entry.id, NO_USES)
    ids = await transaction.edges.sources(USED, [entry.id], _MOST_CONTEXTS)
    places = {
        one.scope.session_id or one.scope.task_id or one.created_by
        for one in await transaction.entries.get_many(ids, context.now)
        if one.kind == CONTEXT.name
    }
    return KnownOfCandidate(end, since, uses.outcomes, len(places))
