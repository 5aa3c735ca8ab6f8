"""The only functions that remove entries: each removes the row and appends an event about it."""

from __future__ import annotations

import msgspec

from memorywall.records.entry import Entry
from memorywall.records.event import EventType
from memorywall.service.requests.event_log import append_entry_event
from memorywall.service.requests.operation_context import OperationContext
from memorywall.storage.sql.record_table import REUSE_HISTOGRAMS


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
