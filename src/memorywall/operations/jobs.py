"""Background jobs, for administrators of the tenant."""

from __future__ import annotations

from memorywall.jobs import job_control
from memorywall.operations.binding import multi_transaction_operation, operation
from memorywall.records.decision import Verb
from memorywall.service.access.targets import owner_target
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.service.runner.operation_runner import OperationTransactions
from memorywall.wire.jobs import JobListResponse, JobResponse, job_view


@operation("list_jobs")
async def list_jobs(context: OperationContext, call: OperationCall) -> JobListResponse:
    """All background jobs of the tenant. Raises MemoryAccessError."""
    _authorize(context)
    return JobListResponse(jobs=[job_view(job) for job in await job_control.list_jobs(context)])


@operation("pause_job")
async def pause_job(context: OperationContext, call: OperationCall) -> JobResponse:
    """Pauses a job. Raises MemoryAccessError, ResourceNotFoundError."""
    _authorize(context)
    return job_view(await job_control.pause_job(context, call.path["job"], True))


@operation("resume_job")
async def resume_job(context: OperationContext, call: OperationCall) -> JobResponse:
    """Resumes a job. Raises MemoryAccessError, ResourceNotFoundError."""
    _authorize(context)
    return job_view(await job_control.pause_job(context, call.path["job"], False))


@multi_transaction_operation("run_job")
async def run_job(transactions: OperationTransactions) -> JobResponse:
    """Runs a job now, unless it is paused or another process runs it.

    Raises MemoryAccessError, ResourceNotFoundError, ValidationError.
    """
    name = transactions.call.path["job"]
    await transactions.read(_may_run)
    await job_control.run_job(transactions.service, transactions.principal.tenant, name)
    return await transactions.read(_shown, name)


async def _may_run(context: OperationContext) -> None:
    _authorize(context)


async def _shown(context: OperationContext, name: str) -> JobResponse:
    _authorize(context)
    return job_view(await job_control.find_job(context, name))


def _authorize(context: OperationContext) -> None:
    context.authorize(Verb.ADMINISTER, owner_target(context.tenant, ""))
