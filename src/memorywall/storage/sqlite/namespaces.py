"""Namespaces and their grants in SQLite."""

from __future__ import annotations

import apsw

from memorywall.records.namespace import Namespace
from memorywall.storage.rows import namespace_from_row, namespace_to_row
from memorywall.storage.statements import load

_SQL = load("sqlite", "namespaces")


class SqliteNamespaces:
    """`port.Namespaces` on one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute = connection.execute

    async def get(self, tenant: str, name: str) -> Namespace | None:
        row = self._execute(_SQL["get"], (tenant, name)).fetchone()
        if row is None:
            return None
        return namespace_from_row(tenant, row, self._execute(_SQL["grants"], (tenant, name)))

    async def list_for(self, tenant: str, agent: str) -> list[Namespace]:
        rows = self._execute(_SQL["list_for"], (tenant, agent))
        return [namespace_from_row(tenant, row, (row[5:],)) for row in rows]

    async def save(self, namespace: Namespace) -> None:
        tenant, name = namespace.tenant, namespace.name
        self._execute(_SQL["save"], namespace_to_row(namespace))
        self._execute(_SQL["clear_grants"], (tenant, name))
        for place, grant in enumerate(namespace.grants):
            self._execute(_SQL["add_grant"], (tenant, name, place, grant.agent, grant.access.value))
