"""Coordinators in SQLite."""

from __future__ import annotations

import apsw

from memorywall.records.coordinator import Coordinator
from memorywall.storage.statements import load
from memorywall.storage.work_rows import coordinator_to_row, decode_coordinator

_SQL = load("sqlite", "coordinators")


class SqliteCoordinators:
    """`port.Coordinators` on one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute = connection.execute

    async def get(self, tenant: str, coordinator_id: str) -> Coordinator | None:
        row = self._execute(_SQL["get"], (tenant, coordinator_id)).fetchone()
        return None if row is None else decode_coordinator(row[0])

    async def insert(self, coordinator: Coordinator) -> None:
        self._execute(_SQL["insert"], coordinator_to_row(coordinator))

    async def replace(self, coordinator: Coordinator) -> None:
        if self._execute(_SQL["replace"], coordinator_to_row(coordinator)).fetchone() is None:
            raise LookupError("the coordinator to replace was not read in this transaction")

    async def list(self, tenant: str, intent_id: str) -> list[Coordinator]:
        return [
            decode_coordinator(row[0]) for row in self._execute(_SQL["list"], (tenant, intent_id))
        ]
