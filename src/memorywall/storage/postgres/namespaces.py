"""Namespaces and their grants in PostgreSQL."""

from __future__ import annotations

from memorywall.records.namespace import Namespace
from memorywall.storage.postgres.session import Noun
from memorywall.storage.rows import namespace_from_row, namespace_to_row
from memorywall.storage.statements import load

_SQL = load("postgres", "namespaces")


class PostgresNamespaces(Noun):
    """`port.Namespaces` in one transaction."""

    async def get(self, tenant: str, name: str) -> Namespace | None:
        row = await self._row(_SQL["get"], tenant, name)
        if row is None:
            return None
        return namespace_from_row(tenant, row, await self._rows(_SQL["grants"], tenant, name))

    async def list_for(self, tenant: str, agent: str) -> list[Namespace]:
        rows = await self._rows(_SQL["list_for"], tenant, agent)
        return [namespace_from_row(tenant, row, ((row[5], row[6]),)) for row in rows]

    async def save(self, namespace: Namespace) -> None:
        tenant, name, grants = namespace.tenant, namespace.name, namespace.grants
        await self._change(_SQL["save"], *namespace_to_row(namespace))
        await self._change(_SQL["clear_grants"], tenant, name)
        if grants:
            await self._change(
                _SQL["add_grants"],
                tenant,
                name,
                range(len(grants)),
                [grant.agent for grant in grants],
                [grant.access.value for grant in grants],
            )
