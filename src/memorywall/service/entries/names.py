"""The names of entries: conflicts about a name or a version, and names that expired entries
have."""

from __future__ import annotations

from typing import Any, NoReturn

from memorywall.records.decision import Verb
from memorywall.records.entry import Entry, is_expired
from memorywall.records.errors import EntryExistsError, MemoryConflictError
from memorywall.records.event import EventType
from memorywall.service.access.targets import load_target
from memorywall.service.entries.removal import remove_entry
from memorywall.service.requests.namespace_names import find_holder, find_holders
from memorywall.service.requests.operation_context import OperationContext


async def remove_expired(context: OperationContext, entry: Entry) -> bool:
    """Removes expired entries with the name of `entry` that the sweep has not removed yet. Returns
    whether the name is free afterwards and was not before."""
    holders = await find_holders(context, entry)
    expired = [one for one in holders if is_expired(one, context.now)]
    for holder in expired:
        await remove_entry(context, EventType.EXPIRED, holder, by_system=True)
    return bool(expired) and len(expired) == len(holders)


async def free_name(context: OperationContext, entry: Entry) -> None:
    """Raises EntryExistsError if the new name of an entry is taken."""
    if not await remove_expired(context, entry):
        await refuse_existing(context, entry)


async def refuse_existing(context: OperationContext, entry: Entry) -> None:
    """Raises EntryExistsError if the entry's name is taken."""
    holder = await find_holder(context, entry)
    if holder is None:
        return
    hint = (
        "an entry with this namespace and key exists; read it, and send its version as `If-Match`"
        " of a PATCH of its id, or of a PUT, to change it"
    )
    raise EntryExistsError(hint, **await _show(context, holder))


async def refuse_version(context: OperationContext, entry: Entry) -> NoReturn:
    """Raises MemoryConflictError, with the entry if the caller may read it."""
    hint = "the entry has another version now; read it, merge, and send the current version"
    raise MemoryConflictError(hint, **await _show(context, entry))


async def _show(context: OperationContext, entry: Entry) -> dict[str, Any]:
    """Returns the conflicting entry for the error: complete, or None if the caller may not read
    it."""
    if not await may_read(context, entry):
        return {}
    current = await context.service.cipher.open(context.transaction, entry)
    return {"current": current, "current_version": current.version}


async def may_read(context: OperationContext, entry: Entry) -> bool:
    """Returns whether the caller may read an entry."""
    return context.allows(Verb.READ, await load_target(context, Verb.READ, entry))
