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
    ResourceConflictError,
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

_DATA_OF_PAGE = 1 << 20
"""The bytes of data after which a page with data ends."""


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
    *,
    must_create: bool = False,
) -> StoredState:
    """Saves a state of a session; one of this name is replaced.

    parent: the name of the state that it follows, which need not be there; None for none
    metadata: free JSON
    must_create: whether a state of this name is a ResourceConflictError instead
    Raises ValidationError, ValueTooLargeError, ResourceNotFoundError, MemoryAccessError,
    SessionClosedError, SessionQuarantinedError, ResourceConflictError.
    """
    name = check_name("name", name, without="/")
    if parent is not None:
        parent = check_name("parent", parent, without="/")
    loaded = await load_session(context, session_id, Verb.CREATE)
    check_open(loaded, await load_counters(context, loaded.id), context.moment)
    if (old := await _find(context, loaded, name)) is not None:
        if must_create:
            raise ResourceConflictError(
                "the session has a saved state of this name; choose another, or leave out"
                " `If-None-Match` to replace it"
            )
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
    return await _with_data(
        context, StoredState(entry, await read_value(context, entry, SavedState))
    )


async def _with_data(context: OperationContext, stored: StoredState) -> StoredState:
    """Returns a state with the data of its attachment."""
    state = stored.state
    if state.attachment is None:
        return stored
    attachment = await context.transaction.attachments.get(state.attachment)
    if attachment is None:
        raise KeyUnavailableError("the attachment of the saved state is missing")
    return StoredState(stored.entry, replace(state, data=await load_content(context, attachment)))


async def list_states(
    context: OperationContext,
    session_id: str,
    *,
    after: str,
    before: str | None,
    limit: int,
    with_data: bool = False,
) -> tuple[list[StoredState], bool]:
    """Returns up to `limit` saved states in the reverse order of their names, and whether there may
    be more.

    after, before: only those with names after, and before, this one; "" and None for all
    with_data: whether they have their data; there are then as many as have a MiB of it together,
        and at least one
    Raises ValidationError, ResourceNotFoundError, MemoryAccessError, KeyUnavailableError.
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
    states = list(map(StoredState, entries, await read_values(context, entries, SavedState)))
    if not with_data:
        return states, len(states) == limit
    found, size = list[StoredState](), 0
    for one in states:
        if found and size + one.state.size > _DATA_OF_PAGE:
            return found, True
        size += one.state.size
        found.append(await _with_data(context, one))
    return found, len(states) == limit


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
