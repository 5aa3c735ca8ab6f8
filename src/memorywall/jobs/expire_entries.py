"""Removes expired entries (RFC-0015 section 9.3), old idempotency records and old vectors of
searches."""

from __future__ import annotations

from typing import Final

from memorywall.jobs.job_runner import JobSpec, StepResult, run_everywhere
from memorywall.jobs.tenant_failures import isolate_tenant
from memorywall.records.clock import format_instant
from memorywall.records.event import EventType
from memorywall.records.principal import Maintenance
from memorywall.service.administration import list_tenants
from memorywall.service.context import ServiceContext
from memorywall.service.entry_writes import remove_entry
from memorywall.service.maintenance import maintain
from memorywall.service.operation_context import OperationContext
from memorywall.service.query_sample import remove_old_queries

_CHUNK = 100


async def sweep(service: ServiceContext, *, early: bool = True) -> int:
    """Runs one round over all tenants, in small transactions. Returns the number of removed
    entries. A failure in a tenant does not affect other tenants.

    early: whether to sweep tenants before they are due
    """
    removed = await run_everywhere(service, EXPIRE_JOB, early=early)
    for tenant in await list_tenants(service):
        with isolate_tenant("expire", tenant):
            await maintain(service, tenant, Maintenance.EXPIRE, _remove_old_rows)
    return removed


async def _has_expired(context: OperationContext) -> bool:
    return bool(await context.transaction.entries.expired(context.now, 1))


async def _remove_expired(context: OperationContext, cursor: str) -> StepResult:
    entries = await context.transaction.entries.expired(context.now, _CHUNK)
    for entry in entries:
        await remove_entry(context, EventType.EXPIRED, entry)
    return StepResult(len(entries), "", len(entries) == _CHUNK)


EXPIRE_JOB: Final = JobSpec(
    name="expire",
    maintenance=Maintenance.EXPIRE,
    interval=lambda context: context.settings.expiry_interval,
    is_needed=_has_expired,
    step=_remove_expired,
)


async def _remove_old_rows(context: OperationContext) -> int:
    await remove_old_queries(context)
    lifetime = context.service.settings.idempotency_lifetime.total_seconds() * 1000
    oldest_kept = format_instant(context.moment - int(lifetime))
    return await context.transaction.replies.prune(oldest_kept)
