"""The only functions that write entries: each redacts, seals, stores and appends an event."""

from __future__ import annotations

from typing import Any

import msgspec

from memorywall.records.entry import Entry
from memorywall.records.event import EventType
from memorywall.service.event_log import append_entry_event
from memorywall.service.meaning import to_stored
from memorywall.service.operation_context import OperationContext
from memorywall.service.redaction import redact_entry
from memorywall.storage.sql.record_table import REUSE_HISTOGRAMS
from memorywall.tiers import TIERS


async def insert_entry(
    context: OperationContext, entry: Entry, *, data: dict[str, Any] | None = None
) -> bool:
    """Stores a new entry. Returns False without a change if its unique name is taken.

    data: see `append_entry_event`
    """
    entry = await redact_entry(context, entry)
    stored = await to_stored(context, entry)
    if not await context.transaction.entries.insert(stored, context.now):
        return False
    await append_entry_event(context, EventType.CREATED, entry, stored=stored, data=data)
    return True


async def replace_entry(
    context: OperationContext, old: Entry, new: Entry, *, data: dict[str, Any] | None = None
) -> None:
    """Stores the next version of an entry that was read in this transaction.

    old: the entry as read, with its value sealed
    new: the next version, with its value in clear text
    data: see `append_entry_event`
    """
    # The namespace of an opened entry may name a subject whose digest the stored name has.
    new = await redact_entry(context, new)
    new = msgspec.structs.replace(new, namespace=old.namespace)
    stored = await to_stored(context, new)
    keep_old = TIERS[old.tier].durability.versioned
    await context.transaction.entries.replace(old, stored, keep_old=keep_old)
    await append_entry_event(
        context, EventType.UPDATED, new, previous_version=old.version, stored=stored, data=data
    )


async def remove_entry(
    context: OperationContext, kind: EventType, entry: Entry, *, by_system: bool = False
) -> None:
    """Removes an entry permanently and appends an event.

    kind: the event, such as `EventType.DELETED`
    by_system: whether the server removes the entry, as on expiry or eviction; default: false
    """
    await context.transaction.entries.remove(entry)
    await append_entry_event(context, kind, entry, by_system=by_system)


async def forget_entry(context: OperationContext, entry: Entry) -> None:
    """Removes an entry permanently, with every occurrence of its names in the log.

    The events stay in the chain without their content. The event of the removal contains no names.
    """
    seqs = await context.transaction.events.seqs_of_entries((entry.id,))
    nameless = msgspec.structs.replace(entry, namespace="", key="", tags=())
    await context.transaction.entries.remove(entry)
    await append_entry_event(context, EventType.DELETED, nameless)
    await context.transaction.events.erase_content(seqs)
    # The histogram counts uses of this entry, and its namespace may name a person.
    await context.transaction.records(REUSE_HISTOGRAMS).remove(entry.namespace)


async def take_out_entry(context: OperationContext, entry: Entry) -> None:
    """Removes an entry permanently without an event; another event, such as an archive, covers
    it."""
    await context.transaction.entries.remove(entry)
