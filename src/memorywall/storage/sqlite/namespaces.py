"""Namespaces and their grants in SQLite."""

from __future__ import annotations

import apsw

from memorywall.records.namespace import Access, Grant, Namespace
from memorywall.storage.sqlite.statements import load

_SQL = load("namespaces")


class SqliteNamespaces:
    """`port.Namespaces` on one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute = connection.execute

    async def get(self, tenant: str, name: str) -> Namespace | None:
        row = self._execute(_SQL["get"], (tenant, name)).fetchone()
        if row is None:
            return None
        grants = self._execute(_SQL["grants"], (tenant, name))
        return Namespace(
            tenant=tenant,
            name=row[0],
            default=Access(row[1]),
            version=row[2],
            created_at=row[3],
            updated_at=row[4],
            grants=tuple(Grant(agent=agent, access=Access(level)) for agent, level in grants),
        )

    async def list_for(self, tenant: str, agent: str) -> list[Namespace]:
        return [
            Namespace(
                tenant=tenant,
                name=name,
                default=Access(default),
                version=version,
                created_at=created_at,
                updated_at=updated_at,
                grants=(Grant(agent=granted, access=Access(level)),) if granted else (),
            )
            for name, default, version, created_at, updated_at, granted, level in self._execute(
                _SQL["list_for"], (tenant, agent)
            )
        ]

    async def save(self, namespace: Namespace) -> None:
        tenant, name = namespace.tenant, namespace.name
        self._execute(
            _SQL["save"],
            (
                tenant,
                name,
                namespace.default.value,
                namespace.version,
                namespace.created_at,
                namespace.updated_at,
            ),
        )
        self._execute(_SQL["clear_grants"], (tenant, name))
        for place, grant in enumerate(namespace.grants):
            self._execute(_SQL["add_grant"], (tenant, name, place, grant.agent, grant.access.value))
