"""Stores a compiled context: its items by reference, and the digests of what it contained."""

from __future__ import annotations

import hashlib
import json

import msgspec
from msgspec.structs import replace

from memorywall.context.creation import CreatedContext
from memorywall.context.item import Compiled, ContextItem, SegmentName
from memorywall.context.rendering import render
from memorywall.context.sources import LIVE_CLAIM
from memorywall.context.tools import LISTED
from memorywall.coordination.attachment_content import attach_content
from memorywall.kinds.contexts import CONTEXT, ContextPart, StoredContext
from memorywall.records.clock import after, parse_duration
from memorywall.records.copier import copier
from memorywall.records.decision import Target, Verb
from memorywall.records.entry import VALUE_LIMIT, Scope
from memorywall.records.tier import Isolation
from memorywall.service.entries.governed_entries import make_governed_entry
from memorywall.service.entries.writes import create_new_entry
from memorywall.service.requests.operation_context import OperationContext
from memorywall.wire.leases import scope_namespace

LIFETIME = "P1D"
"""The time for which a stored context is kept."""
_MOST_PARTS = VALUE_LIMIT // 2
"""The most bytes of the parts in the entry of a context; more go to its attachment."""
_BY_REFERENCE = frozenset(
    {"core", "semantic", "episodic", "shared", "summary", "turns", "procedural", "working"}
)
encode = msgspec.json.Encoder().encode
_stored_item = copier(ContextItem, ContextPart, given=["segment", "digest", "content"])


async def store(
    context: OperationContext,
    created: CreatedContext,
    parts: tuple[ContextPart, ...],
    encoded: bytes,
) -> str:
    """Stores what the context contains, by reference. Raises ValueTooLargeError.

    encoded: the parts as JSON
    """
    body, found, compiled = created.body, created.found, created.compiled
    head = None if found.session is None else found.session.entry
    owner = context.principal.id if head is None else head.owner
    subjects = context.principal.subjects or () if head is None else head.subjects
    target = Target(
        tenant=context.tenant,
        isolation=Isolation.AGENT,
        owner=context.principal.id,
        subjects=subjects,
        place="contexts",
    )
    context.authorize(Verb.CREATE, target)
    value = StoredContext(
        session_id=body.session_id,
        scope=None if body.shared is None else scope_namespace(body.shared, context.principal.id),
        shape=created.shape,
        strategy=body.strategy,
        window=compiled.window,
        reserve=compiled.reserve,
        tokens=compiled.tokens,
        budgets={segment.name: segment.budget for segment in compiled.segments},
        segment_tokens={segment.name: segment.tokens for segment in compiled.segments},
        parts=parts,
        largest_summary=compiled.largest_summary,
        epoch=compiled.slices.epoch,
        first_turn=compiled.slices.first_turn,
        kept={name: list(pairs) for name, pairs in compiled.slices.kept.items()},
    )
    entry_id = context.service.ids.next("mem")
    if len(encoded) > _MOST_PARTS:
        attachment = await attach_content(context, entry_id, owner, "context.json", encoded)
        value = replace(value, parts=(), attachment=attachment)
    entry = make_governed_entry(
        context,
        CONTEXT,
        value,
        owner=owner,
        namespace="contexts",
        key=f"{context.now}.{entry_id}",
        scope=Scope(session_id=body.session_id),
        subjects=subjects,
        entry_id=entry_id,
        expires_at=after(context.moment, parse_duration(LIFETIME)),
    )
    await create_new_entry(context, entry)
    return entry_id


def stored_parts(compiled: Compiled, digests: dict[str, str]) -> tuple[ContextPart, ...]:
    """Returns the items of a context as they are stored: entries by reference, the rest in full.

    digests: of the items, by id
    """
    return tuple(
        _stored_part(segment.name, item, digests[item.id])
        for segment in compiled.segments
        for item in segment.items
    )


def _stored_part(segment: SegmentName, item: ContextItem, digested: str) -> ContextPart:
    of_entry = item.segment in _BY_REFERENCE and item.reason != LIVE_CLAIM
    content = None
    if not of_entry:
        content = item.content if isinstance(item.content, str) else json.dumps(item.content)
    if item.id == LISTED:
        content = item.text
    return _stored_item(item, segment=segment, digest=digested, content=content)


def digest(item: ContextItem) -> str:
    """Returns the digest of an item as a context contains it."""
    content = encode([render(item), item.content, item.tool_calls, item.tool_call_id])
    return hashlib.sha256(content).hexdigest()[:32]


def digests_of(compiled: Compiled) -> dict[str, str]:
    """Returns the digests of the items of a context, by id."""
    return {item.id: digest(item) for item in compiled.all_items}
