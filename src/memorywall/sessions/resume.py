"""Resuming a session, by any process, and forking it."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from memorywall.kinds.session_end import is_idle
from memorywall.kinds.sessions import (
    CHECKPOINT,
    SAVED_STATE,
    SUMMARY,
    TURN,
)
from memorywall.records.decision import Verb
from memorywall.records.entry import Entry
from memorywall.records.errors import ValidationError
from memorywall.records.feature_errors import SessionQuarantinedError
from memorywall.records.session import SessionCounters
from memorywall.service.entries.governed_entries import MOST_TOKENS_IN_LOOP
from memorywall.service.requests.operation_context import OperationContext
from memorywall.sessions.access import check_open, load_session
from memorywall.sessions.checkpoints import StoredCheckpoint, find_checkpoint
from memorywall.sessions.continuation import copy_inherited_summary, load_inherited_text
from memorywall.sessions.large_parts import restore_turn
from memorywall.sessions.life import change, default_end, insert_session, until
from memorywall.sessions.stored import LoadedSession, load_counters, store_counters
from memorywall.sessions.turns import StoredTurn, insert_turn, load_turns

_CHECKED = (TURN.name, SUMMARY.name, CHECKPOINT.name, SAVED_STATE.name)
_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class ResumedSession:
    """A resumed session.

    checkpoint: the checkpoint; None for a session without one
    summary: the text of what came before `turns`; "" if there is none
    turns: the newest of the turns after those that the summary of the checkpoint covers, in order
    has_more: whether there are more of these turns than the request allows
    resumed_at: the instant of the request, in the stored form
    """

    session: LoadedSession
    counters: SessionCounters
    checkpoint: StoredCheckpoint | None
    summary: str
    turns: list[StoredTurn]
    has_more: bool
    resumed_at: str


async def resume(
    context: OperationContext,
    session_id: str,
    number: int | None,
    replay: int,
    *,
    reopen: bool = False,
) -> ResumedSession | None:
    """Resumes a session; None if its partition contains entries of others, after which the session
    is quarantined.

    number: the number of the checkpoint; None for the newest one
    replay: the most turns to return
    reopen: whether a session that its idle timeout has closed is opened again; default: false
    Raises ResourceNotFoundError, MemoryAccessError, SessionClosedError, SessionQuarantinedError.
    """
    loaded = await load_session(context, session_id, Verb.CREATE)
    counters = await load_counters(context, loaded.id)
    if loaded.value.status == "quarantined":
        raise SessionQuarantinedError("the session is quarantined; export or delete it")
    if counters.token_usage > MOST_TOKENS_IN_LOOP:
        context.require_long_run()
    if not await _is_own(context, loaded, counters):
        await change(context, loaded, status="quarantined", closed_reason="foreign entries")
        return None
    if reopen and is_idle(loaded.value, counters.last_activity_at, context.now):
        loaded, counters = await _reopen(context, loaded, counters)
    check_open(loaded, counters, context.moment)
    checkpoint = await find_checkpoint(context, loaded, number)
    members = [] if checkpoint is None else [checkpoint.entry]
    start = 0 if checkpoint is None else checkpoint.checkpoint.summarized_through
    turns = await load_turns(context, loaded, after=start, limit=replay + 1, newest_first=True)
    members += [one.entry for one in turns]
    are_own = all(_is_member(loaded, one) for one in members)
    if not are_own or any(one.turn.session_id not in ("", loaded.id) for one in turns):
        await change(context, loaded, status="quarantined", closed_reason="foreign entries")
        return None
    if loaded.value.status == "checkpointed":
        loaded = await change(context, loaded, status="active")
    newest = turns[:replay][::-1]
    has_more = len(turns) > replay
    if checkpoint is not None:
        summary = checkpoint.checkpoint.summary
    else:
        summary = await load_inherited_text(context, loaded)
    return ResumedSession(loaded, counters, checkpoint, summary, newest, has_more, context.now)


async def _reopen(
    context: OperationContext, loaded: LoadedSession, counters: SessionCounters
) -> tuple[LoadedSession, SessionCounters]:
    """Opens a session that its idle timeout has closed; the timeout begins anew."""
    timeout = loaded.value.idle_timeout
    idle_at = None if timeout is None else until(context, timeout)
    loaded = await change(context, loaded, status="active", closed_reason=None, idle_at=idle_at)
    counters = replace(counters, last_activity_at=context.now)
    await store_counters(context, counters)
    return loaded, counters


def _is_member(loaded: LoadedSession, entry: Entry) -> bool:
    """Whether an entry in the partition was written for the session and its subject."""
    written_for = entry.provenance.session
    return written_for in (None, loaded.id) and entry.subjects == loaded.entry.subjects


async def _is_own(
    context: OperationContext, loaded: LoadedSession, counters: SessionCounters
) -> bool:
    """Whether every turn, summary, checkpoint and saved state in the partition belongs to the
    session's agent, and there are as many turns as were added: one that was moved to or from
    another session of the agent changes their number."""
    turns = await context.transaction.entries.count_of_session(loaded.id, TURN.name)
    if turns != counters.turn_count:
        return False
    for kind in _CHECKED:
        owners = await context.transaction.entries.session_owners(loaded.id, kind)
        if any(owner != loaded.owner for owner in owners):
            return False
    return True


async def fork(
    context: OperationContext, session_id: str, sequence: int | None, title: str | None
) -> tuple[LoadedSession, SessionCounters]:
    """Creates a session with copies of the turns up to a sequence, which continues the other one.

    sequence: the last copied turn; None for all turns
    title: the title of the new session; None for that of the other one
    Raises ValidationError, ResourceNotFoundError, MemoryAccessError, SessionQuarantinedError,
    MemoryCapacityError.
    """
    source = await load_session(context, session_id, Verb.UPDATE)
    if source.value.status == "quarantined":
        raise SessionQuarantinedError("the session is quarantined; export or delete it")
    last = (await load_counters(context, source.id)).last_sequence
    if sequence is not None and sequence > last:
        raise ValidationError("`sequence` is after the last turn of the session")
    last = last if sequence is None else sequence
    old = source.value
    session = replace(
        old,
        status="active",
        title=old.title if title is None else title,
        participants=(),
        ends_at=await default_end(context),
        continues=source.id,
        client_id=None,
        closed_reason=None,
        clear_at=None,
        summarize_at=None,
        idle_at=None if old.idle_timeout is None else until(context, old.idle_timeout),
    )
    made, counters = await insert_session(context, session, source.entry.subjects)
    await copy_inherited_summary(context, source, made)
    count, tokens, after = 0, 0, 0
    while turns := await load_turns(context, source, after=after, before=last + 1, limit=_AT_ONCE):
        for one in turns:
            whole = await restore_turn(context, one.turn)
            await insert_turn(context, made, replace(whole, session_id=made.id))
            count += 1
            tokens += one.turn.tokens
            after = one.turn.sequence
            await context.transaction.give_way()
    counters = replace(counters, last_sequence=last, turn_count=count, token_usage=tokens)
    await store_counters(context, counters)
    return made, counters
