"""What stays of removed entries for the snapshots of OpenWOP runs.

A copy stays when an entry expires or OpenWOP deletes it, and the entry was written by a run or may
be in the snapshot of one. The copy is derived from the entry, so forgetting a person erases it. A
DELETE of RFC-0015 leaves none.
"""

from __future__ import annotations

from msgspec.structs import replace

from memorywall.kinds.openwop import KEPT_MEMORY, READS_MEMORY, AgentMemory, KeptMemory
from memorywall.kinds.registry import spec_of
from memorywall.records.clock import after
from memorywall.records.entry import EMPTY_SCOPE, Entry, Source
from memorywall.records.event import EventType
from memorywall.service.entries.governed_entries import make_governed_entry, read_value
from memorywall.service.entries.removal import remove_entry
from memorywall.service.entries.writes import create_entry
from memorywall.service.requests.operation_context import OperationContext

KEEPER = "openwop-snapshots"
"""The owner of the copies, which is no agent: only the replay of a run reads them."""

KEPT_IN = "openwop-snapshots"
"""The namespace of the copies, whose keys are the ids of the entries."""


async def retire_entry(context: OperationContext, kind: EventType, entry: Entry) -> None:
    """Removes an entry, and keeps a copy if a run may have read it.

    kind: the event of the removal

    Raises KeyUnavailableError.
    """
    spec = spec_of(entry.kind)
    if spec is None or not spec.is_kept_for_runs or not await _is_in_a_run(context, entry):
        await remove_entry(context, kind, entry)
        return
    memory = await read_value(context, entry, AgentMemory)
    await remove_entry(context, kind, entry)
    kept = KeptMemory(
        memory=entry.id,
        content=memory.content,
        created_at=entry.created_at,
        expires_at=entry.expires_at,
    )
    copy = make_governed_entry(
        context,
        KEPT_MEMORY,
        kept,
        owner=KEEPER,
        namespace=KEPT_IN,
        key=entry.id,
        scope=EMPTY_SCOPE,
        subjects=entry.subjects,
        expires_at=after(context.moment, context.service.settings.openwop_retention),
    )
    source = Source(id=entry.id, version=entry.version)
    provenance = replace(copy.provenance, derived_from=(source,))
    copy = replace(copy, tags=entry.tags, provenance=provenance)
    await create_entry(context, copy, policy="keep")


async def _is_in_a_run(context: OperationContext, entry: Entry) -> bool:
    """Returns whether a run has written the entry, or was started after it was stored."""
    if entry.scope.session_id is not None:
        return True
    # Ids follow the order of commits, so the events of later runs have greater ids.
    later = await context.transaction.edges.sources(READS_MEMORY, (entry.namespace,), 1, entry.id)
    return bool(later)
