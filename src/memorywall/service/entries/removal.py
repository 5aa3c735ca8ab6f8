"""The only functions that remove entries: each removes the row and appends an event about it. And
what goes with a replaced value."""

from __future__ import annotations

import msgspec

from memorywall.records.attached_members import FILENAME, attachment_of
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


async def remove_replaced_members(context: OperationContext, old: Entry, new: Entry) -> None:
    """Removes the attachments with members of a value that has been replaced, and those of writers
    that have stopped. That of the present value stays, and so does that of a corrected value, which
    can be restored.

    old, new: the entry before and after, with its value in clear text; or a proposal as `new`
    """
    kept = attachment_of(new.value)
    if kept is None and attachment_of(old.value) is None:
        return
    if new.id != old.id or new.provenance.correction is not None:
        return
    attachments = context.transaction.attachments
    for one in await attachments.list_of_entry(new.id):
        if one.filename == FILENAME and one.id != kept:
            await attachments.remove(one.id)
