"""Judges candidates: the rules of a promotion in the order in which they decide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from memorywall.kinds.promotions import DecisionWord
from memorywall.longterm.conflicts import ConflictSide, Resolution, resolve
from memorywall.longterm.criteria import LEAST_SCORE, failed_criterion
from memorywall.longterm.evidence import Measured, Neighbour
from memorywall.longterm.proposals import proposal_for
from memorywall.recall.document import confidence_of
from memorywall.records.decision import Verb
from memorywall.records.entry import Entry, authority_of
from memorywall.records.errors import MemoryCapacityError
from memorywall.records.feature_errors import RuleError
from memorywall.records.principal import PrincipalKind
from memorywall.service.access.targets import load_target
from memorywall.service.entries.admission import PROMOTED, admission_rule
from memorywall.service.requests.namespace_names import find_holder
from memorywall.service.requests.operation_context import OperationContext

CAPACITY: Final = "capacity"
"""The rule that defers what a full tier has no room for."""
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class PromotionVerdict(NamedTuple):
    """What happens to a candidate.

    rule, reason: the rule that decided, and its sentence
    merged_with: the entry that says the same
    conflicts: the entries that say something else, and what happens to each
    holder: the stored entry that has the name of the candidate; None without one
    """

    word: DecisionWord
    rule: str
    reason: str
    merged_with: Entry | None = None
    conflicts: Sequence[tuple[Entry, Resolution]] = ()
    holder: Entry | None = None


async def judge(
    context: OperationContext,
    made: Entry,
    measured: Measured,
) -> PromotionVerdict:
    """Returns what happens to a candidate, by the first rule that decides."""
    if measured.entry.state != "live":
        return PromotionVerdict("rejected", "not_live", f"the candidate is {measured.entry.state}")
    if measured.refused_by is not None:
        return PromotionVerdict("rejected", *measured.refused_by)
    same, others = await _present(context, measured.neighbours)
    stored = None if not made.key else await find_holder(context, made)
    if stored is not None:
        # Whether it says the same tells what it says.
        context.authorize(Verb.READ, await load_target(context, Verb.READ, stored))
        if stored.state != "live":
            reason = f"the entry of this name is {stored.state}"
            return PromotionVerdict("rejected", "not_live", reason)
        holder = await context.service.cipher.open(context.transaction, stored)
        is_about_all = set(holder.subjects) >= set(made.subjects)
        if is_about_all and _decode(holder.value) == measured.value:
            same = [holder, *same]
        else:
            others = [holder, *others]
    if same:
        return PromotionVerdict("merged", "duplicate", "the tier says the same already", same[0])
    failed = failed_criterion(measured.parts)
    if failed is not None:
        return PromotionVerdict("rejected", failed.name, failed.below)
    if measured.score < LEAST_SCORE:
        return PromotionVerdict("rejected", "score", f"the score is below {LEAST_SCORE}")
    conflicts = [(one, resolve(side_of(made), side_of(one))) for one in others]
    word: DecisionWord = "promoted"
    rule, reason = "accepted", "it meets every criterion"
    # What rejects counts more than what defers.
    against = [one for _, one in conflicts if not one.accepts]
    if against:
        worst = min(against, key=lambda one: one.defers)
        word = "deferred" if worst.defers else "rejected"
        rule, reason = worst.value, "it contradicts knowledge of another standing"
    return PromotionVerdict(word, rule, reason, conflicts=conflicts, holder=stored)


def side_of(entry: Entry) -> ConflictSide:
    """Returns what decides about an entry in a conflict.

    entry: with its value in clear text
    """
    value, provenance = _decode(entry.value), entry.provenance
    authority = authority_of(provenance)
    return ConflictSide(
        authority=authority,
        instant=provenance.learned_at or entry.updated_at,
        confidence=confidence_of(value),
        evidence=max(_evidence_count(value) or 0, len(provenance.evidence)),
        is_confirmed=authority == "verified",
    )


def count_evidence(value: dict[str, Any], change: int) -> dict[str, Any]:
    """Returns a value with more or less evidence. The last one is never taken away, and a value
    that counts none stays as it is."""
    count = _evidence_count(value)
    return (
        value if count is None else {**value, "evidence_count": max(count + change, min(count, 1))}
    )


def _evidence_count(value: dict[str, Any]) -> int | None:
    count = value.get("evidence_count")
    return count if isinstance(count, int) and not isinstance(count, bool) else None


async def _present(
    context: OperationContext, neighbours: Sequence[Neighbour]
) -> tuple[list[Entry], list[Entry]]:
    """Returns the neighbours that still are as they were read: those that say the same as the
    candidate, and those that contradict it."""
    same, others = list[Entry](), list[Entry]()
    wanted = {one.entry_id: one for one in neighbours if one.says_same or one.contradicts}
    for entry in await context.transaction.entries.get_many(list(wanted), context.now):
        found = wanted[entry.id]
        if entry.version != found.version or entry.state != "live":
            continue
        if context.allows(Verb.READ, await load_target(context, Verb.READ, entry)):
            opened = await context.service.cipher.open(context.transaction, entry)
            (same if found.says_same else others).append(opened)
    order = [one.entry_id for one in neighbours]
    same.sort(key=lambda one: order.index(one.id))
    return same, others


def verdict_of(refusal: Exception) -> PromotionVerdict:
    """Returns what a refusal to store a candidate means for its promotion."""
    if isinstance(refusal, MemoryCapacityError):
        return PromotionVerdict(
            "deferred", CAPACITY, "the target tier is full; make room and promote again"
        )
    if isinstance(refusal, RuleError):
        return PromotionVerdict("rejected", refusal.rule, refusal.detail)
    return PromotionVerdict(
        "rejected", "schema", "the value does not fit a schema of the namespace"
    )


@admission_rule(PROMOTED)
async def admit_to_closed_tier(context: OperationContext, old: Entry | None, new: Entry) -> Entry:
    """The rule of tiers that a tenant has closed: promotions and people store at once. What an
    agent writes itself is weighed against the value that it would replace, or waits as a
    proposal."""
    is_promoted = new.provenance.promoted_at == context.now
    if is_promoted or context.is_system or context.principal.kind is PrincipalKind.USER:
        return new
    if old is None:
        reason = "the tier takes what agents write by promotion only"
        return proposal_for(context, new, rule="admission", reason=reason)
    opened = await context.service.cipher.open(context.transaction, old)
    if _decode(opened.value) == _decode(new.value):
        return new
    resolution = resolve(side_of(new), side_of(opened))
    if resolution.accepts:
        return new
    if resolution is Resolution.REJECT:
        raise RuleError("the present value has a higher authority", rule=resolution.value)
    reason = "it would replace knowledge of another standing"
    return proposal_for(
        context, new, rule=resolution.value, reason=reason, contradicts=(old.id,), replaces=old.id
    )
