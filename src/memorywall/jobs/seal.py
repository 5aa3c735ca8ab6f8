"""Seals records that an earlier version stored in clear text."""

from __future__ import annotations

from typing import Final

from memorywall.jobs.job_runner import JobSpec, StepResult
from memorywall.records.principal import Maintenance
from memorywall.service.entries.record_writes import has_unsealed, seal_stored
from memorywall.service.requests.operation_context import OperationContext

_CHUNK = 100
SEAL_INTERVAL = 60.0


async def _is_needed(context: OperationContext) -> bool:
    return await has_unsealed(context)


async def _seal_some(context: OperationContext, cursor: str) -> StepResult:
    sealed = await seal_stored(context, _CHUNK)
    return StepResult(sealed, "", await has_unsealed(context))


SEAL_JOB: Final = JobSpec(
    name="seal",
    maintenance=Maintenance.SEAL,
    interval=lambda context: SEAL_INTERVAL,
    is_needed=_is_needed,
    step=_seal_some,
)
