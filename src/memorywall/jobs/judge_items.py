"""Judges items of working memory that go, and removes them.

The items were left by steps that have ended; one transaction judges many of them together.
"""

from __future__ import annotations

from typing import Final

from memorywall.jobs.job_runner import JobSpec, StepResult
from memorywall.kinds.working_memory import SCRATCH
from memorywall.records.principal import Maintenance
from memorywall.service.requests.operation_context import OperationContext
from memorywall.working_memory.departures import remove_judged

_CHUNK = 100
JUDGE_INTERVAL: Final = 5.0
"""The most seconds that an item waits for its judgement."""


async def _has_leaving(context: OperationContext) -> bool:
    return bool(await context.transaction.edges.due(context.now, 1, SCRATCH.name))


async def _judge(context: OperationContext, cursor: str) -> StepResult:
    entries = await context.transaction.edges.due(context.now, _CHUNK, SCRATCH.name)
    await remove_judged(context, entries)
    return StepResult(len(entries), "", bool(entries))


JUDGE_JOB: Final = JobSpec(
    name="judge",
    maintenance=Maintenance.JUDGE,
    interval=lambda context: JUDGE_INTERVAL,
    is_needed=_has_leaving,
    step=_judge,
)
