"""Namespaces, principals and the limits of agents."""

from __future__ import annotations

from collections.abc import Mapping

from memorywall.records.namespace import Namespace
from memorywall.records.principal import PrincipalKind
from memorywall.records.usage import AgentLimits
from memorywall.storage.rows import (
    NOTHING_SET,
    encode_edges,
    encode_names,
    limits_from_row,
    namespace_from_row,
)
from memorywall.storage.sql.access import RowAccess
from memorywall.storage.sql.record_table import NAMESPACES
from memorywall.storage.sql.repository import SqlRecordRepository
from memorywall.storage.statements import cached


class SqlNamespaceRepository(SqlRecordRepository[Namespace]):
    """`port.NamespaceRepository` over rows. The grants have rows of their own."""

    def __init__(self, rows: RowAccess) -> None:
        super().__init__(NAMESPACES, rows)
        self._own = cached(rows.dialect, "namespaces")

    async def get(self, *key: str) -> Namespace | None:
        name = (self._rows.tenant, *key)
        row = await self._rows.row(self._sql["get"], *name)
        if row is None:
            return None
        grants = await self._rows.rows(self._own["grants"], *name)
        return namespace_from_row(row, grants)

    async def list_for(self, agent: str) -> list[Namespace]:
        rows = await self._rows.rows(self._own["list_for"], self._rows.tenant, agent)
        return [namespace_from_row(row, ((row[7], row[8]),)) for row in rows]

    async def save(self, namespace: Namespace) -> None:
        tenant, name = namespace.tenant, namespace.name
        await self._rows.change(self._own["save"], *NAMESPACES.to_row(namespace))
        await self._rows.change(self._own["clear_grants"], tenant, name)
        if namespace.grants:
            lines = encode_edges([(one.agent, one.access.value) for one in namespace.grants])
            await self._rows.change(self._own["add_grants"], tenant, name, lines)

    async def remove(self, *key: str) -> bool:
        await self._rows.change(self._own["clear_grants"], self._rows.tenant, *key)
        return await super().remove(*key)


class SqlPrincipalRepository:
    """The part of `port.IdentityRepository` that both databases share: principals and the limits of
    agents."""

    def __init__(self, rows: RowAccess) -> None:
        self._rows = rows
        self._sql = cached(rows.dialect, "identities")

    async def add_tenant(self, name: str, now: str) -> bool:
        return bool(await self._rows.change(self._sql["add_tenant"], name, now))

    async def ensure_principal(
        self, principal: str, kind: PrincipalKind, now: str
    ) -> PrincipalKind:
        tenant = self._rows.tenant
        if await self._rows.change(self._sql["add_principal"], tenant, principal, kind.value, now):
            return kind
        row = await self._rows.row(self._sql["principal_kind"], tenant, principal)
        return PrincipalKind(row[0]) if row else kind

    async def touch_keys(self, uses: Mapping[str, str]) -> None:
        for prefix, at in uses.items():
            await self._rows.change(self._sql["touch_key"], self._rows.tenant, prefix, at)

    async def limits(self, agent: str) -> AgentLimits:
        return limits_from_row(await self._rows.row(self._sql["limits"], self._rows.tenant, agent))

    async def set_limits(self, agent: str, limits: AgentLimits) -> None:
        tenant = self._rows.tenant
        if limits == NOTHING_SET:
            await self._rows.change(self._sql["clear_limits"], tenant, agent)
        else:
            names = encode_names(limits.pinned_namespaces)
            bindings = (tenant, agent, limits.episodic_capacity, names)
            await self._rows.change(self._sql["set_limits"], *bindings)
