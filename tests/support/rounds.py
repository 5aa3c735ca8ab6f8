"""One round of a background job over all tenants, whether or not it is due."""

from __future__ import annotations

from memorywall.jobs.expire_entries import EXPIRE_JOB
from memorywall.jobs.expire_leases import END_LEASES_JOB
from memorywall.jobs.job_runner import run_everywhere
from memorywall.jobs.judge_items import JUDGE_JOB
from memorywall.jobs.remove_old_rows import PRUNE_JOB
from memorywall.service.requests.services import SharedServices


async def sweep(service: SharedServices) -> int:
    """Removes expired entries and old rows; returns the number of removed entries."""
    removed = await run_everywhere(service, EXPIRE_JOB, early=True)
    await run_everywhere(service, PRUNE_JOB, early=True)
    return removed


async def expire_leases(service: SharedServices) -> int:
    """Ends expired leases; returns their number."""
    return await run_everywhere(service, END_LEASES_JOB, early=True)


async def judge_items(service: SharedServices) -> int:
    """Judges items of working memory that leave; returns the number of removed items."""
    return await run_everywhere(service, JUDGE_JOB, early=True)
