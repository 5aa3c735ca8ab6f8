"""Tasks in PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from memorywall.records.task import Task, TaskStatus
from memorywall.storage.postgres.session import Noun
from memorywall.storage.statements import load
from memorywall.storage.work_rows import decode_task, task_to_row

_SQL = load("postgres", "tasks")


class PostgresTasks(Noun):
    """`port.Tasks` in one transaction."""

    async def get(self, tenant: str, task_id: str) -> Task | None:
        row = await self._row(_SQL["get"], tenant, task_id)
        return None if row is None else decode_task(row[0])

    async def insert(self, task: Task) -> None:
        await self._change(_SQL["insert"], *task_to_row(task))

    async def replace(self, task: Task) -> None:
        if not await self._change(_SQL["replace"], *task_to_row(task)):
            raise LookupError("the task to replace was not read in this transaction")

    async def count(self, tenant: str, intent_id: str) -> int:
        row = await self._row(_SQL["count"], tenant, intent_id)
        return int(row[0]) if row else 0

    async def assigned(
        self, tenant: str, agent: str, status: TaskStatus | None, limit: int, offset: int
    ) -> list[Task]:
        if status is None:
            return await self._each("assigned", tenant, agent, limit, offset)
        return await self._each("assigned_in", tenant, agent, status.value, limit, offset)

    async def open_of(self, tenant: str, agent: str) -> list[Task]:
        return await self._each("open_of", tenant, agent)

    async def intents_of(self, tenant: str, agent: str) -> list[str]:
        return [row[0] for row in await self._rows(_SQL["intents_of"], tenant, agent)]

    async def works_in(self, tenant: str, agent: str, intent_id: str) -> bool:
        return bool(await self._rows(_SQL["works_in"], tenant, agent, intent_id))

    async def unassigned(self, tenant: str, intent_ids: Collection[str], limit: int) -> list[Task]:
        return await self._each("unassigned", tenant, tuple(intent_ids), limit)

    async def _each(self, statement: str, *bindings: Any) -> list[Task]:
        return [decode_task(row[0]) for row in await self._rows(_SQL[statement], *bindings)]

    async def list(
        self, tenant: str, intent_id: str, status: TaskStatus | None, limit: int, offset: int
    ) -> list[Task]:
        if status is None:
            return await self._each("list", tenant, intent_id, limit, offset)
        return await self._each("list_in", tenant, intent_id, status.value, limit, offset)
