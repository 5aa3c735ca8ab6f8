"""`client.jobs`: background jobs, for administrators of the tenant."""

from __future__ import annotations

from memorywall.sdk.effects import RequestGenerator
from memorywall.sdk.facade import AsyncFacade, Facade, awaiting, blocking
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


class JobsClient(Facade[JobsCore]):
    """Shows and controls background jobs."""

    list = blocking(JobsCore.list)
    run = blocking(JobsCore.run)
    pause = blocking(JobsCore.pause)
    resume = blocking(JobsCore.resume)


class AsyncJobsClient(AsyncFacade[JobsCore]):
    """Shows and controls background jobs."""

    list = awaiting(JobsCore.list)
    run = awaiting(JobsCore.run)
    pause = awaiting(JobsCore.pause)
    resume = awaiting(JobsCore.resume)
