"""Removes idempotency records and vectors of searches whose time is over."""

from __future__ import annotations

from typing import Final

from memorywall.jobs.job_runner import JobSpec, StepResult
from memorywall.records.clock import format_instant
from memorywall.records.principal import Maintenance
from memorywall.service.erasure.query_sample import has_old_queries, remove_old_queries
from memorywall.service.requests.operation_context import OperationContext


def _oldest_kept(context: OperationContext) -> str:
    """The instant before which stored responses have no use any more."""
    lifetime = context.service.settings.idempotency_lifetime.total_seconds() * 1000
    return format_instant(context.moment - int(lifetime))


async def _has_old(context: OperationContext) -> bool:
    replies = context.transaction.replies
    return await replies.has_older(_oldest_kept(context)) or await has_old_queries(context)


async def _remove_old(context: OperationContext, cursor: str) -> StepResult:
    removed = await remove_old_queries(context)
    removed += await context.transaction.replies.prune(_oldest_kept(context))
    return StepResult(removed, "", False)


PRUNE_JOB: Final = JobSpec(
    name="prune",
    maintenance=Maintenance.EXPIRE,
    interval=lambda context: context.settings.expiry_interval,
    is_needed=_has_old,
    step=_remove_old,
)
