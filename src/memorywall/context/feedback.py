"""Feedback on compiled contexts: what of them was used, and how it ended."""

from __future__ import annotations

from typing import Any, cast

from msgspec.structs import replace

from memorywall.context.showing import load_context
from memorywall.kinds.contexts import StoredContext
from memorywall.records.decision import Verb
from memorywall.records.errors import RequestError
from memorywall.records.recall import ContextOutcomes
from memorywall.service.entries.writes import make_next_version, replace_entry
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.validation import encode_value
from memorywall.sessions.stored import load_counters, store_counters
from memorywall.wire.contexts import ContextOutcomeRequest


async def add(context: OperationContext, context_id: str, body: ContextOutcomeRequest) -> list[str]:
    """Stores feedback on a context, and counts it for the entries of the context.

    Returns the ids of the used entries that no earlier feedback named. Raises RequestError for an
    id that is no entry of the context, ResourceNotFoundError, MemoryAccessError.
    """
    entry, stored = await load_context(context, context_id, Verb.UPDATE)
    known = {part.id for part in stored.parts if part.content is None}
    if not known.issuperset(body.used):
        raise RequestError("`used` names an item that is not an entry of this context")
    fresh = [one for one in dict.fromkeys(body.used) if one not in stored.used]
    used = (*stored.used, *fresh)
    value = replace(stored, used=used, outcome=body.outcome, correction=body.correction)
    if value != stored:
        if value.attachment is not None:
            value = replace(value, parts=())
        encoded = encode_value(cast(dict[str, Any], value))
        await replace_entry(context, entry, make_next_version(context, entry, encoded))
        await context.transaction.recall.add_outcomes(_outcomes(stored, value))
        await _count_tokens(context, stored, value)
        counts = {one: int(one in fresh) for one in used}
        context.service.usage_tracker.count(context.tenant, counts)
    return fresh


async def _count_tokens(
    context: OperationContext, before: StoredContext, after: StoredContext
) -> None:
    """Counts the tokens of the entries of a context with feedback, and of those that were used.

    before: the context with its parts
    after: the same with the new feedback
    """
    entries = [part for part in before.parts if part.content is None]
    fresh = set(after.used) - set(before.used)
    shown = sum(part.tokens for part in entries) if before.outcome is None else 0
    used = sum(part.tokens for part in entries if part.id in fresh)
    context.service.context_tokens.count(shown, used)
    if before.session_id is not None:
        counters = await load_counters(context, before.session_id)
        counters = replace(
            counters,
            context_tokens=(counters.context_tokens or 0) + shown,
            used_tokens=(counters.used_tokens or 0) + used,
        )
        await store_counters(context, counters)


def _outcomes(before: StoredContext, after: StoredContext) -> dict[str, ContextOutcomes]:
    """What feedback changes in the counts of the entries of a context. Later feedback on a context
    takes the place of the earlier one."""
    changes: dict[str, ContextOutcomes] = {}
    for part in before.parts:
        if part.content is None:
            old, new = (_outcome_of(one, part.id) for one in (before, after))
            change = ContextOutcomes(*(b - a for a, b in zip(old, new, strict=True)))
            if any(change):
                changes[part.id] = change
    return changes


def _outcome_of(stored: StoredContext, entry_id: str) -> ContextOutcomes:
    """What the feedback on a context says of an entry that it contains."""
    if stored.outcome is None:
        return ContextOutcomes()
    is_success, is_used = stored.outcome == "success", entry_id in stored.used
    return ContextOutcomes(
        succeeded=int(is_success),
        failed=int(not is_success),
        helped=int(is_success and is_used),
        harmed=int(is_used and not is_success),
    )
