"""Shows a stored context again, from the entries that it names."""

from __future__ import annotations

import json
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from memorywall.context.item import Compiled, ContextItem, Segment, SegmentName, Slices
from memorywall.context.sources import (
    CURRENT_SOURCE,
    LIVE_CLAIM,
    WHOLE,
    item_of,
    state_item,
    turn_item,
)
from memorywall.context.summary import shorten
from memorywall.context.working_items import working_item
from memorywall.coordination.attachment_content import load_content
from memorywall.kinds.contexts import ContextPart, StoredContext
from memorywall.kinds.sessions import SUMMARY, TURN, Turn
from memorywall.kinds.working_memory import SCRATCH
from memorywall.records.decision import Verb
from memorywall.records.entry import Entry
from memorywall.records.errors import KeyUnavailableError
from memorywall.records.tier import Tier
from memorywall.service.access.targets import load_namespace_target, load_target
from memorywall.service.entries.governed_entries import MOST_TOKENS_IN_LOOP, read_value
from memorywall.service.entries.provenance import load_context_entry
from memorywall.service.requests.operation_context import OperationContext
from memorywall.sessions.access import load_session
from memorywall.sessions.large_parts import restore_turn
from memorywall.tokens.estimate import estimate

Rebuilt = tuple[Compiled, list[str], list[str]]
_PARTS_AT_ONCE = 200
_PART_OF_EARLIER = 5
"""The part of the room that the summary of a context had before its size was stored."""
_SEGMENT_OF_TIER: dict[Tier, SegmentName] = {
    Tier.SEMANTIC: "semantic", Tier.EPISODIC: "episodic", Tier.SESSION: "turns",
    Tier.SHARED: "shared", Tier.PROCEDURAL: "procedural", Tier.WORKING: "working",
}  # fmt: skip
_OF_SESSION = frozenset({TURN.name, SUMMARY.name})


async def load_context(
    context: OperationContext, context_id: str, verb: Verb
) -> tuple[Entry, StoredContext]:
    """Returns a stored context of the caller, with its value in clear text.

    Raises ResourceNotFoundError, also for the context of another agent, MemoryAccessError, and
    WorkNeededError for many items.
    """
    entry = await load_context_entry(context, context_id, verb)
    stored = await _with_parts(context, await read_value(context, entry, StoredContext))
    if stored.session_id is not None:
        await load_session(context, stored.session_id, Verb.READ)
    return entry, stored


async def _with_parts(context: OperationContext, stored: StoredContext) -> StoredContext:
    if stored.attachment is None:
        return stored
    context.require_long_run()
    attachment = await context.transaction.attachments.get(stored.attachment)
    if attachment is None:
        raise KeyUnavailableError("the attachment of the context is missing")
    content = await load_content(context, attachment)
    parts = msgspec.json.decode(content, type=tuple[ContextPart, ...])
    return replace(stored, parts=parts)


async def rebuild(context: OperationContext, entry: Entry, stored: StoredContext) -> Rebuilt:
    """Returns a stored context, the ids of items whose version is not kept, and the ids of items
    that were deleted, are not live, or may not be read any more. Raises WorkNeededError for long
    ones."""
    if stored.tokens > MOST_TOKENS_IN_LOOP:
        context.require_long_run()
    segments: dict[str, list[ContextItem]] = {}
    changed: list[str] = []
    erased: list[str] = []
    ids = [part.id for part in stored.parts if part.content is None]
    entries = context.transaction.entries
    current: dict[str, Entry] = {}
    for start in range(0, len(ids), _PARTS_AT_ONCE):
        page = await entries.get_many(ids[start : start + _PARTS_AT_ONCE], context.now)
        current |= {one.id: one for one in page}
    shows_claims = await _may_read_claims(context, stored)
    for place, part in enumerate(stored.parts):
        if place % _PARTS_AT_ONCE == 0:
            await context.transaction.give_way()
        item: ContextItem | None
        if part.content is not None:
            if part.reason == LIVE_CLAIM and not shows_claims:
                erased.append(part.id)
                continue
            item = _of_request(part)
        else:
            found = current.get(part.id)
            is_live = found is not None and found.state == "live"
            if found is None or not is_live or not await _may_read(context, found, entry):
                erased.append(part.id)
                continue
            item = await _item(context, found, entry, stored, part)
            if item is None:
                changed.append(part.id)
                continue
        segments.setdefault(part.segment, []).append(
            replace(
                item,
                tokens=part.tokens,
                reason=part.reason,
                provenance=part.provenance,
                source_changed=part.source_changed,
                contradicted_by=part.contradicted_by,
            )
        )
    names = dict.fromkeys(part.segment for part in stored.parts)
    compiled = Compiled(
        window=stored.window,
        reserve=stored.reserve,
        tokens=stored.tokens,
        segments=tuple(
            Segment(
                name=cast(SegmentName, name),
                budget=stored.budgets.get(name, 0),
                tokens=stored.segment_tokens.get(name, 0),
                items=tuple(segments.get(name, ())),
            )
            for name in names
        ),
        dropped=(),
        slices=Slices(kept={}),
    )
    return compiled, changed, erased


async def _may_read(context: OperationContext, found: Entry, entry: Entry) -> bool:
    """Returns whether the caller may read an entry of a context.

    The turns and summaries of its session are read by every participant, as in the session itself;
    `load_context` decides that. Every other entry needs its own decision, whatever its scope names.

    entry: that of the context, which belongs to the owner of the session
    """
    target = await load_target(context, Verb.READ, found)
    session = entry.scope.session_id
    is_of_session = session is not None and found.scope.session_id == session
    if is_of_session and found.kind in _OF_SESSION and found.owner == entry.owner:
        target = replace(target, owner=context.principal.id)
    return context.allows(Verb.READ, target)


async def _may_read_claims(context: OperationContext, stored: StoredContext) -> bool:
    """Returns whether the caller may read the scope of shared state whose live claims a context
    names. A context that was stored without its scope shows no claims."""
    if stored.scope is None:
        return False
    target = await load_namespace_target(context, Tier.SHARED, stored.scope)
    return context.allows(Verb.READ, target)


async def _item(
    context: OperationContext, found: Entry, entry: Entry, stored: StoredContext, part: ContextPart
) -> ContextItem | None:
    """Returns an item at the version that the context had; None if that version is not kept."""
    if found.version != part.version:
        earlier = await context.transaction.history.get(found.id, part.version)
        if earlier is None:
            return None
        found = earlier
    opened = await context.service.cipher.open(context.transaction, found)
    if part.segment == "summary":
        summary = item_of(opened, "summary", moment=entry.created_at, reason="summary")
        largest = stored.largest_summary or (stored.window - stored.reserve) // _PART_OF_EARLIER
        return shorten(summary, largest, estimate)
    if opened.kind == SCRATCH.name:
        return working_item(opened, part.reason)
    if part.reason == WHOLE:
        context.require_long_run()
        turn = await restore_turn(context, await read_value(context, found, Turn))
        return turn_item(found, turn, entry.created_at)
    segment = cast(SegmentName, part.segment)
    if part.segment == "added":
        is_source = part.reason == CURRENT_SOURCE
        segment = "semantic" if is_source else _SEGMENT_OF_TIER[found.tier]
    if segment == "shared" and part.reason != CURRENT_SOURCE:
        item = state_item(opened, moment=entry.created_at, reason=part.reason)
    else:
        item = item_of(opened, segment, moment=entry.created_at, reason=part.reason)
    return replace(item, quoted=True) if part.segment == "added" and item.sequence else item


def _of_request(part: ContextPart) -> ContextItem:
    content: Any = part.content
    if part.segment == "user" and content.startswith("["):
        try:
            content = json.loads(content)
        except ValueError:
            content = part.content
    return ContextItem(id=part.id, segment=cast(SegmentName, part.segment), content=content)
