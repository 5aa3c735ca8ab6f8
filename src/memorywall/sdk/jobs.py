"""`client.jobs`: background jobs, for administrators of the tenant."""

from __future__ import annotations

from memorywall.sdk.effects import RequestGenerator
from memorywall.sdk.facade import AsyncFacade, Facade, method
from memorywall.sdk.retry import call
from memorywall.wire.jobs import JobListResponse, JobResponse


class JobsCore:
    """The operations on background jobs, as request generators."""

    def list(self) -> RequestGenerator[list[JobResponse]]:
        """Returns all background jobs of the tenant, by name."""
        return (yield from call("list_jobs", JobListResponse)).jobs

    def run(self, name: str) -> RequestGenerator[JobResponse]:
        """Runs a job now, even if it is not due, and returns the result of its last run. A job that
        is `paused` in the result has not run, and neither has one that is `running`."""
        return call("run_job", JobResponse, job=name)

    def pause(self, name: str) -> RequestGenerator[JobResponse]:
        """Pauses a job; a started run is not interrupted."""
        return call("pause_job", JobResponse, job=name)

    def resume(self, name: str) -> RequestGenerator[JobResponse]:
        """Resumes a paused job."""
        return call("resume_job", JobResponse, job=name)


class _JobsMethods:
    list = method(JobsCore.list)
    run = method(JobsCore.run)
    pause = method(JobsCore.pause)
    resume = method(JobsCore.resume)


class JobsClient(_JobsMethods, Facade[JobsCore]):
    """Shows and controls background jobs."""


class AsyncJobsClient(_JobsMethods, AsyncFacade[JobsCore]):
    """Shows and controls background jobs."""
