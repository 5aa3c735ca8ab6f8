"""The state of background jobs: a part of the contract in `storage/port.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from memorywall.records.scheduled_job import ScheduledJob


class ScheduledJobs(Protocol):
    """Background jobs of the tenant, each leased to one process at a time."""

    async def list(self) -> list[ScheduledJob]:
        """Returns every job that has a row, by name."""
        ...

    async def get(self, name: str) -> ScheduledJob | None:
        """Returns the job, or None if it has never run or been paused."""
        ...

    async def take(
        self, name: str, holder: str, now: str, until: str, *, early: bool = False
    ) -> ScheduledJob | None:
        """Leases the job until an instant, with a new fencing token, and returns it. Returns None
        if the job is paused, not due, or leased to another process. A job without a row is due.

        early: lease the job even if it is not due
        """
        ...

    async def keep(self, name: str, token: int, cursor: str, until: str) -> bool:
        """Stores the progress of the job and extends its lease. Returns False and changes nothing
        if the token is not that of the live lease."""
        ...

    async def finish(
        self, name: str, token: int, *, due: str, done: int, error: str, now: str
    ) -> bool:
        """Ends the lease and stores the result of the run. Returns False as in `keep`."""
        ...

    async def note(self, name: str, cursor: str, done: int, now: str) -> None:
        """Stores the progress and result of a job with another kind of lease."""
        ...

    async def pause(self, name: str, paused: bool) -> ScheduledJob:
        """Pauses or resumes the job, and adds its row if it is absent. A started run is not
        interrupted."""
        ...


def job_from_row(row: Sequence[Any]) -> ScheduledJob:
    """Converts a row of the statements of `scheduled_jobs.sql` to a job."""
    return ScheduledJob(
        tenant=row[0],
        name=row[1],
        due=row[2],
        holder=row[3],
        held_until=row[4],
        token=row[5],
        cursor=row[6],
        done=row[7],
        error=row[8],
        ran_at=row[9],
        paused=row[10] == 1,
    )
