"""One memory supersedes another: the older one stays readable by id and leaves lists and searches.

The older entry has the edge, so that only the right to update it is needed.
"""

from __future__ import annotations

from collections.abc import Collection

from memorywall.records.decision import Verb
from memorywall.records.entry import Entry
from memorywall.records.errors import TransitionError, ValidationError
from memorywall.service.access.targets import load_authorized_entry
from memorywall.service.entries.kind_rules import refuse_governed
from memorywall.service.entries.names import refuse_version
from memorywall.service.entries.state import set_state
from memorywall.service.entries.update import hide_unread
from memorywall.service.requests.fencing import guard, require_lease
from memorywall.service.requests.operation_context import OperationContext


async def supersede(context: OperationContext, entry_id: str, version: int, newer_id: str) -> Entry:
    """Marks an entry at `version` as superseded by another one, which the caller can read.

    Raises MemoryNotFoundError for either entry, MemoryAccessError, MemoryConflictError,
    TransitionError for an entry that is superseded or gone from lists already, and ValidationError
    for a newer entry that is the same or no live one.
    """
    entry = await load_changeable(context, entry_id, version)
    if entry.state == "superseded":
        raise TransitionError("the entry is superseded already; reinstate it first")
    if newer_id == entry_id:
        raise ValidationError("`newer_id` must name another entry than the superseded one")
    newer = await load_authorized_entry(context, Verb.READ, newer_id)
    if newer.state != "live":
        raise ValidationError("`newer_id` must name an entry that is live")
    new = await set_state(context, entry, "superseded", superseded_by=newer_id)
    return await hide_unread(context, entry, new)


async def reinstate(context: OperationContext, entry_id: str, version: int) -> Entry:
    """Takes back that an entry at `version` was superseded.

    Raises MemoryNotFoundError, MemoryAccessError, MemoryConflictError, and TransitionError for an
    entry that is not superseded.
    """
    entry = await load_changeable(context, entry_id, version)
    if entry.state != "superseded":
        raise TransitionError(f"the entry is {entry.state} and not superseded")
    return await hide_unread(context, entry, await set_state(context, entry, "live"))


async def load_changeable(
    context: OperationContext,
    entry_id: str,
    version: int | None,
    governed: Collection[str] = (),
) -> Entry:
    """Returns an entry that the caller may update.

    version: the version that it must have; None for any
    governed: the governed kinds that are not refused; default: none

    Raises MemoryNotFoundError, MemoryAccessError, MemoryConflictError, FencedError, and
    ValidationError for other governed kinds.
    """
    require_lease(context)
    entry = await load_authorized_entry(context, Verb.UPDATE, entry_id)
    if version is not None and entry.version != version:
        await refuse_version(context, entry)
    await guard(context, entry)
    if entry.kind not in governed:
        refuse_governed(entry.kind)
    return entry
