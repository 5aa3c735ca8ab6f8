"""Checkpoints and summaries of a session.

A checkpoint names turns by range and copies none. A summary is extended by the turns since it, so
that the cost of a checkpoint does not depend on the length of the session.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from memorywall.kinds.sessions import (
    CHECKPOINT,
    SUMMARY,
    SUMMARY_SHARE,
    TURN,
    Checkpoint,
    CheckpointTrigger,
    Session,
    Summary,
    Turn,
)
from memorywall.records.clock import after, instant_to_milliseconds, parse_duration
from memorywall.records.decision import Verb
from memorywall.records.entry import VALUE_LIMIT, Entry
from memorywall.records.errors import ResourceNotFoundError
from memorywall.records.event import EventType
from memorywall.records.principal import Maintenance
from memorywall.records.session import SessionCounters
from memorywall.service.entries.governed_entries import (
    MOST_TOKENS_IN_LOOP,
    read_value,
    read_values,
)
from memorywall.service.entries.removal import remove_entry
from memorywall.service.entries.writes import create_new_entry
from memorywall.service.requests.operation_context import OperationContext, WorkNeededError
from memorywall.service.requests.services import SharedServices
from memorywall.service.runner.maintenance import maintain
from memorywall.sessions.access import check_open, load_session
from memorywall.sessions.collaborators import summarize
from memorywall.sessions.life import change
from memorywall.sessions.model_summaries import SummaryInput, WrittenSummary, is_for_model
from memorywall.sessions.overflow import make_checkpoint_entry, read_checkpoint
from memorywall.sessions.personal_data import mask_personal_data, policy_of
from memorywall.sessions.stored import (
    LoadedSession,
    load_counters,
    make_entry,
    sequence_key,
    store_counters,
)
from memorywall.sessions.working_entries import working_entries
from memorywall.summaries import Summarized
from memorywall.summaries.kept import kept_statements

LARGEST_SUMMARY = 8_192
"""The most tokens of a summary, whatever the budget of the session."""
SUMMARIZED_AT_ONCE = 200
"""The most turns that one transaction summarizes, so that it does not delay others for long."""
_MOST_TOKENS = 2_000
"""The most tokens of turns that are summarized within a transaction: some 10 milliseconds."""
_AT_ONCE = 500
_PAUSING = ("user_request", "shutdown")
"""The triggers after which the session is `checkpointed` until its next turn."""


@dataclass(frozen=True, slots=True)
class StoredCheckpoint:
    """A checkpoint and its entry."""

    entry: Entry
    checkpoint: Checkpoint


@dataclass(frozen=True, slots=True)
class _NewSummary:
    """A summary to store.

    turns: the turns that it adds to the previous one
    made: its text and statements; None without turns
    is_fallback: whether a model was to write it
    """

    previous: Summary | None
    turns: Sequence[Turn]
    made: Summarized | None
    is_fallback: bool = False


async def create(
    context: OperationContext,
    session_id: str,
    trigger: CheckpointTrigger,
    working: list[dict[str, Any]] | None,
    state: dict[str, Any] | None = None,
) -> StoredCheckpoint:
    """Makes a checkpoint, with a summary of up to `SUMMARIZED_AT_ONCE` more turns, or with the
    newest summary if a model is to extend it.

    working: the serialized working memory; None for the caller's working entries of the session
    state: the new state of the session; None leaves it
    Raises ValueTooLargeError, ResourceNotFoundError, MemoryAccessError, SessionClosedError,
    SessionQuarantinedError.
    """
    loaded = await load_session(context, session_id, Verb.CREATE)
    counters = await load_counters(context, loaded.id)
    check_open(loaded, counters, context.moment)
    # A model is asked by the job, so that no reply waits for it.
    later = is_for_model(context, loaded)
    new = None if later else await _extend(context, loaded, counters)
    fields: dict[str, Any] = {"summarize_at": context.now if later else None}
    if state is not None:
        fields["state"] = state
    if trigger in _PAUSING:
        fields["status"] = "checkpointed"
    loaded = await change(context, loaded, **fields)
    if new is None:
        summary = await newest_summary(context, loaded)
    else:
        summary, counters = await _store(context, loaded, counters, new)
    stored, counters = await _make(context, loaded, counters, trigger, summary, working)
    await store_counters(context, counters)
    return stored


async def make_due_checkpoint(
    context: OperationContext,
    loaded: LoadedSession,
    counters: SessionCounters,
    *,
    has_failed: bool,
) -> SessionCounters:
    """Makes a checkpoint if the policy of the session requires one after the turns that are counted
    in `counters`; returns the counters to store.

    has_failed: whether one of the turns is the result of a call that failed

    From the share of the token budget on that the policy names, the turns are to be summarized. A
    job does that, so that no turn waits for it.
    """
    policy = loaded.value.policy
    threshold = policy.compaction_threshold * loaded.value.summary_budget
    if (
        counters.token_usage - counters.summarized_tokens >= threshold
        and loaded.value.summarize_at is None
    ):
        loaded = await change(context, loaded, summarize_at=context.now)
    trigger: CheckpointTrigger | None = None
    if has_failed and policy.checkpoint_on_error:
        trigger = "error_recovery"
    elif 0 < policy.checkpoint_turns <= counters.last_sequence - counters.checkpointed_through:
        trigger = "turn_count"
    elif policy.checkpoint_interval is not None:
        last = instant_to_milliseconds(counters.checkpointed_at)
        if after(last, parse_duration(policy.checkpoint_interval)) <= context.now:
            trigger = "periodic"
    if trigger is None:
        return counters
    summary = await newest_summary(context, loaded)
    _, counters = await _make(context, loaded, counters, trigger, summary, None)
    return counters


async def summarize_due(
    context: OperationContext,
    loaded: LoadedSession,
    counters: SessionCounters,
    written: WrittenSummary | None = None,
) -> LoadedSession:
    """Summarizes turns of a session that waits for it; it waits on while there are more.

    written: the summary of a model; it is used if the session has not changed otherwise than by
        further turns
    """
    before = counters.summarized_through
    counters = await _summarize(context, loaded, counters, written)
    await store_counters(context, counters)
    # Turns that came while the model wrote wait for the next summary.
    if before + SUMMARIZED_AT_ONCE <= counters.summarized_through < counters.last_sequence:
        return loaded
    return await change(context, loaded, summarize_at=None)


async def extend_summary(
    service: SharedServices, tenant: str, session_id: str, through: int
) -> None:
    """Summarizes turns of a session, without a model, until its newest summary covers a turn.

    For a context that has no room for these turns: its caller may be one that only reads.

    through: the sequence of the turn; the summary ends there, or after it
    """

    async def extend(context: OperationContext) -> int:
        entry = await context.transaction.entries.get(session_id, context.now)
        if entry is None:
            return through
        loaded = LoadedSession(entry, await read_value(context, entry, Session))
        before = await load_counters(context, session_id)
        if before.summarized_through >= through:
            return through
        counters = await _summarize(context, loaded, before)
        await store_counters(context, counters)
        is_extended = counters.summarized_through > before.summarized_through
        return counters.summarized_through if is_extended else through

    covered = 0
    while covered < through:
        covered = await maintain(service, tenant, Maintenance.EXPIRE, extend, long=True)


async def load_checkpoints(
    context: OperationContext, loaded: LoadedSession
) -> list[StoredCheckpoint]:
    """Returns the checkpoints of a loaded session, newest first."""
    entries = await context.transaction.entries.of_session(
        loaded.id, CHECKPOINT.name, loaded.owner, _AT_ONCE, newest_first=True
    )
    return [await _read_stored(context, one) for one in entries]


async def _read_stored(context: OperationContext, entry: Entry) -> StoredCheckpoint:
    """Returns a checkpoint. One that is withdrawn has no summary, so that its turns count."""
    checkpoint = await read_checkpoint(context, entry)
    if entry.state == "withdrawn":
        checkpoint = replace(checkpoint, summary="", quality=None, summarized_through=0)
    return StoredCheckpoint(entry, checkpoint)


async def find_checkpoint(
    context: OperationContext, loaded: LoadedSession, number: int | None
) -> StoredCheckpoint | None:
    """Returns a checkpoint of a session.

    number: its number; None for the newest one, which may be absent
    Raises ResourceNotFoundError.
    """
    bounds = {}
    if number is not None:
        bounds = {"after": sequence_key(number - 1), "before": sequence_key(number + 1)}
    found = await context.transaction.entries.of_session(
        loaded.id, CHECKPOINT.name, loaded.owner, 1, newest_first=True, **bounds
    )
    if not found and number is not None:
        raise ResourceNotFoundError("the session has no such checkpoint; list its checkpoints")
    return await _read_stored(context, found[0]) if found else None


async def _make(
    context: OperationContext,
    loaded: LoadedSession,
    counters: SessionCounters,
    trigger: CheckpointTrigger,
    summary: Summary | None,
    working: list[dict[str, Any]] | None,
) -> tuple[StoredCheckpoint, SessionCounters]:
    number, last = counters.checkpoints + 1, counters.last_sequence
    has_new = last > counters.checkpointed_through
    if working is None:
        working = await working_entries(context, loaded)
    working = mask_personal_data(policy_of(context, loaded.value), working)
    checkpoint = Checkpoint(
        number=number,
        trigger=trigger,
        summary="" if summary is None else summary.text,
        quality=None if summary is None else summary.quality,
        summarized_through=counters.summarized_through,
        first=counters.checkpointed_through + 1 if has_new else None,
        last=last if has_new else None,
        working=working,
        state=loaded.value.state,
        turn_count=last,
        token_usage=counters.token_usage,
    )
    entry = await make_checkpoint_entry(context, loaded, checkpoint)
    entry = await create_new_entry(context, entry)
    # Only those that go are read: a checkpoint has the size of its summary.
    first_kept = max(1, number - loaded.value.policy.checkpoints_kept + 1)
    old = await context.transaction.entries.of_session(
        loaded.id, CHECKPOINT.name, loaded.owner, _AT_ONCE, before=sequence_key(first_kept)
    )
    for one in old:
        await remove_entry(context, EventType.DELETED, one)
    counters = replace(
        counters, checkpoints=number, checkpointed_through=last, checkpointed_at=context.now
    )
    return StoredCheckpoint(entry, checkpoint), counters


async def newest_summary(context: OperationContext, loaded: LoadedSession) -> Summary | None:
    """Returns the newest live summary of a session: of its turns, or that of the session that it
    continues; None without one."""
    for limit in (1, _AT_ONCE):
        found = await context.transaction.entries.of_session(
            loaded.id, SUMMARY.name, loaded.owner, limit, newest_first=True
        )
        for entry in found:
            if entry.state == "live":
                return await read_value(context, entry, Summary)
        if len(found) < limit:
            break
    return None


async def load_input(context: OperationContext, loaded: LoadedSession) -> SummaryInput:
    """Returns the newest live summary and the oldest live turns since."""
    previous = await newest_summary(context, loaded)
    # A withdrawn summary is made anew from what remains.
    page = await context.transaction.entries.of_session(
        loaded.id,
        TURN.name,
        loaded.owner,
        SUMMARIZED_AT_ONCE,
        after=sequence_key(0 if previous is None else previous.last),
    )
    turns = await read_values(context, [one for one in page if one.state == "live"], Turn)
    return SummaryInput(previous, turns, budget_of_summary(loaded))


def budget_of_summary(loaded: LoadedSession) -> int:
    """Returns the most tokens of a summary of a session."""
    return min(int(loaded.value.summary_budget * SUMMARY_SHARE), LARGEST_SUMMARY)


async def _summarize(
    context: OperationContext,
    loaded: LoadedSession,
    counters: SessionCounters,
    written: WrittenSummary | None = None,
) -> SessionCounters:
    """Stores a summary of the oldest turns since the newest summary, together with that summary."""
    new = await _extend(context, loaded, counters, written)
    return (await _store(context, loaded, counters, new))[1]


async def _extend(
    context: OperationContext,
    loaded: LoadedSession,
    counters: SessionCounters,
    written: WrittenSummary | None = None,
) -> _NewSummary:
    """Returns what `_store` is to store. Raises WorkNeededError for long turns."""
    if counters.token_usage - counters.summarized_tokens > MOST_TOKENS_IN_LOOP:
        context.require_long_run()
    found = await load_input(context, loaded)
    if not found.turns:
        return _NewSummary(found.previous, (), None)
    if written is not None and written.source.turns and written.source.begins(found):
        return _NewSummary(found.previous, written.source.turns, written.made)
    fallback = written is None and is_for_model(context, loaded)
    for source, made in context.done:
        if source is not None and source.begins(found):
            return _NewSummary(found.previous, source.turns, made, fallback)
    work = partial(summarize, found.turns, found.budget, found.previous)
    if sum(one.tokens for one in found.turns) > _MOST_TOKENS:
        raise WorkNeededError(found, work)
    return _NewSummary(found.previous, found.turns, work(), fallback)


async def _store(
    context: OperationContext,
    loaded: LoadedSession,
    counters: SessionCounters,
    new: _NewSummary,
) -> tuple[Summary | None, SessionCounters]:
    turns, made = new.turns, new.made
    if made is None:
        return new.previous, counters
    summary = Summary(
        level="session",
        first=1,
        last=turns[-1].sequence,
        text=made.text,
        tokens=made.tokens,
        must_keep=made.must_keep,
        kept=made.kept,
        fallback=made.fallback or new.is_fallback,
        statements=kept_statements(made),
    )
    if len(msgspec.json.encode(summary)) > VALUE_LIMIT:
        summary = replace(summary, statements=())
    key = sequence_key(summary.last)
    replaced = await context.transaction.entries.of_session(
        loaded.id, SUMMARY.name, loaded.owner, 1, after=sequence_key(summary.last - 1)
    )
    for one in replaced:
        if one.key == key and one.state == "withdrawn":
            await remove_entry(context, EventType.DELETED, one)
    entry = make_entry(context, loaded, SUMMARY, key, summary)
    await create_new_entry(context, entry)
    # The summary that the session has begun with stays: a context shows it beside all turns.
    old = await context.transaction.entries.of_session(
        loaded.id, SUMMARY.name, loaded.owner, _AT_ONCE, after=sequence_key(0), newest_first=True
    )
    for one in old[loaded.value.policy.checkpoints_kept :]:
        await remove_entry(context, EventType.DELETED, one)
    through = counters.summarized_through
    tokens = sum(one.tokens for one in turns if one.sequence > through)
    return summary, replace(
        counters,
        summarized_through=max(summary.last, through),
        summarized_tokens=counters.summarized_tokens + tokens,
    )
