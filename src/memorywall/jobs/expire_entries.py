"""Removes expired entries (RFC-0015 section 9.3)."""

from __future__ import annotations

from typing import Final

from memorywall.jobs.job_runner import JobSpec, StepResult
from memorywall.records.event import EventType
from memorywall.records.principal import Maintenance
from memorywall.service.entries.kept import retire_entry
from memorywall.service.requests.operation_context import OperationContext

_CHUNK = 100


async def _has_expired(context: OperationContext) -> bool:
    return bool(await context.transaction.entries.expired(context.now, 1))


async def _remove_expired(context: OperationContext, cursor: str) -> StepResult:
    entries = await context.transaction.entries.expired(context.now, _CHUNK)
    for entry in entries:
        await retire_entry(context, EventType.EXPIRED, entry)
    return StepResult(len(entries), "", len(entries) == _CHUNK)


EXPIRE_JOB: Final = JobSpec(
    name="expire",
    maintenance=Maintenance.EXPIRE,
    interval=lambda context: context.settings.expiry_interval,
    is_needed=_has_expired,
    step=_remove_expired,
)
