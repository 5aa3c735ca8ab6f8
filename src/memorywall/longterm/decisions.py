"""The decisions of promotions, as they are stored: each once, under the name of its candidate."""

from __future__ import annotations

import hashlib
from typing import Any, Final, NamedTuple, cast

import msgspec
from msgspec.structs import replace

from memorywall.kinds.promotions import CANDIDATE, PROMOTION, RESULT, DecisionWord, Promotion
from memorywall.records.decision import Verb
from memorywall.records.entry import EMPTY_SCOPE, Entry
from memorywall.records.errors import ResourceNotFoundError
from memorywall.records.filter import EntryFilter, ValueIndex
from memorywall.records.tier import Tier
from memorywall.service.access.targets import load_target
from memorywall.service.entries.governed_entries import make_governed_entry
from memorywall.service.entries.matches import find_matches
from memorywall.service.entries.writes import create_new_entry, make_next_version, replace_entry
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.validation import encode_value

PROMOTIONS: Final = "promotions"
"""The namespace of decisions, in the memory of the agent that asked for them."""
_decode = msgspec.json.Decoder(Promotion).decode


class StoredPromotion(NamedTuple):
    """A decision and its entry; the entry is None for a rehearsal."""

    entry: Entry | None
    value: Promotion


def decision_key(*named: str) -> str:
    """Returns the name of a decision about a candidate at its version, for one target."""
    return hashlib.sha256("\0".join(named).encode()).hexdigest()[:32]


async def find_decision(context: OperationContext, key: str) -> StoredPromotion | None:
    """Returns the decision of a name of the caller, or None."""
    owner = context.principal.id
    entry = await context.transaction.entries.find(Tier.EPISODIC, owner, PROMOTIONS, key, None)
    if entry is None or entry.kind != PROMOTION.name:
        return None
    return await _read(context, entry)


async def load_decision(context: OperationContext, entry_id: str, verb: Verb) -> StoredPromotion:
    """Returns a decision by its id. Raises ResourceNotFoundError, MemoryAccessError."""
    entry = await context.transaction.entries.get(entry_id, context.now)
    if entry is None or entry.kind != PROMOTION.name:
        context.decide_by_row()
        raise ResourceNotFoundError("there is no such promotion")
    context.authorize(verb, await load_target(context, verb, entry))
    return await _read(context, entry)


async def _read(context: OperationContext, entry: Entry) -> StoredPromotion:
    opened = await context.service.cipher.open(context.transaction, entry)
    return StoredPromotion(entry, _decode(opened.value))


async def request_decision(context: OperationContext, candidate: Entry, to: Tier) -> None:
    """Leaves the decision about a candidate of many statements, such as a session, to the job that
    judges; once for each version."""
    key = decision_key(candidate.id, str(candidate.version), to)
    if await find_decision(context, key) is not None:
        return
    wanted = Promotion(
        status="pending",
        candidate=candidate.id,
        candidate_version=candidate.version,
        source_tier=candidate.tier,
        to=to,
        promoted_by=context.principal.actor,
        due=context.now,
    )
    await record_decision(context, key, wanted, candidate)


async def record_decision(
    context: OperationContext,
    key: str,
    decided: Promotion,
    candidate: Entry,
    known: StoredPromotion | None = None,
) -> StoredPromotion:
    """Stores a decision under its name. Its event has the score, its parts and the reason.

    known: the decision of this name that it takes the place of; default: there is none
    """
    data = {
        "decision": decided.status,
        "candidate": decided.candidate,
        "result": decided.result,
        "score": decided.score,
        "parts": msgspec.to_builtins(decided.parts),
        "rule": decided.rule,
    }
    if known is not None and known.entry is not None:
        return await change_decision(context, known.entry, decided, data)
    entry = make_governed_entry(
        context,
        PROMOTION,
        decided,
        owner=context.principal.id,
        namespace=PROMOTIONS,
        key=key,
        scope=EMPTY_SCOPE,
        subjects=candidate.subjects,
    )
    # What the candidate hides, such as the names of people, its decision hides as well.
    entry = replace(entry, sensitivity=candidate.sensitivity)
    stored = await create_new_entry(context, entry, policy="keep", data=data)
    return StoredPromotion(stored, decided)


async def change_decision(
    context: OperationContext, entry: Entry, decided: Promotion, data: dict[str, Any]
) -> StoredPromotion:
    """Stores the next version of a decision.

    data: what its event says
    """
    opened = await context.service.cipher.open(context.transaction, entry)
    changed = make_next_version(context, opened, encode_value(cast(dict[str, Any], decided)))
    stored = await replace_entry(context, entry, changed, policy="keep", data=data)
    return StoredPromotion(stored, decided)


async def list_decisions(
    context: OperationContext,
    decision: DecisionWord | None,
    candidate: str | None,
    result: str | None,
    limit: int,
) -> list[StoredPromotion]:
    """Returns decisions of the caller, newest first.

    decision: only with this decision
    candidate, result: only those about this entry; only those that made this entry
    """
    relation, target = (CANDIDATE, candidate) if candidate is not None else (RESULT, result)
    index = None
    if target is not None:
        index = ValueIndex(relation=relation, targets=(target,), in_all_tiers=True)
    # There are few decisions about one entry, and all of them are read to find those of both.
    is_both = candidate is not None and result is not None
    wanted = EntryFilter(
        tenant=context.tenant,
        tiers=(Tier.EPISODIC,),
        agent_id=context.principal.id,
        kind=PROMOTION.name,
        statuses=() if decision is None else (decision,),
        value_index=index,
        limit=None if is_both else limit,
        counted=False,
    )
    page = await find_matches(context, wanted)
    found = [StoredPromotion(one, _decode(one.value)) for one in page.entries]
    return [one for one in found if not is_both or one.value.result == result][:limit]
