"""Coordinators in SQLite."""

from __future__ import annotations

import apsw
import msgspec

from memorywall.records.coordinator import Coordinator
from memorywall.storage.sqlite.rows import encode_body
from memorywall.storage.sqlite.statements import load

_SQL = load("coordinators")
_decode = msgspec.json.Decoder(Coordinator).decode


class SqliteCoordinators:
    """`port.Coordinators` on one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute = connection.execute

    async def get(self, tenant: str, coordinator_id: str) -> Coordinator | None:
        row = self._execute(_SQL["get"], (tenant, coordinator_id)).fetchone()
        return None if row is None else _decode(row[0])

    async def insert(self, coordinator: Coordinator) -> None:
        self._execute(_SQL["insert"], _coordinator_to_row(coordinator))

    async def replace(self, coordinator: Coordinator) -> None:
        if self._execute(_SQL["replace"], _coordinator_to_row(coordinator)).fetchone() is None:
            raise LookupError("the coordinator to replace was not read in this transaction")

    async def list(self, tenant: str, intent_id: str) -> list[Coordinator]:
        return [_decode(row[0]) for row in self._execute(_SQL["list"], (tenant, intent_id))]


def _coordinator_to_row(coordinator: Coordinator) -> tuple[str, ...]:
    return (
        coordinator.tenant,
        coordinator.id,
        coordinator.intent_id,
        encode_body(coordinator),
    )
