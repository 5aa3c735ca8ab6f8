"""The operations on background jobs."""

from __future__ import annotations

from memorywall.records.errors import ResourceNotFoundError
from memorywall.records.principal import Permission
from memorywall.wire.jobs import JobListResponse, JobResponse
from memorywall.wire.operation import Operation

JOB_OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="list_jobs",
        method="GET",
        path="/api/v1/jobs",
        group="Service",
        summary="List the tenant's background jobs with the results of their last runs.",
        source="memorywall",
        permission=Permission.TENANT_ADMIN,
        reply=JobListResponse,
    ),
    Operation(
        name="run_job",
        method="POST",
        path="/api/v1/jobs/{job}/run",
        group="Service",
        summary="Run a background job now, even if it is not due.",
        source="memorywall",
        permission=Permission.TENANT_ADMIN,
        reply=JobResponse,
        raises=(ResourceNotFoundError,),
    ),
    Operation(
        name="pause_job",
        method="POST",
        path="/api/v1/jobs/{job}/pause",
        group="Service",
        summary="Pause a background job; a run that has begun is not interrupted.",
        source="memorywall",
        permission=Permission.TENANT_ADMIN,
        reply=JobResponse,
        raises=(ResourceNotFoundError,),
    ),
    Operation(
        name="resume_job",
        method="POST",
        path="/api/v1/jobs/{job}/resume",
        group="Service",
        summary="Resume a background job that is paused.",
        source="memorywall",
        permission=Permission.TENANT_ADMIN,
        reply=JobResponse,
        raises=(ResourceNotFoundError,),
    ),
)
