"""Checkpoints as they are shown.

A checkpoint that the policy makes has the newest stored summary, because no turn waits for another
one. If the session had none yet, whoever reads the checkpoint gets a summary of its turns by rules,
which is made outside of the transaction and stored nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from msgspec.structs import replace

from memorywall.kinds.sessions import TURN, SummaryQuality, Turn
from memorywall.records.decision import Verb
from memorywall.service.entries.governed_entries import read_values
from memorywall.service.requests.operation_context import OperationContext, WorkNeededError
from memorywall.sessions.access import load_session
from memorywall.sessions.checkpoints import (
    SUMMARIZED_AT_ONCE,
    StoredCheckpoint,
    budget_of_summary,
    load_checkpoints,
)
from memorywall.sessions.collaborators import summarize
from memorywall.sessions.stored import LoadedSession, sequence_key
from memorywall.summaries import Summarized

_MOST_TOKENS = 50_000
"""The most tokens of turns that are summarized for one checkpoint: some 200 milliseconds."""


async def list_checkpoints(context: OperationContext, session_id: str) -> list[StoredCheckpoint]:
    """Returns the checkpoints of a session as they are shown, newest first. Raises
    ResourceNotFoundError, MemoryAccessError, WorkNeededError."""
    return await load_shown(context, await load_session(context, session_id, Verb.READ))


async def show_checkpoint(
    context: OperationContext, session_id: str, stored: StoredCheckpoint | None
) -> StoredCheckpoint | None:
    """Returns a checkpoint as it is shown; None for none. Raises like `list_checkpoints`."""
    loaded = await load_session(context, session_id, Verb.READ)
    return None if stored is None else (await _with_summaries(context, loaded, [stored]))[0]


async def load_shown(context: OperationContext, loaded: LoadedSession) -> list[StoredCheckpoint]:
    """Returns the checkpoints of a loaded session like `list_checkpoints`."""
    return await _with_summaries(context, loaded, await load_checkpoints(context, loaded))


async def _with_summaries(
    context: OperationContext, loaded: LoadedSession, found: Sequence[StoredCheckpoint]
) -> list[StoredCheckpoint]:
    """Returns checkpoints of a loaded session as they are shown. Raises WorkNeededError."""
    shown = list(found)
    lacking = {
        at: turns
        for at, stored in enumerate(found)
        if (turns := await _load_turns(context, loaded, stored))
    }
    if not lacking:
        return shown
    source = tuple(found[at].entry.id for at in lacking)
    made = next((result for key, result in context.done if key == source), None)
    if made is None:
        work = partial(_summarize, list(lacking.values()), budget_of_summary(loaded))
        raise WorkNeededError(source, work)
    for at, summary in zip(lacking, made, strict=True):
        quality = SummaryQuality(
            must_keep=summary.must_keep, kept=summary.kept, tokens=summary.tokens, fallback=False
        )
        checkpoint = replace(found[at].checkpoint, summary=summary.text, quality=quality)
        shown[at] = StoredCheckpoint(found[at].entry, checkpoint)
    return shown


async def _load_turns(
    context: OperationContext, loaded: LoadedSession, stored: StoredCheckpoint
) -> list[Turn]:
    """Returns the turns to summarize for a checkpoint, the oldest ones; none for a checkpoint with
    a summary."""
    if stored.checkpoint.summary:
        return []
    entries = await context.transaction.entries.of_session(
        loaded.id,
        TURN.name,
        loaded.owner,
        SUMMARIZED_AT_ONCE,
        before=sequence_key(stored.checkpoint.turn_count + 1),
    )
    turns, tokens = list[Turn](), 0
    live = [one for one in entries if one.state == "live"]
    for turn in await read_values(context, live, Turn):
        tokens += turn.tokens
        if tokens > _MOST_TOKENS:
            break
        turns.append(turn)
    return turns


def _summarize(conversations: Iterable[Sequence[Turn]], budget: int) -> list[Summarized]:
    return [summarize(turns, budget, None) for turns in conversations]
