"""Saved states of a session: bytes that a framework keeps under a name, with their parent.

Content that is too large for an entry goes to an attachment of the entry, as that of checkpoints.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec.structs import replace

from memorywall.coordination.attachment_content import attach_content, load_content
from memorywall.kinds.sessions import SAVED_STATE, SavedState
from memorywall.records.decision import Verb
from memorywall.records.entry import VALUE_LIMIT, Entry
from memorywall.records.errors import (
    KeyUnavailableError,
    ResourceNotFoundError,
)
from memorywall.records.event import EventType
from memorywall.records.identifiers import name_forms
from memorywall.records.tier import Tier
from memorywall.service.entries.governed_entries import read_value, read_values
from memorywall.service.entries.removal import remove_entry
from memorywall.service.entries.writes import create_new_entry
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.validation import check_name
from memorywall.sessions.access import check_open, load_session
from memorywall.sessions.stored import NAMESPACES, LoadedSession, load_counters, make_entry


@dataclass(frozen=True, slots=True)
class StoredState:
    """A saved state and its entry. In lists `data` may be in the attachment only."""

    entry: Entry
    state: SavedState


async def put(
    context: OperationContext,
    session_id: str,
    name: str,
    data: bytes,
    parent: str | None,
    metadata: dict[str, Any],
) -> StoredState:
    """Saves a state of a session; one of this name is replaced.

    parent: the name of the state that it follows, which need not be there; None for none
    metadata: free JSON
    Raises ValidationError, ValueTooLargeError, ResourceNotFoundError, MemoryAccessError,
    SessionClosedError, SessionQuarantinedError, ResourceConflictError.
    """
    name = check_name("name", name, without="/")
    if parent is not None:
        parent = check_name("parent", parent, without="/")
    loaded = await load_session(context, session_id, Verb.CREATE)
    check_open(loaded, await load_counters(context, loaded.id), context.moment)
    if (old := await _find(context, loaded, name)) is not None:
        await remove_entry(context, EventType.DELETED, old)
    state = SavedState(parent=parent, metadata=metadata, size=len(data), data=data)
    entry_id = context.service.ids.next("mem")
    stored = state
    if len(msgspec.json.encode(state)) > VALUE_LIMIT:
        attachment = await attach_content(
            context, entry_id, loaded.owner, "data", data, mime_type="application/octet-stream"
        )
        stored = replace(state, data=b"", attachment=attachment)
    entry = make_entry(
        context, loaded, SAVED_STATE, name, stored, entry_id=entry_id, field="metadata"
    )
    return StoredState(await create_new_entry(context, entry), state)


async def get(context: OperationContext, session_id: str, name: str) -> StoredState:
    """Returns a saved state with its data. Raises ResourceNotFoundError, MemoryAccessError,
    KeyUnavailableError."""
    loaded = await load_session(context, session_id, Verb.READ)
    entry = await _existing(context, loaded, name)
    state = await read_value(context, entry, SavedState)
    if state.attachment is None:
        return StoredState(entry, state)
    attachment = await context.transaction.attachments.get(state.attachment)
    if attachment is None:
        raise KeyUnavailableError("the attachment of the saved state is missing")
    return StoredState(entry, replace(state, data=await load_content(context, attachment)))


async def list_states(
    context: OperationContext, session_id: str, *, after: str, before: str | None, limit: int
) -> list[StoredState]:
    """Returns up to `limit` saved states in the reverse order of their names.

    after, before: only those with names after, and before, this one; "" and None for all
    Raises ValidationError, ResourceNotFoundError, MemoryAccessError.
    """
    if after:
        check_name("after_name", after)
    if before is not None:
        check_name("before_name", before)
    loaded = await load_session(context, session_id, Verb.READ)
    bounds = {} if before is None else {"before": before}
    entries = await context.transaction.entries.of_session(
        loaded.id, SAVED_STATE.name, loaded.owner, limit, after=after, newest_first=True, **bounds
    )
    return list(map(StoredState, entries, await read_values(context, entries, SavedState)))


async def delete(context: OperationContext, session_id: str, name: str) -> None:
    """Deletes a saved state; those that name it as their parent stay. Raises
    ResourceNotFoundError, MemoryAccessError."""
    loaded = await load_session(context, session_id, Verb.DELETE)
    await remove_entry(context, EventType.DELETED, await _existing(context, loaded, name))


async def _existing(context: OperationContext, loaded: LoadedSession, name: str) -> Entry:
    entry = await _find(context, loaded, name)
    if entry is None:
        raise ResourceNotFoundError("the session has no such saved state; list its saved states")
    return entry


async def _find(context: OperationContext, loaded: LoadedSession, name: str) -> Entry | None:
    for form in name_forms(name):
        entry = await context.transaction.entries.find(
            Tier.SESSION, loaded.owner, NAMESPACES[SAVED_STATE.name], form, loaded.id
        )
        if entry is not None and entry.kind == SAVED_STATE.name:
            return entry
    return None
