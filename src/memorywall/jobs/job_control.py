"""Shows, pauses, resumes and runs background jobs, for administrators of the tenant."""

from __future__ import annotations

from dataclasses import replace

from memorywall.jobs.job_runner import find_spec, run_in_tenant
from memorywall.jobs.job_table import JOB_NAMES, JOBS
from memorywall.records.errors import ResourceNotFoundError, ValidationError
from memorywall.records.scheduled_job import ScheduledJob
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.services import SharedServices


async def list_jobs(context: OperationContext) -> list[ScheduledJob]:
    """Returns all jobs of the tenant by name, including jobs that have never run.

    The last run of a job is a later one without work, if this process knows it.
    """
    known = {job.name: job for job in await context.transaction.jobs.list()}
    return [
        _with_idle_run(context, known.get(name) or ScheduledJob(tenant=context.tenant, name=name))
        for name in sorted(JOB_NAMES)
    ]


async def find_job(context: OperationContext, name: str) -> ScheduledJob:
    """Returns one of them. Raises ResourceNotFoundError."""
    check_job(name)
    return next(job for job in await list_jobs(context) if job.name == name)


def _with_idle_run(context: OperationContext, job: ScheduledJob) -> ScheduledJob:
    idle_at = context.service.job_runs.idle_at(job.name, context.tenant)
    # The check of a paused job for work is no run.
    if job.paused or idle_at <= (job.ran_at or ""):
        return job
    return replace(job, ran_at=idle_at, done=0, error="")


async def pause_job(context: OperationContext, name: str, paused: bool) -> ScheduledJob:
    """Pauses or resumes a job of the tenant. Raises ResourceNotFoundError."""
    check_job(name)
    return await context.transaction.jobs.pause(name, paused)


async def run_job(service: SharedServices, tenant: str, name: str) -> ScheduledJob | None:
    """Runs a job of a tenant now, even if it is not due. Returns None if there was nothing to do,
    the job is paused, or another process runs it.

    Raises ResourceNotFoundError, ValidationError for a job that only a server runs, and the errors
    of the job.
    """
    check_job(name)
    spec = find_spec(JOBS, name)
    if spec is None:
        raise ValidationError(
            f"`job` must be another one: a server with an embedder runs {name} as soon as it is due"
        )
    return await run_in_tenant(service, tenant, spec, early=True)


def check_job(name: str) -> None:
    """Raises ResourceNotFoundError for an unknown job name."""
    if name not in JOB_NAMES:
        raise ResourceNotFoundError("there is no job of this name")
