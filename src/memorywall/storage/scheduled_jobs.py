"""What a store keeps of background jobs: a part of the contract in `storage/port.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from memorywall.records.scheduled_job import ScheduledJob


class ScheduledJobs(Protocol):
    """Background jobs of the tenant, each leased to one process at a time."""

    async def list(self) -> list[ScheduledJob]:
        """Every job that has a row, by name."""
        ...

    async def get(self, name: str) -> ScheduledJob | None:
        """The job, or None where it has never run nor been paused."""
        ...

    async def take(
        self, name: str, holder: str, now: str, until: str, *, early: bool = False
    ) -> ScheduledJob | None:
        """Leases the job until an instant, with a new fencing token, and returns it. None when it
        is paused, not due, or leased to another process. A job without a row is due.

        early: take it even if it is not due
        """
        ...

    async def keep(self, name: str, token: int, cursor: str, until: str) -> bool:
        """Notes how far the job has come and extends its lease. False, and nothing is changed,
        when the token is not that of the running lease."""
        ...

    async def finish(
        self, name: str, token: int, *, due: str, done: int, error: str, now: str
    ) -> bool:
        """Ends the lease and notes what came of the run. False as in `keep`."""
        ...

    async def note(self, name: str, cursor: str, done: int, now: str) -> None:
        """Notes how far a job has come that is leased by other means, and what it has just done."""
        ...

    async def pause(self, name: str, paused: bool) -> ScheduledJob:
        """Pauses the job or resumes it, and adds its row where there is none. A run that has begun
        is not interrupted."""
        ...


def job_from_row(row: Sequence[Any]) -> ScheduledJob:
    """The job in a row of the statements of `scheduled_jobs.sql`."""
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
