"""Background jobs: responses and operations."""

from __future__ import annotations

import msgspec

from memorywall.records.copier import copier
from memorywall.records.principal import Permission
from memorywall.records.scheduled_job import ScheduledJob
from memorywall.wire.operation import Operation
from memorywall.wire.operation_group import OperationGroup


class JobResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A background job of the tenant.

    running: whether a process has leased it
    due: the instant from which it runs again, null for at once
    ran_at: the instant at which the last run ended, null before the first. A server keeps that of a
        run that found nothing to do in memory only, and forgets it when it stops
    done: how many things the last run worked on
    error: the type of the error that ended the last run, null for none
    """

    name: str
    paused: bool
    running: bool
    due: str | None
    ran_at: str | None
    done: int
    error: str | None


class JobListResponse(msgspec.Struct, frozen=True, kw_only=True):
    """All background jobs of the tenant, by name."""

    jobs: list[JobResponse]


job_view = copier(
    ScheduledJob,
    JobResponse,
    running=lambda job: bool(job.holder),
    due=lambda job: job.due or None,
    error=lambda job: job.error or None,
)
"""The wire form of a job."""


_JOBS = OperationGroup(name="Service", read=Permission.TENANT_ADMIN, write=Permission.TENANT_ADMIN)

JOB_OPERATIONS: tuple[Operation, ...] = (
    _JOBS(
        "list_jobs",
        "GET /jobs",
        "List the tenant's background jobs with the results of their last runs.",
        reply=JobListResponse,
    ),
    _JOBS(
        "run_job",
        "POST /jobs/{job}/run",
        "Run a background job now, even if it is not due.",
        reply=JobResponse,
    ),
    _JOBS(
        "pause_job",
        "POST /jobs/{job}/pause",
        "Pause a background job; a run that has begun is not interrupted.",
        reply=JobResponse,
    ),
    _JOBS(
        "resume_job",
        "POST /jobs/{job}/resume",
        "Resume a background job that is paused.",
        reply=JobResponse,
    ),
)
