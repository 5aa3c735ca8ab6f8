"""Corrects and retracts memory, with what was derived from it, and takes that back.

What was derived from a wrong memory is withdrawn with it: entries that name it as their source,
directly or not, and the summaries and checkpoints of sessions that quote it. Each names the
correction or retraction in its provenance, which takes it back.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from memorywall.kinds.sessions import CHECKPOINT, QUOTES, SUMMARY, TURN
from memorywall.kinds.spec import DERIVED_FROM, WITHDRAWN_BY
from memorywall.records.decision import Verb
from memorywall.records.draft import EntryPatch
from memorywall.records.entry import (
    SEALED_SENSITIVITIES,
    Entry,
    Source,
    ValueCorrection,
)
from memorywall.records.errors import TransitionError, ValidationError
from memorywall.records.event import EventType
from memorywall.redaction.personal_data import apply
from memorywall.service.access.targets import load_target
from memorywall.service.entries.checks import check_patch
from memorywall.service.entries.names import may_read
from memorywall.service.entries.provenance import MOST_DERIVED
from memorywall.service.entries.removal import remove_entry, remove_replaced_members
from memorywall.service.entries.state import keep_earlier, take_back, withdraw
from memorywall.service.entries.supersession import load_changeable
from memorywall.service.entries.update import hide_unread, update_checked
from memorywall.service.entries.writes import make_next_version, replace_entry
from memorywall.service.requests.operation_context import OperationContext
from memorywall.tiers import VERSIONED_TIERS
from memorywall.wire.entries import upgrade_entry

_IN_LOOP = 50
"""The most derived entries that are withdrawn or reinstated in the event loop."""
_MEMBERS = (SUMMARY.name, CHECKPOINT.name)
_OF_CONVERSATION = frozenset({TURN.name, *_MEMBERS})
_TEXTS = ("text", "content")
"""The members of a value that a correction by a text replaces, the first one that is a text."""


class Corrected(NamedTuple):
    """A corrected, retracted or reinstated entry.

    entry: the entry as it is stored, or the proposal that a rule of its kind stored in its place
    others: the ids of the other entries that were withdrawn or reinstated, as far as the caller may
        read them
    hidden: the number of those that it may not read
    """

    entry: Entry
    others: tuple[str, ...] = ()
    hidden: int = 0


async def correct(
    context: OperationContext,
    entry_id: str,
    version: int | None,
    value: dict[str, Any] | UnsetType,
    text: str | UnsetType,
    reason: str,
) -> Corrected:
    """Replaces the value of a wrong entry, and withdraws what was derived from it.

    version: the version that it must have; None for any
    value, text: the right value, or the right text in it; one of them
    reason: why; it is kept in the provenance of the entry unless the entry is sealed

    Raises the errors of an update, TransitionError for a withdrawn entry, and ValidationError for a
    value without a text and for more than `MOST_DERIVED` derived entries.
    """
    old = await load_changeable(context, entry_id, version)
    if old.state == "withdrawn":
        raise TransitionError("the entry is withdrawn; undo that before you correct it")
    opened = upgrade_entry(await context.service.cipher.open(context.transaction, old))
    if (value is UNSET) == (text is UNSET):
        raise ValidationError("give `value` or `text`, and not both")
    if text is not UNSET:
        context.authorize(Verb.READ, await load_target(context, Verb.READ, old))
        value = _with_text(msgspec.json.decode(opened.value), text)
    derived = await _find_derived(context, old)
    kept = None if old.tier in VERSIONED_TIERS else context.service.ids.next("mem")
    correction = ValueCorrection(version=old.version, reason=_kept(context, old, reason), kept=kept)
    patch = check_patch(context, EntryPatch(value=value))
    new = await update_checked(context, entry_id, old.version, patch, correction)
    if new.id != entry_id:
        return Corrected(new)
    by = Source(id=entry_id, version=new.version)
    if kept is not None:
        await keep_earlier(context, replace(opened, namespace=old.namespace), kept, by)
    for one in derived:
        await withdraw(context, one, by, is_consequence=True)
    return await _show(context, new, derived)


async def retract(
    context: OperationContext, entry_id: str, version: int | None, reason: str
) -> Corrected:
    """Withdraws a wrong entry, and what was derived from it.

    version: the version that it must have; None for any
    reason: see `correct`

    Raises MemoryNotFoundError, MemoryAccessError, MemoryConflictError, TransitionError for an entry
    that is retracted already, and ValidationError for a governed entry other than a turn and for
    more than `MOST_DERIVED` derived entries.
    """
    old = await load_changeable(context, entry_id, version, (TURN.name,))
    if is_retracted(old):
        raise TransitionError("the entry is retracted already")
    derived = await _find_derived(context, old)
    by = Source(id=entry_id, version=old.version + 1)
    new = await withdraw(context, old, by, _kept(context, old, reason))
    for one in derived:
        await withdraw(context, one, by, is_consequence=True)
    return await _show(context, await hide_unread(context, old, new), derived)


async def undo(context: OperationContext, entry_id: str, version: int | None) -> Corrected:
    """Takes back the retraction of an entry, or else its latest correction, together with what was
    withdrawn for it. An entry that was withdrawn for another one is reinstated alone.

    version: the version that it must have; None for any

    Raises MemoryNotFoundError, MemoryAccessError, MemoryConflictError, and TransitionError for an
    entry without a retraction or correction, and for an earlier value that is not kept any more.
    """
    entry = await load_changeable(context, entry_id, version, _OF_CONVERSATION)
    correction = entry.provenance.correction
    if entry.state == "withdrawn":
        by = _own_reason(entry)
        withdrawn = await _find_withdrawn(context, entry, by)
        restored = await take_back(context, entry, by)
    elif correction is not None:
        by = Source(id=entry_id, version=correction.version + 1)
        withdrawn = await _find_withdrawn(context, entry, by)
        restored = await _restore(context, entry, correction)
        if restored.id != entry_id:
            return Corrected(restored)
    else:
        raise TransitionError("the entry was not retracted, nor its present value corrected")
    for one in withdrawn:
        await take_back(context, one, by, is_consequence=True)
    reinstated = [one for one in withdrawn if _reasons(one) == (by,)]
    return await _show(context, await hide_unread(context, entry, restored), reinstated)


async def _find_withdrawn(
    context: OperationContext, entry: Entry, by: Source | None
) -> list[Entry]:
    """Returns the other entries that a correction or retraction of an entry has withdrawn."""
    found = await context.transaction.edges.sources(WITHDRAWN_BY, (entry.id,), 2 * MOST_DERIVED)
    correction = entry.provenance.correction
    own = {entry.id, None if correction is None else correction.kept}
    withdrawn = await context.transaction.entries.get_many(
        [one for one in found if one not in own], context.now
    )
    withdrawn = [one for one in withdrawn if by in _reasons(one)]
    if len(withdrawn) > _IN_LOOP:
        context.require_long_run()
    return withdrawn


async def _restore(context: OperationContext, entry: Entry, correction: ValueCorrection) -> Entry:
    """Stores the value from before a correction as the next version of an entry, with the
    provenance that it had."""
    transaction, cipher = context.transaction, context.service.cipher
    if correction.kept is None:
        stored = await transaction.history.get(entry.id, correction.version)
    else:
        stored = await transaction.entries.get(correction.kept, context.now)
    if stored is None:
        raise TransitionError("the value from before the correction is not kept any more")
    earlier = await cipher.open(transaction, stored)
    caller = context.principal
    provenance = replace(
        earlier.provenance,
        principal=caller.actor,
        kind=caller.kind,
        fencing_token=caller.fencing_token,
        withdrawal=None,
    )
    opened = await cipher.open(transaction, entry)
    new = make_next_version(
        context,
        opened,
        earlier.value,
        kind_version=earlier.kind_version,
        provenance=provenance,
        curated_by=caller.id if not entry.owner else None,
    )
    restored = await replace_entry(context, entry, new, policy="keep")
    await remove_replaced_members(context, opened, restored)
    # A proposal in its place may be rejected, and then the earlier value is still asked for.
    if correction.kept is not None and restored.id == entry.id:
        await remove_entry(context, EventType.DELETED, stored)
    return restored


async def _find_derived(context: OperationContext, root: Entry) -> list[Entry]:
    """Returns the entries that were derived from an entry, directly or not: turns that it is the
    source of, and summaries and checkpoints of their sessions, included. Provenance may be
    cyclic."""
    transaction = context.transaction
    seen, wave, derived = {root.id}, [root], list[Entry]()
    while wave:
        names = {one.id for one in wave}
        # What continues a session is derived from the session.
        names |= {one.scope.session_id or "" for one in wave if one.kind in _OF_CONVERSATION}
        ids = set[str]()
        for relation in (DERIVED_FROM, QUOTES):
            ids.update(
                await transaction.edges.sources(relation, names, MOST_DERIVED + len(seen) + 1)
            )
        found = await transaction.entries.get_many(ids - seen, context.now)
        for one in wave:
            if one.kind == TURN.name:
                found += await _covering(context, one)
        wave = [one for one in {one.id: one for one in found}.values() if one.id not in seen]
        seen |= {one.id for one in wave}
        derived += wave
        if len(derived) > MOST_DERIVED:
            raise ValidationError(
                f"more than {MOST_DERIVED} entries were derived from the entry; retract these first"
            )
        if len(derived) > _IN_LOOP:
            context.require_long_run()
    return derived


async def _covering(context: OperationContext, turn: Entry) -> list[Entry]:
    """Returns the summaries and the checkpoints of a session that may quote a turn."""
    session, found = turn.scope.session_id or "", list[Entry]()
    for kind in _MEMBERS:
        members = await context.transaction.entries.of_session(
            session, kind, turn.owner, MOST_DERIVED
        )
        found += [one for one in members if one.created_at >= turn.created_at]
    return found


async def _show(context: OperationContext, entry: Entry, others: list[Entry]) -> Corrected:
    shown = [one.id for one in others if await may_read(context, one)]
    return Corrected(entry, tuple(sorted(shown)), len(others) - len(shown))


def _kept(context: OperationContext, entry: Entry, reason: str) -> str | None:
    """Returns the reason as the provenance keeps it, which is never sealed."""
    if entry.sensitivity in SEALED_SENSITIVITIES:
        return None
    policy = context.service.settings.personal_data
    return str(apply(policy, reason)[0]) if policy == "mask" else reason


def _reasons(entry: Entry) -> tuple[Source, ...]:
    withdrawal = entry.provenance.withdrawal
    return () if withdrawal is None else withdrawal.by


def is_retracted(entry: Entry) -> bool:
    """Returns whether an entry was retracted itself, and not only withdrawn for another one."""
    return _own_reason(entry) is not None


def _own_reason(entry: Entry) -> Source | None:
    """Returns the retraction of an entry itself; None without one."""
    return next((one for one in _reasons(entry) if one.id == entry.id), None)


def _with_text(value: dict[str, Any], text: str) -> dict[str, Any]:
    """Returns a value with another text. Raises ValidationError for a value without one."""
    for name in _TEXTS:
        if isinstance(value.get(name), str):
            return {**value, name: text}
    raise ValidationError("the value has no `text` or `content` to replace; give `value`")
