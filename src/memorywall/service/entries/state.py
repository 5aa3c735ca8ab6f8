"""The only function that sets the state of an entry.

Lists, searches and contexts show live entries. What leaves that state also leaves what the contexts
of a session keep, and a stored context names it as erased.
"""

from __future__ import annotations

from msgspec.structs import replace

from memorywall.kinds.registry import spec_of
from memorywall.records.clock import after
from memorywall.records.draft import EntryPatch
from memorywall.records.entry import Entry, EntryState, Source, Withdrawal
from memorywall.records.errors import TransitionError
from memorywall.service.entries.provenance import update_provenance
from memorywall.service.entries.writes import create_new_entry, make_next_version, replace_entry
from memorywall.service.requests.operation_context import OperationContext

_TRANSITIONS: dict[EntryState, frozenset[EntryState]] = {
    "live": frozenset({"cold", "subsumed", "superseded", "withdrawn", "quarantined"}),
    "cold": frozenset({"live", "subsumed", "superseded", "withdrawn", "quarantined"}),
    "subsumed": frozenset({"live", "withdrawn", "quarantined"}),
    "superseded": frozenset({"live", "withdrawn", "quarantined"}),
    "withdrawn": frozenset({"live"}),
    "quarantined": frozenset({"live", "withdrawn"}),
}
"""The states that may follow each state. What takes a withdrawal back restores the state before."""


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
    superseded_by: the id of the entry that supersedes it; default: that it has, until it is live

    Raises TransitionError for a state that may not follow that of the entry, and
    KeyUnavailableError.
    """
    if state not in _TRANSITIONS[entry.state]:
        allowed = ", ".join(sorted(_TRANSITIONS[entry.state]))
        raise TransitionError(f"the state of an entry that is {entry.state} may become: {allowed}")
    return await _store_state(context, entry, state, superseded_by=superseded_by)


async def _store_state(
    context: OperationContext,
    entry: Entry,
    state: EntryState,
    *,
    superseded_by: str | None = None,
    withdrawal: Withdrawal | None = None,
    is_consequence: bool = False,
) -> Entry:
    opened = await context.service.cipher.open(context.transaction, entry)
    expires_at = _expiry_in(context, entry, withdrawal)
    new = make_next_version(context, opened, state=state, expires_at=expires_at)
    if not is_consequence:
        new = replace(new, curated_by=context.principal.id if not entry.owner else None)
        new = update_provenance(context, opened, new, EntryPatch())
    if superseded_by is None and state != "live":
        superseded_by = new.provenance.superseded_by
    provenance = replace(new.provenance, superseded_by=superseded_by, withdrawal=withdrawal)
    new = replace(new, provenance=provenance)
    data = {"state": state, "previous_state": entry.state}
    # The value stays as it is, so the policy of personal data has nothing to decide.
    return await replace_entry(context, entry, new, policy="keep", data=data)


async def withdraw(
    context: OperationContext,
    entry: Entry,
    by: Source,
    reason: str | None = None,
    *,
    is_consequence: bool = False,
) -> Entry:
    """Withdraws an entry like `set_state`, or adds to why it is withdrawn.

    by: see `Withdrawal`
    reason: of its own retraction; default: none
    is_consequence: whether the change follows from that of another entry, so that the caller does
        not count as its last writer; default: false
    """
    known = entry.provenance.withdrawal
    if entry.state != "withdrawn" or known is None:
        known = Withdrawal(by=(), state=entry.state, expires_at=entry.expires_at)
    given = replace(known, by=(*known.by, by), reason=reason or known.reason)
    return await _store_state(
        context, entry, "withdrawn", withdrawal=given, is_consequence=is_consequence
    )


async def take_back(
    context: OperationContext,
    entry: Entry,
    by: Source | None = None,
    *,
    is_consequence: bool = False,
) -> Entry:
    """Takes back why an entry is withdrawn, and returns it in the state that it had before, or
    still withdrawn if there are other reasons.

    by: the reason that is taken back; default: all
    is_consequence: see `withdraw`
    """
    known = entry.provenance.withdrawal
    if known is None:
        return await set_state(context, entry, "live")
    left = () if by is None else tuple(one for one in known.by if one != by)
    return await _store_state(
        context,
        entry,
        "withdrawn" if left else known.state,
        withdrawal=replace(known, by=left) if left else None,
        is_consequence=is_consequence,
    )


async def keep_earlier(context: OperationContext, opened: Entry, kept_id: str, by: Source) -> None:
    """Stores the value from before a correction as a withdrawn entry of its own, which expires when
    its retention ends. It counts toward no capacity.

    opened: the entry before the correction, with its value in clear text
    by: the entry at the version that the correction made
    """
    withdrawal = Withdrawal(by=(by,), expires_at=opened.expires_at)
    kept = replace(
        opened,
        id=kept_id,
        key=kept_id,
        version=1,
        kind=None,
        status=None,
        due_at=None,
        listed=False,
        pinned=False,
        state="withdrawn",
        expires_at=_retention_end(context, opened),
        provenance=replace(opened.provenance, withdrawal=withdrawal),
    )
    await create_new_entry(context, kept, policy="keep")


def _expiry_in(
    context: OperationContext, entry: Entry, withdrawal: Withdrawal | None
) -> str | None:
    """Returns when an entry expires in its next state: a withdrawn one when its retention ends,
    unless it lasts as long as what it belongs to."""
    if withdrawal is None:
        known = entry.provenance.withdrawal
        return entry.expires_at if known is None else known.expires_at
    spec = spec_of(entry.kind)
    if entry.state == "withdrawn" or (spec is not None and spec.lifetime == ""):
        return entry.expires_at
    return _retention_end(context, entry)


def _retention_end(context: OperationContext, entry: Entry) -> str:
    """Returns when an entry that is withdrawn now expires."""
    ends = after(context.moment, context.service.settings.withdrawn_retention)
    return ends if entry.expires_at is None else min(ends, entry.expires_at)
