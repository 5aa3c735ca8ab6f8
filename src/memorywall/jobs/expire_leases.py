"""Ends expired leases and appends their events.

No other code waits for this: an expired lease gives no ownership. The job makes the tasks of dead
agents ready again and appends events about expired claims.
"""

from __future__ import annotations

from typing import Final

from memorywall.coordination.assignment import requeue
from memorywall.coordination.leases import record_expiry
from memorywall.jobs.job_runner import JobSpec, StepResult
from memorywall.records.lease import Lease, LeaseKind
from memorywall.records.principal import Maintenance
from memorywall.service.requests.operation_context import OperationContext

_CHUNK = 100
END_LEASES_INTERVAL: Final = 1.0
"""The most seconds until an expired lease appears in the log; no client holds it meanwhile."""


async def _has_expired(context: OperationContext) -> bool:
    return bool(await context.transaction.leases.expired(context.now, 1))


async def _end_expired(context: OperationContext, cursor: str) -> StepResult:
    expired = await context.transaction.leases.expired(context.now, _CHUNK)
    for lease in expired:
        await _end(context, lease)
    return StepResult(len(expired), "", len(expired) == _CHUNK)


async def _end(context: OperationContext, lease: Lease) -> None:
    await record_expiry(context, lease)
    task = None
    if lease.kind is LeaseKind.TASK:
        task = await context.transaction.tasks.get(lease.name)
    if task is None:
        await context.transaction.leases.end(lease.token)
    else:
        await requeue(context, task)


END_LEASES_JOB: Final = JobSpec(
    name="end_leases",
    maintenance=Maintenance.END_LEASES,
    interval=lambda context: END_LEASES_INTERVAL,
    is_needed=_has_expired,
    step=_end_expired,
)
