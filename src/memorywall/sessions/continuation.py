"""The data that a session takes over from the one that it continues: its summary, on request its
state.

The summary is an entry of the new session that covers none of its turns. It has an edge to the
continued session, so that an erasure of that session reaches it.
"""

from __future__ import annotations

from msgspec.structs import replace

from memorywall.kinds.sessions import SUMMARY, SUMMARY_SHARE, Session, Summary
from memorywall.records.decision import Verb
from memorywall.records.entry import Entry
from memorywall.records.errors import ValidationError
from memorywall.records.feature_errors import SessionQuarantinedError
from memorywall.records.session import SessionCounters
from memorywall.service.entries.governed_entries import read_value
from memorywall.service.entries.writes import create_new_entry
from memorywall.service.requests.operation_context import OperationContext
from memorywall.sessions import life
from memorywall.sessions.access import load_session
from memorywall.sessions.checkpoints import LARGEST_SUMMARY, SUMMARIZED_AT_ONCE, newest_summary
from memorywall.sessions.collaborators import summarize
from memorywall.sessions.personal_data import mask_personal_data, policy_of
from memorywall.sessions.stored import LoadedSession, load_counters, make_entry, sequence_key
from memorywall.sessions.turns import load_turns
from memorywall.summaries.kept import kept_statements

_KEY = sequence_key(0)
"""The key of the summary that a session begins with."""


async def create(
    context: OperationContext, wanted: Session, ttl: str | None, *, with_state: bool
) -> tuple[LoadedSession, SessionCounters]:
    """Creates a session, which begins with the summary of the session that it continues.

    ttl: see `life.create`
    with_state: whether it also begins with the state of that session
    Raises the errors of `life.create`, ResourceNotFoundError, SessionQuarantinedError.
    """
    if wanted.continues is None:
        if with_state:
            raise ValidationError("`with_state` needs `continues`, the session that has the state")
        return await life.create(context, wanted, ttl)
    earlier = await load_session(context, wanted.continues, Verb.READ)
    if earlier.value.status == "quarantined":
        raise SessionQuarantinedError("the session that `continues` names is quarantined")
    if with_state:
        wanted = replace(wanted, state=earlier.value.state)
    made, counters = await life.create(context, wanted, ttl)
    if earlier.value.subject != made.value.subject:
        raise ValidationError("`continues` must name a session of the same subject")
    budget = min(int(made.value.summary_budget * SUMMARY_SHARE), LARGEST_SUMMARY)
    summary = await _summary_of(context, earlier, budget)
    if summary is not None:
        await _insert(context, made, summary)
    return made, counters


async def load_inherited_text(context: OperationContext, loaded: LoadedSession) -> str:
    """Returns the text of the summary that a session has begun with, "" without one."""
    entry = await load_inherited_summary(context, loaded)
    return "" if entry is None else (await read_value(context, entry, Summary)).text


async def load_inherited_summary(context: OperationContext, loaded: LoadedSession) -> Entry | None:
    """Returns the summary that a session has begun with, None without one."""
    if loaded.value.continues is None:
        return None
    found = await context.transaction.entries.of_session(
        loaded.id, SUMMARY.name, loaded.owner, 1, before=sequence_key(1)
    )
    return found[0] if found and found[0].state == "live" else None


async def copy_inherited_summary(
    context: OperationContext, source: LoadedSession, made: LoadedSession
) -> None:
    """Lets a fork begin with the summary that the forked session has begun with."""
    entry = await load_inherited_summary(context, source)
    if entry is not None:
        await _insert(context, made, await read_value(context, entry, Summary))


async def _summary_of(
    context: OperationContext, earlier: LoadedSession, budget: int
) -> Summary | None:
    """Returns a summary of the whole of a session: its newest one, extended by the turns since, of
    which the newest `SUMMARIZED_AT_ONCE` are read; None for a session without turns."""
    newest = await newest_summary(context, earlier)
    counters = await load_counters(context, earlier.id)
    turns = await load_turns(
        context,
        earlier,
        after=0 if newest is None else newest.last,
        limit=min(SUMMARIZED_AT_ONCE, max(1, counters.last_sequence)),
        newest_first=True,
    )
    if not turns and (newest is None or newest.tokens <= budget):
        return newest
    made = summarize([one.turn for one in reversed(turns)], budget, newest)
    return Summary(
        level="session",
        first=0,
        last=0,
        text=made.text,
        tokens=made.tokens,
        must_keep=made.must_keep,
        kept=made.kept,
        fallback=made.fallback,
        statements=kept_statements(made),
    )


async def _insert(context: OperationContext, made: LoadedSession, summary: Summary) -> None:
    text = mask_personal_data(policy_of(context, made.value), summary.text)
    # The places of the statements are those in the text as it was.
    statements = summary.statements if text == summary.text else ()
    summary = replace(summary, first=0, last=0, text=text, statements=statements)
    await create_new_entry(context, make_entry(context, made, SUMMARY, _KEY, summary))
