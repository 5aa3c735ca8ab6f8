"""Promotion: the one way by which memory gets from a tier to one that lasts longer (memory wall,
algorithm 11.9).

A candidate is measured and compared outside of a transaction, because that embeds and searches.
One transaction then decides and stores: the entry, what it supersedes, and the decision. The name
of the decision is that of the candidate at its version and of the target, so that a second attempt,
by another server or after a crash, finds the first one's decision.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final, NamedTuple, get_args

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from memorywall.kinds.promotions import Promotion
from memorywall.kinds.registry import spec_of
from memorywall.kinds.sessions import TURN
from memorywall.kinds.working_memory import SCRATCH
from memorywall.longterm.decisions import (
    StoredPromotion,
    decision_key,
    find_decision,
    record_decision,
)
from memorywall.longterm.evidence import Measured, add_newest, measure_candidate
from memorywall.longterm.judgement import (
    CAPACITY,
    PromotionVerdict,
    count_evidence,
    judge,
    verdict_of,
)
from memorywall.longterm.proposals import proposal_for
from memorywall.recall.index import Index
from memorywall.records.decision import Verb
from memorywall.records.draft import NewEntry
from memorywall.records.entry import SEALED_SENSITIVITIES, Entry, Sensitivity, Source
from memorywall.records.errors import (
    MemoryCapacityError,
    MemoryConflictError,
    MemoryNotFoundError,
    ValidationError,
)
from memorywall.records.feature_errors import RuleError, SchemaViolationError
from memorywall.records.tier import Tier
from memorywall.service.access.subjects import check_reseal, merge_subjects
from memorywall.service.access.targets import load_authorized_entry, load_target
from memorywall.service.entries.checks import CheckedEntry, check_new
from memorywall.service.entries.create import authorize_creation, create_checked
from memorywall.service.entries.namespace_entry import enter_namespace
from memorywall.service.entries.provenance import MOST_SOURCES, add_sources, pass_on_subjects
from memorywall.service.entries.state import set_state
from memorywall.service.entries.value_schemas import check_value
from memorywall.service.entries.writes import create_proposal, make_next_version, replace_entry
from memorywall.service.requests.fencing import guard
from memorywall.service.requests.namespace_names import stored_namespace
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.validation import encode_value
from memorywall.service.runner.operation_runner import OperationTransactions

SOURCES: Final[dict[Tier, frozenset[Tier]]] = {
    Tier.SESSION: frozenset({Tier.WORKING}),
    Tier.EPISODIC: frozenset({Tier.WORKING, Tier.SESSION}),
    Tier.SEMANTIC: frozenset({Tier.EPISODIC}),
    Tier.PROCEDURAL: frozenset({Tier.EPISODIC}),
}
"""The tiers from which memory is promoted to a tier."""
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class PromotionCandidate(NamedTuple):
    """What is to be promoted.

    entry_id: the entry that is promoted
    to: the target tier
    namespace: the namespace of the result
    key: its key; "" for its id
    value, kind: its value; None for that of the candidate
    """

    entry_id: str
    to: Tier
    namespace: str
    key: str = ""
    value: dict[str, Any] | None = None
    kind: str | None = None


class _RehearsalError(Exception):
    """Ends the transaction of a rehearsal, so that nothing of it is stored."""

    def __init__(self, decided: Promotion) -> None:
        super().__init__("a rehearsal stores nothing")
        self.decided = decided


async def promote(
    index: Index,
    transactions: OperationTransactions,
    candidate: PromotionCandidate,
    *,
    dry_run: bool = False,
    is_asked: bool = True,
) -> StoredPromotion:
    """Decides about a candidate, and stores the decision and what follows from it.

    dry_run: whether only the decision is returned; the same code runs, and is taken back
    is_asked: whether somebody asked for this promotion; a rejection of another one is not stored,
        because most of what leaves memory is not worth keeping

    Raises MemoryNotFoundError, MemoryAccessError, and ValidationError for tiers between which
    nothing is promoted, or a value that the target cannot have.
    """
    entry = await transactions.read(_load_candidate, candidate)
    place = (candidate.to, candidate.namespace)
    measured = await measure_candidate(
        index, transactions, entry, candidate.value, *place, is_asked=is_asked
    )
    try:
        if measured.refused_by is None or is_asked:
            return await transactions.write(_settle, index, candidate, measured, dry_run, is_asked)
        verdict = PromotionVerdict("rejected", *measured.refused_by)
    except _RehearsalError as rehearsal:
        return StoredPromotion(None, rehearsal.decided)
    except (MemoryCapacityError, SchemaViolationError, RuleError) as refusal:
        # The transaction is taken back whole; the decision that remains says why.
        verdict = verdict_of(refusal)
    if dry_run or not is_asked:
        rehearsed = await transactions.read(_rehearse, candidate, measured, verdict)
        return StoredPromotion(None, rehearsed)
    return await transactions.write(_record_refusal, candidate, measured, verdict)


async def _load_candidate(context: OperationContext, candidate: PromotionCandidate) -> Entry:
    entry = await load_authorized_entry(context, Verb.READ, candidate.entry_id)
    if entry.tier not in SOURCES.get(candidate.to, frozenset()):
        raise ValidationError(
            f"`to` must be a tier that {entry.tier} memory is promoted to:"
            " working to session or episodic, session to episodic, episodic to semantic or"
            " procedural"
        )
    if not entry.listed and entry.kind not in (None, SCRATCH.name, TURN.name):
        raise ValidationError(f"an entry of kind `{entry.kind}` is never promoted")
    return await context.service.cipher.open(context.transaction, entry)


async def _settle(
    context: OperationContext,
    index: Index,
    candidate: PromotionCandidate,
    measured: Measured,
    dry_run: bool,
    is_asked: bool,
) -> StoredPromotion:
    """Decides about a measured candidate on the present state, and stores what follows."""
    source = await load_authorized_entry(context, Verb.READ, measured.entry.id)
    if source.version != measured.entry.version:
        raise MemoryConflictError("the candidate has changed; promote it again")
    key = _key_of(candidate, measured.entry)
    known = None if dry_run else await find_decision(context, key)
    if known is not None and _is_final(known.value):
        return known
    made = await _draft(context, candidate, measured)
    # Before anything is compared with what the target has.
    await authorize_creation(context, made.entry)
    measured = await add_newest(context, index, measured, made.entry)
    verdict = await judge(context, made.entry, measured)
    result, superseded = None, list[str]()
    if verdict.word == "merged" and verdict.merged_with is not None:
        result = await _merge(context, verdict.merged_with, measured.entry)
    elif verdict.word == "deferred":
        result = await _defer(context, made, verdict)
    elif verdict.word == "promoted":
        result, superseded = await _store(context, made, verdict)
        if result.kind == "proposal":
            verdict = verdict._replace(word="deferred", rule="conflict", reason=_REVIEWED)
    decided = _decided(context, candidate, measured, verdict)
    if result is not None:
        replaced = result.version - 1 if verdict.word == "promoted" else 0
        decided = replace(
            decided,
            result=result.id,
            replaced_version=replaced or None,
            superseded=tuple(superseded),
        )
    if dry_run or (not is_asked and verdict.word == "rejected"):
        raise _RehearsalError(decided)
    return await record_decision(context, key, decided, measured.entry, known)


def _is_final(decided: Promotion) -> bool:
    """Whether a second request returns a decision: room for a candidate may be made."""
    return decided.status != "pending" and decided.rule != CAPACITY


_REVIEWED = "it contradicts knowledge that a person must weigh against it"


async def _draft(
    context: OperationContext, candidate: PromotionCandidate, measured: Measured
) -> CheckedEntry:
    """Returns the entry that a promotion would store, checked like a request for it."""
    source = measured.entry
    spec = spec_of(source.kind)
    fits = spec is not None and spec.tier in (None, candidate.to) and not spec.is_governed
    kind = candidate.kind if candidate.value is not None else (source.kind if fits else None)
    named = [Source(id=source.id, version=source.version)]
    checked = check_new(
        context,
        NewEntry(
            namespace=candidate.namespace,
            key=candidate.key or UNSET,
            value=measured.value,
            memory_type=candidate.to,
            tags=list(source.tags),
            sensitivity=source.sensitivity,
            derived_from=named,
            kind=kind,
            subjects=list(source.subjects),
            source=source.provenance.source,
            scope=None if candidate.to is not Tier.SESSION else source.scope,
        ),
    )
    provenance = replace(
        checked.entry.provenance,
        source_tier=source.tier,
        score=measured.score,
        evidence=tuple(named),
        promoted_by=context.principal.actor,
        promoted_at=context.now,
        learned_at=source.updated_at,
        session=source.scope.session_id,
        task=source.scope.task_id,
    )
    return CheckedEntry(replace(checked.entry, provenance=provenance), checked.sources)


async def _merge(context: OperationContext, existing: Entry, candidate: Entry) -> Entry:
    """Joins the provenance of a candidate to an entry that says the same. An entry that the caller
    may not change, or whose evidence is full, stays as it is."""
    known = existing.provenance.evidence
    source = Source(id=candidate.id, version=candidate.version)
    target = await load_target(context, Verb.UPDATE, existing)
    if source in known or len(known) >= MOST_SOURCES or not context.allows(Verb.UPDATE, target):
        return existing
    stored = await context.transaction.entries.get(existing.id, context.now)
    if stored is None:
        raise MemoryNotFoundError
    joined = make_next_version(
        context,
        existing,
        encode_value(count_evidence(_decode(existing.value), 1)),
        provenance=replace(existing.provenance, evidence=(*known, source)),
    )
    return await replace_entry(context, stored, joined, is_decided=True)


async def _defer(
    context: OperationContext, checked: CheckedEntry, verdict: PromotionVerdict
) -> Entry:
    """Stores a proposal for a candidate that a person must decide about; the same one only once."""
    contradicted = [one.id for one, _ in verdict.conflicts]
    made = await add_sources(context, checked.entry, checked.sources)
    if made.sensitivity in SEALED_SENSITIVITIES:
        made = replace(made, namespace=await stored_namespace(context, made))
    if not made.owner:
        await enter_namespace(context, made.tier, made.namespace, checked.entry.namespace)
    proposal = proposal_for(
        context,
        made,
        rule=verdict.rule,
        reason=verdict.reason,
        contradicts=contradicted,
    )
    return await create_proposal(context, proposal)


async def _store(
    context: OperationContext, made: CheckedEntry, verdict: PromotionVerdict
) -> tuple[Entry, list[str]]:
    """Stores an accepted candidate, and supersedes what it contradicts. Returns the entry and the
    ids of the superseded ones."""
    superseded, holder = list[str](), verdict.holder
    if holder is not None:
        result = await _replace_holder(context, made, holder)
    else:
        result = await create_checked(context, made)
    if result.kind == "proposal":
        return result, superseded
    for older, _ in verdict.conflicts:
        if holder is not None and older.id == holder.id:
            continue
        context.authorize(Verb.UPDATE, await load_target(context, Verb.UPDATE, older))
        stored = await context.transaction.entries.get(older.id, context.now)
        if stored is not None and stored.state == "live":
            await set_state(context, stored, "superseded", superseded_by=result.id)
            superseded.append(older.id)
    return result, superseded


async def _replace_holder(context: OperationContext, made: CheckedEntry, holder: Entry) -> Entry:
    """Stores an accepted candidate as the next version of the entry of its name. The version that
    it replaces is kept as history. The result is about the people of both, and as secret as the
    more secret one."""
    target = await load_target(context, Verb.UPDATE, holder)
    context.authorize(Verb.UPDATE, target)
    await guard(context, holder)
    opened = await context.service.cipher.open(context.transaction, holder)
    sourced = await add_sources(context, made.entry, made.sources)
    sensitivity = max(opened.sensitivity, sourced.sensitivity, key=get_args(Sensitivity).index)
    renewed = make_next_version(
        context,
        opened,
        sourced.value,
        kind=sourced.kind,
        kind_version=sourced.kind_version,
        sensitivity=sensitivity,
        subjects=await merge_subjects(context, opened.subjects, sourced.subjects),
        curated_by=sourced.curated_by,
        provenance=sourced.provenance,
    )
    check_reseal(holder, renewed)
    await check_value(context, target.namespace, renewed)
    result = await replace_entry(context, holder, renewed)
    if result.subjects != opened.subjects:
        await pass_on_subjects(context, opened, result)
    return result


async def _rehearse(
    context: OperationContext,
    candidate: PromotionCandidate,
    measured: Measured,
    verdict: PromotionVerdict,
) -> Promotion:
    context.decide_by_row()
    return _decided(context, candidate, measured, verdict)


async def _record_refusal(
    context: OperationContext,
    candidate: PromotionCandidate,
    measured: Measured,
    verdict: PromotionVerdict,
) -> StoredPromotion:
    await load_authorized_entry(context, Verb.READ, measured.entry.id)
    decided = _decided(context, candidate, measured, verdict)
    key = _key_of(candidate, measured.entry)
    known = await find_decision(context, key)
    return await record_decision(context, key, decided, measured.entry, known)


def _decided(
    context: OperationContext,
    candidate: PromotionCandidate,
    measured: Measured,
    verdict: PromotionVerdict,
) -> Promotion:
    return Promotion(
        status=verdict.word,
        candidate=measured.entry.id,
        candidate_version=measured.entry.version,
        source_tier=measured.entry.tier,
        to=candidate.to,
        namespace=candidate.namespace,
        rule=verdict.rule,
        reason=verdict.reason,
        score=measured.score,
        parts=measured.parts,
        promoted_by=context.principal.actor,
        decided_at=context.now,
    )


def _key_of(candidate: PromotionCandidate, entry: Entry) -> str:
    place = (candidate.to, candidate.namespace, candidate.key)
    given: tuple[str, ...] = ()
    if candidate.value is not None:
        # Another value is another statement, which is decided on its own.
        given = (candidate.kind or "", hashlib.sha256(encode_value(candidate.value)).hexdigest())
    return decision_key(entry.id, str(entry.version), *place, *given)
