"""Tenants, principals and keys in SQLite."""

from __future__ import annotations

from typing import Any

import apsw

from memorywall.records.principal import ApiKey, Permission, PrincipalKind
from memorywall.records.usage import AgentLimits
from memorywall.storage.sqlite.rows import decode_names, encode_names
from memorywall.storage.sqlite.statements import load

_SQL = load("identities")
_NOTHING_SET = AgentLimits()


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

    async def limits(self, tenant: str, agent: str) -> AgentLimits:
        row = self._execute(_SQL["limits"], (tenant, agent)).fetchone()
        if row is None:
            return _NOTHING_SET
        return AgentLimits(episodic_capacity=row[0], pinned_namespaces=decode_names(row[1]))

    async def set_limits(self, tenant: str, agent: str, limits: AgentLimits) -> None:
        if limits == _NOTHING_SET:
            self._execute(_SQL["clear_limits"], (tenant, agent))
        else:
            names = encode_names(limits.pinned_namespaces)
            self._execute(_SQL["set_limits"], (tenant, agent, limits.episodic_capacity, names))


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
