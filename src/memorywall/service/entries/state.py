"""The only function that sets the state of an entry.

Lists, searches and contexts show live entries. What leaves that state also leaves what the contexts
of a session keep, and a stored context names it as erased.
"""

from __future__ import annotations

from msgspec.structs import replace

from memorywall.records.draft import EntryPatch
from memorywall.records.entry import Entry, EntryState
from memorywall.records.errors import TransitionError
from memorywall.service.entries.provenance import update_provenance
from memorywall.service.entries.writes import replace_entry
from memorywall.service.requests.operation_context import OperationContext

_TRANSITIONS: dict[EntryState, frozenset[EntryState]] = {
    "live": frozenset({"cold", "subsumed", "superseded", "withdrawn", "quarantined"}),
    "cold": frozenset({"live", "subsumed", "superseded", "withdrawn", "quarantined"}),
    "subsumed": frozenset({"live", "withdrawn", "quarantined"}),
    "superseded": frozenset({"live", "withdrawn", "quarantined"}),
    "withdrawn": frozenset({"live"}),
    "quarantined": frozenset({"live", "withdrawn"}),
}
"""The states that may follow each state."""


async def set_state(
    context: OperationContext,
    entry: Entry,
    state: EntryState,
    *,
    superseded_by: str | None = None,
) -> Entry:
    """Stores the next version of an entry that was read in this transaction, with another state,
    and returns it with its value in clear text. The event of the update names both states.

    entry: the entry as read, with its value sealed
    superseded_by: the id of the entry that supersedes it; default: none

    Raises TransitionError for a state that may not follow that of the entry, and
    KeyUnavailableError.
    """
    if state not in _TRANSITIONS[entry.state]:
        allowed = ", ".join(sorted(_TRANSITIONS[entry.state]))
        raise TransitionError(f"the state of an entry that is {entry.state} may become: {allowed}")
    opened = await context.service.cipher.open(context.transaction, entry)
    new = replace(
        opened,
        state=state,
        version=entry.version + 1,
        updated_at=context.now,
        curated_by=context.principal.id if not entry.owner else None,
    )
    new = update_provenance(context, opened, new, EntryPatch())
    new = replace(new, provenance=replace(new.provenance, superseded_by=superseded_by))
    data = {"state": state, "previous_state": entry.state}
    # The value stays as it is, so the policy of personal data has nothing to decide.
    return await replace_entry(context, entry, new, policy="keep", data=data)
