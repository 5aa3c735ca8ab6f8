"""Closes sessions whose time is over, summarizes those that wait for it, and deletes archived ones
after their retention.

Sessions are found by their due instants, so the job does the same after a restart and on any
server. A session with an idle timeout is due at the earliest instant at which it could be idle; if
there were turns meanwhile, it is due again at the next one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from memorywall.jobs.job_runner import JobSpec, JobStep, StepResult
from memorywall.kinds.session_end import find_end_reason, idle_end
from memorywall.kinds.sessions import SESSION, Session
from memorywall.records.entry import Entry
from memorywall.records.principal import Maintenance
from memorywall.service.entries.governed_entries import read_value
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.services import SharedServices
from memorywall.service.runner.maintenance import inspect
from memorywall.sessions.checkpoints import load_input, summarize_due
from memorywall.sessions.life import change, remove_session
from memorywall.sessions.model_summaries import (
    SummaryInput,
    WrittenSummary,
    is_for_model,
    write_summaries,
)
from memorywall.sessions.stored import LoadedSession, load_counters

_CHUNK = 5
_NO_SUMMARIES: Final[Mapping[str, WrittenSummary]] = MappingProxyType({})


async def _is_due(context: OperationContext) -> bool:
    return bool(await context.transaction.edges.due(context.now, 1, SESSION.name))


async def _end_some(
    context: OperationContext, cursor: str, written: Mapping[str, WrittenSummary] = _NO_SUMMARIES
) -> StepResult:
    entries = await context.transaction.edges.due(context.now, _CHUNK, SESSION.name)
    for entry in entries:
        await _end(context, entry, written.get(entry.id))
    return StepResult(len(entries), "", bool(entries))


async def _ask_model(service: SharedServices, tenant: str, _cursor: str) -> JobStep:
    """Returns the next step, with the summaries of a model for the sessions that wait for one."""
    if service.summarizer is None:
        return _end_some
    waiting = await inspect(service, tenant, END_SESSIONS_JOB.maintenance, _read_waiting)
    return partial(_end_some, written=await write_summaries(service.summarizer, waiting))


async def _read_waiting(context: OperationContext) -> dict[str, SummaryInput]:
    """Returns what a model is to summarize, by session."""
    found = {}
    for entry in await context.transaction.edges.due(context.now, _CHUNK, SESSION.name):
        loaded = LoadedSession(entry, await read_value(context, entry, Session))
        if loaded.value.summarize_at is None or not is_for_model(context, loaded):
            continue
        counters = await load_counters(context, loaded.id)
        if find_end_reason(loaded.value, counters.last_activity_at, context.now) is None:
            found[loaded.id] = await load_input(context, loaded)
    return {session: one for session, one in found.items() if one.turns}


async def _end(context: OperationContext, entry: Entry, written: WrittenSummary | None) -> None:
    loaded = LoadedSession(entry, await read_value(context, entry, Session))
    if loaded.value.status == "archived":
        await remove_session(context, loaded)
        return
    counters = await load_counters(context, loaded.id)
    if reason := find_end_reason(loaded.value, counters.last_activity_at, context.now):
        await change(context, loaded, status="closed", closed_reason=reason)
        return
    if loaded.value.summarize_at is not None:
        loaded = await summarize_due(context, loaded, counters, written)
    if loaded.value.idle_at is not None and loaded.value.idle_at <= context.now:
        await change(context, loaded, idle_at=idle_end(loaded.value, counters.last_activity_at))


END_SESSIONS_JOB: Final = JobSpec(
    name="end_sessions",
    maintenance=Maintenance.EXPIRE,
    interval=lambda context: context.settings.expiry_interval,
    is_needed=_is_due,
    step=_end_some,
    prepare=_ask_model,
)
