"""Takes promotions back: what a decision made goes, and what it superseded holds again."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from memorywall.kinds.promotions import Promotion
from memorywall.longterm.decisions import StoredPromotion, change_decision, load_decision
from memorywall.longterm.judgement import count_evidence
from memorywall.records.decision import Verb
from memorywall.records.entry import Entry
from memorywall.records.errors import TransitionError
from memorywall.records.event import EventType
from memorywall.service.access.targets import load_target
from memorywall.service.entries.corrections import is_retracted, retract
from memorywall.service.entries.removal import remove_entry
from memorywall.service.entries.state import set_state
from memorywall.service.entries.writes import make_next_version, replace_entry
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.validation import encode_value

_decode = msgspec.json.Decoder(dict[str, Any]).decode


async def revert(context: OperationContext, promotion_id: str) -> StoredPromotion:
    """Takes a promotion back.

    Raises ResourceNotFoundError, MemoryAccessError without the right to change what it made, and
    TransitionError for a decision that made nothing.
    """
    found = await load_decision(context, promotion_id, Verb.UPDATE)
    decided = found.value
    if decided.status not in ("promoted", "merged", "deferred"):
        raise TransitionError(f"a decision that is {decided.status} made nothing to take back")
    made = await _load(context, decided.result)
    if made is not None:
        await _take_back(context, decided, made)
    # What has superseded the result holds in place of what the result has superseded.
    is_replaced = made is not None and made.state == "superseded"
    for older_id in () if is_replaced else decided.superseded:
        older = await _load(context, older_id)
        is_its = older is not None and older.provenance.superseded_by == decided.result
        if older is not None and is_its and older.state == "superseded":
            await set_state(context, older, "live")
    assert found.entry is not None  # noqa: S101 - it was loaded by its id
    data = {"decision": "reverted", "candidate": decided.candidate, "result": decided.result}
    return await change_decision(context, found.entry, replace(decided, status="reverted"), data)


async def _load(context: OperationContext, entry_id: str | None) -> Entry | None:
    """Returns an entry that the caller may change; None if it is gone."""
    if entry_id is None:
        return None
    entry = await context.transaction.entries.get(entry_id, context.now)
    if entry is not None:
        context.authorize(Verb.UPDATE, await load_target(context, Verb.UPDATE, entry))
    return entry


async def _take_back(context: OperationContext, decided: Promotion, made: Entry) -> None:
    if decided.status == "deferred":
        await remove_entry(context, EventType.DELETED, made)
    elif decided.status == "merged":
        await _take_evidence_back(context, decided, made)
    elif decided.replaced_version is not None:
        await _restore(context, made, decided.replaced_version)
    elif not is_retracted(made):
        # One that is withdrawn for its source, or superseded, must not come back with that undone.
        await retract(context, made.id, made.version, "its promotion was taken back")


async def _take_evidence_back(context: OperationContext, decided: Promotion, made: Entry) -> None:
    """Removes a candidate from the evidence of the entry that it was merged with."""
    kept = tuple(one for one in made.provenance.evidence if one.id != decided.candidate)
    if kept == made.provenance.evidence:
        return
    opened = await context.service.cipher.open(context.transaction, made)
    value = count_evidence(_decode(opened.value), -1)
    provenance = replace(opened.provenance, evidence=kept)
    new = make_next_version(context, opened, encode_value(value), provenance=provenance)
    await replace_entry(context, made, new, is_decided=True)


async def _restore(context: OperationContext, made: Entry, version: int) -> None:
    """Stores the value of an earlier version again, unless the promoted one was replaced since."""
    opened = await context.service.cipher.open(context.transaction, made)
    if made.version > version + 1:
        promoted = await _version(context, made, version + 1)
        if promoted.value != opened.value:
            raise TransitionError("its result was changed since; correct or retract it instead")
    old = await _version(context, made, version)
    new = make_next_version(
        context,
        opened,
        old.value,
        kind=old.kind,
        kind_version=old.kind_version,
        provenance=old.provenance,
    )
    await replace_entry(context, made, new, is_decided=True)


async def _version(context: OperationContext, entry: Entry, version: int) -> Entry:
    stored = await context.transaction.history.get(entry.id, version)
    if stored is None:
        raise TransitionError("the version that it replaced is not kept any more")
    return await context.service.cipher.open(context.transaction, stored)
