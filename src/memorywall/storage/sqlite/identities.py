"""Tenants, principals and keys in SQLite."""

from __future__ import annotations

from typing import Any

import apsw

from memorywall.records.principal import ApiKey, Permission, PrincipalKind
from memorywall.storage.sqlite.statements import load

_SQL = load("identities")


class SqliteIdentities:
    """`port.Identities` on one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute = connection.execute

    async def add_tenant(self, name: str, now: str) -> bool:
        return self._execute(_SQL["add_tenant"], (name, now)).fetchone() is not None

    async def tenants(self) -> list[str]:
        return [str(row[0]) for row in self._execute(_SQL["tenants"])]

    async def ensure_principal(
        self, tenant: str, principal: str, kind: PrincipalKind, now: str
    ) -> PrincipalKind:
        self._execute(_SQL["add_principal"], (tenant, principal, kind.value, now))
        row = self._execute(_SQL["principal_kind"], (tenant, principal)).fetchone()
        return PrincipalKind(row[0]) if row else kind

    async def add_key(self, key: ApiKey) -> None:
        self._execute(
            _SQL["add_key"],
            (
                key.prefix,
                key.digest,
                key.tenant,
                key.principal,
                key.kind.value,
                ",".join(sorted(key.permissions)),
                key.created_at,
                key.revoked_at,
            ),
        )

    async def find_key(self, prefix: str) -> ApiKey | None:
        row = self._execute(_SQL["find_key"], (prefix,)).fetchone()
        return None if row is None else _key_from_row(row)

    async def keys(self, tenant: str | None) -> list[ApiKey]:
        return [_key_from_row(row) for row in self._execute(_SQL["keys"], (tenant,))]

    async def revoke_key(self, prefix: str, now: str) -> bool:
        return self._execute(_SQL["revoke_key"], (prefix, now)).fetchone() is not None

    async def capacity(self, tenant: str, agent: str) -> int | None:
        row = self._execute(_SQL["capacity"], (tenant, agent)).fetchone()
        return None if row is None else int(row[0])

    async def set_capacity(self, tenant: str, agent: str, capacity: int | None) -> None:
        if capacity is None:
            self._execute(_SQL["clear_capacity"], (tenant, agent))
        else:
            self._execute(_SQL["set_capacity"], (tenant, agent, capacity))


def _key_from_row(row: tuple[Any, ...]) -> ApiKey:
    return ApiKey(
        prefix=row[0],
        digest=row[1],
        tenant=row[2],
        principal=row[3],
        kind=PrincipalKind(row[4]),
        permissions=frozenset(Permission(name) for name in row[5].split(",") if name),
        created_at=row[6],
        revoked_at=row[7],
    )
