"""Coordinators in PostgreSQL."""

from __future__ import annotations

from memorywall.records.coordinator import Coordinator
from memorywall.storage.postgres.session import Noun
from memorywall.storage.statements import load
from memorywall.storage.work_rows import coordinator_to_row, decode_coordinator

_SQL = load("postgres", "coordinators")


class PostgresCoordinators(Noun):
    """`port.Coordinators` in one transaction."""

    async def get(self, tenant: str, coordinator_id: str) -> Coordinator | None:
        row = await self._row(_SQL["get"], tenant, coordinator_id)
        return None if row is None else decode_coordinator(row[0])

    async def insert(self, coordinator: Coordinator) -> None:
        await self._change(_SQL["insert"], *coordinator_to_row(coordinator))

    async def replace(self, coordinator: Coordinator) -> None:
        if not await self._change(_SQL["replace"], *coordinator_to_row(coordinator)):
            raise LookupError("the coordinator to replace was not read in this transaction")

    async def list(self, tenant: str, intent_id: str) -> list[Coordinator]:
        rows = await self._rows(_SQL["list"], tenant, intent_id)
        return [decode_coordinator(row[0]) for row in rows]
