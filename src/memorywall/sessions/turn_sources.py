"""The entries that turns name as their sources."""

from __future__ import annotations

from memorywall.kinds.sessions import source_entry
from memorywall.records.decision import Verb
from memorywall.service.access.targets import load_target
from memorywall.service.requests.operation_context import OperationContext


async def source_version(context: OperationContext, source: str | None) -> int | None:
    """Returns the present version of the entry that the source of a turn names; None for another
    source, and for an entry that is missing or that the principal may not read."""
    named = source_entry(source)
    entry = None if named is None else await context.transaction.entries.get(named, context.now)
    if entry is None or not context.allows(Verb.READ, await load_target(context, Verb.READ, entry)):
        return None
    return entry.version
