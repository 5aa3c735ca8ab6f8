"""Background jobs in SQLite."""

from __future__ import annotations

from typing import Any

from memorywall.records.scheduled_job import ScheduledJob
from memorywall.storage.scheduled_jobs import job_from_row
from memorywall.storage.sqlite.repository import SqliteRepository
from memorywall.storage.statements import load

_SQL = load("sqlite", "scheduled_jobs")


class SqliteScheduledJobs(SqliteRepository):
    """`port.ScheduledJobs` on one connection."""

    async def list(self) -> list[ScheduledJob]:
        return [job_from_row(row) for row in self._execute(_SQL["list"], (self._tenant,))]

    async def get(self, name: str) -> ScheduledJob | None:
        return self._one("get", name)

    async def take(
        self, name: str, holder: str, now: str, until: str, *, early: bool = False
    ) -> ScheduledJob | None:
        return self._one("take", name, holder, now, until, int(early))

    async def keep(self, name: str, token: int, cursor: str, until: str) -> bool:
        bindings = (self._tenant, name, token, cursor, until)
        return self._execute(_SQL["keep"], bindings).fetchone() is not None

    async def finish(
        self, name: str, token: int, *, due: str, done: int, error: str, now: str
    ) -> bool:
        bindings = (self._tenant, name, token, due, done, error, now)
        return self._execute(_SQL["finish"], bindings).fetchone() is not None

    async def note(self, name: str, cursor: str, done: int, now: str) -> None:
        self._execute(_SQL["note"], (self._tenant, name, cursor, done, now))

    async def pause(self, name: str, paused: bool) -> ScheduledJob:
        job = self._one("pause", name, int(paused))
        assert job is not None  # noqa: S101 - the statement always answers with one row
        return job

    def _one(self, statement: str, *bindings: Any) -> ScheduledJob | None:
        row = self._execute(_SQL[statement], (self._tenant, *bindings)).fetchone()
        return None if row is None else job_from_row(row)
