"""Tasks in SQLite."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import apsw

from memorywall.records.task import Task, TaskStatus
from memorywall.storage.rows import encode_names
from memorywall.storage.statements import load
from memorywall.storage.work_rows import decode_task, task_to_row

_SQL = load("sqlite", "tasks")


class SqliteTasks:
    """`port.Tasks` on one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute = connection.execute

    async def get(self, tenant: str, task_id: str) -> Task | None:
        row = self._execute(_SQL["get"], (tenant, task_id)).fetchone()
        return None if row is None else decode_task(row[0])

    async def insert(self, task: Task) -> None:
        self._execute(_SQL["insert"], task_to_row(task))

    async def replace(self, task: Task) -> None:
        if self._execute(_SQL["replace"], task_to_row(task)).fetchone() is None:
            raise LookupError("the task to replace was not read in this transaction")

    async def count(self, tenant: str, intent_id: str) -> int:
        row = self._execute(_SQL["count"], (tenant, intent_id)).fetchone()
        return int(row[0]) if row else 0

    async def assigned(
        self, tenant: str, agent: str, status: TaskStatus | None, limit: int, offset: int
    ) -> list[Task]:
        return list(self._each("assigned", (tenant, agent, _value(status), limit, offset)))

    async def open_of(self, tenant: str, agent: str) -> list[Task]:
        return list(self._each("open_of", (tenant, agent)))

    async def intents_of(self, tenant: str, agent: str) -> list[str]:
        return [str(row[0]) for row in self._execute(_SQL["intents_of"], (tenant, agent))]

    async def works_in(self, tenant: str, agent: str, intent_id: str) -> bool:
        return self._execute(_SQL["works_in"], (tenant, agent, intent_id)).fetchone() is not None

    async def unassigned(self, tenant: str, intent_ids: Collection[str], limit: int) -> list[Task]:
        return list(self._each("unassigned", (tenant, encode_names(intent_ids), limit)))

    async def list(
        self, tenant: str, intent_id: str, status: TaskStatus | None, limit: int, offset: int
    ) -> list[Task]:
        return list(self._each("list", (tenant, intent_id, _value(status), limit, offset)))

    def _each(self, statement: str, bindings: tuple[Any, ...]) -> Iterator[Task]:
        return (decode_task(row[0]) for row in self._execute(_SQL[statement], bindings))


def _value(status: TaskStatus | None) -> str | None:
    return None if status is None else status.value
