"""Tenants, principals and keys in SQLite."""

from __future__ import annotations

import apsw

from memorywall.records.principal import ApiKey, PrincipalKind
from memorywall.records.usage import AgentLimits
from memorywall.storage.rows import (
    NOTHING_SET,
    encode_names,
    key_from_row,
    key_to_row,
    limits_from_row,
)
from memorywall.storage.statements import load

_SQL = load("sqlite", "identities")


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
        self._execute(_SQL["add_key"], key_to_row(key))

    async def find_key(self, prefix: str) -> ApiKey | None:
        row = self._execute(_SQL["find_key"], (prefix,)).fetchone()
        return None if row is None else key_from_row(row)

    async def keys(self, tenant: str | None) -> list[ApiKey]:
        return [key_from_row(row) for row in self._execute(_SQL["keys"], (tenant,))]

    async def revoke_key(self, prefix: str, now: str) -> bool:
        return self._execute(_SQL["revoke_key"], (prefix, now)).fetchone() is not None

    async def limits(self, tenant: str, agent: str) -> AgentLimits:
        return limits_from_row(self._execute(_SQL["limits"], (tenant, agent)).fetchone())

    async def set_limits(self, tenant: str, agent: str, limits: AgentLimits) -> None:
        if limits == NOTHING_SET:
            self._execute(_SQL["clear_limits"], (tenant, agent))
        else:
            names = encode_names(limits.pinned_namespaces)
            self._execute(_SQL["set_limits"], (tenant, agent, limits.episodic_capacity, names))
