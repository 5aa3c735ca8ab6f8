"""Closes sessions whose time is over, summarizes those that wait for it, and deletes archived ones
after their retention.

Sessions are found by their due instants, so the job does the same after a restart and on any
server. A session with an idle timeout is due at the earliest instant at which it could be idle; if
there were turns meanwhile, it is due again at the next one.
"""

from __future__ import annotations

from typing import Final

from memorywall.jobs.job_runner import JobSpec, StepResult
from memorywall.kinds.sessions import SESSION, Session
from memorywall.records.entry import Entry
from memorywall.records.principal import Maintenance
from memorywall.service.governed_entries import read_value
from memorywall.service.operation_context import OperationContext
from memorywall.sessions.access import ended, idle_end
from memorywall.sessions.checkpoints import summarize_due
from memorywall.sessions.life import change, remove_session
from memorywall.sessions.stored import LoadedSession, load_counters

_CHUNK = 5


async def _is_due(context: OperationContext) -> bool:
    return bool(await context.transaction.edges.due(context.now, 1, SESSION.name))


async def _end_some(context: OperationContext, cursor: str) -> StepResult:
    entries = await context.transaction.edges.due(context.now, _CHUNK, SESSION.name)
    for entry in entries:
        await _end(context, entry)
    return StepResult(len(entries), "", bool(entries))


async def _end(context: OperationContext, entry: Entry) -> None:
    loaded = LoadedSession(entry, await read_value(context, entry, Session))
    if loaded.value.status == "archived":
        await remove_session(context, loaded)
        return
    counters = await load_counters(context, loaded.id)
    if reason := ended(loaded.value, counters, context.moment):
        await change(context, loaded, status="closed", closed_reason=reason)
        return
    if loaded.value.summarize_at is not None:
        loaded = await summarize_due(context, loaded, counters)
    if loaded.value.idle_at is not None and loaded.value.idle_at <= context.now:
        await change(context, loaded, idle_at=idle_end(loaded.value, counters))


END_SESSIONS_JOB: Final = JobSpec(
    name="end_sessions",
    maintenance=Maintenance.EXPIRE,
    interval=lambda context: context.settings.expiry_interval,
    is_needed=_is_due,
    step=_end_some,
)
