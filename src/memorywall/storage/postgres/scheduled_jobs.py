"""Background jobs in PostgreSQL."""

from __future__ import annotations

from memorywall.records.scheduled_job import ScheduledJob
from memorywall.storage.postgres.session import PostgresRepository
from memorywall.storage.scheduled_jobs import job_from_row
from memorywall.storage.statements import load

_SQL = load("postgres", "scheduled_jobs")


class PostgresScheduledJobs(PostgresRepository):
    """`port.ScheduledJobs` in one transaction."""

    async def list(self) -> list[ScheduledJob]:
        return [job_from_row(row) for row in await self.rows(_SQL["list"], self.tenant)]

    async def get(self, name: str) -> ScheduledJob | None:
        row = await self.row(_SQL["get"], self.tenant, name)
        return None if row is None else job_from_row(row)

    async def take(
        self, name: str, holder: str, now: str, until: str, *, early: bool = False
    ) -> ScheduledJob | None:
        bindings = (self.tenant, name, holder, now, until, int(early))
        rows = await self.change(_SQL["take"], *bindings)
        return job_from_row(rows[0]) if rows else None

    async def keep(self, name: str, token: int, cursor: str, until: str) -> bool:
        bindings = (self.tenant, name, token, cursor, until)
        return bool(await self.change(_SQL["keep"], *bindings))

    async def finish(
        self, name: str, token: int, *, due: str, done: int, error: str, now: str
    ) -> bool:
        bindings = (self.tenant, name, token, due, done, error, now)
        return bool(await self.change(_SQL["finish"], *bindings))

    async def note(self, name: str, cursor: str, done: int, now: str) -> None:
        await self.change(_SQL["note"], self.tenant, name, cursor, done, now)

    async def pause(self, name: str, paused: bool) -> ScheduledJob:
        rows = await self.change(_SQL["pause"], self.tenant, name, int(paused))
        return job_from_row(rows[0])
