"""Background jobs."""

from __future__ import annotations

from typing import Any

from memorywall.records.scheduled_job import ScheduledJob
from memorywall.storage.scheduled_jobs import job_from_row
from memorywall.storage.sql.access import RowAccess
from memorywall.storage.statements import load


class SqlScheduledJobs:
    """`port.ScheduledJobs` over rows."""

    def __init__(self, rows: RowAccess) -> None:
        self._rows = rows
        self._sql = load(rows.dialect, "scheduled_jobs")

    async def list(self) -> list[ScheduledJob]:
        rows = await self._rows.rows(self._sql["list"], self._rows.tenant)
        return [job_from_row(row) for row in rows]

    async def get(self, name: str) -> ScheduledJob | None:
        row = await self._rows.row(self._sql["get"], self._rows.tenant, name)
        return None if row is None else job_from_row(row)

    async def take(
        self, name: str, holder: str, now: str, until: str, *, early: bool = False
    ) -> ScheduledJob | None:
        rows = await self._change("take", name, holder, now, until, int(early))
        return job_from_row(rows[0]) if rows else None

    async def keep(self, name: str, token: int, cursor: str, until: str) -> bool:
        return bool(await self._change("keep", name, token, cursor, until))

    async def finish(
        self, name: str, token: int, *, due: str, done: int, error: str, now: str
    ) -> bool:
        return bool(await self._change("finish", name, token, due, done, error, now))

    async def note(self, name: str, cursor: str, done: int, now: str) -> None:
        await self._change("note", name, cursor, done, now)

    async def pause(self, name: str, paused: bool) -> ScheduledJob:
        return job_from_row((await self._change("pause", name, int(paused)))[0])

    async def _change(self, statement: str, *bindings: Any) -> Any:
        return await self._rows.change(self._sql[statement], self._rows.tenant, *bindings)
