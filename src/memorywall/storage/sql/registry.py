"""Namespaces, groups, principals and the limits of agents."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

from memorywall.records.group import Group, GroupMember
from memorywall.records.namespace import Namespace
from memorywall.records.principal import ApiKey, PrincipalKind
from memorywall.records.usage import AgentLimits
from memorywall.storage.rows import (
    NOTHING_SET,
    decode_rows,
    encode_grants,
    encode_names,
    key_from_row,
    key_to_row,
    limits_from_row,
    namespace_from_row,
)
from memorywall.storage.sql.access import RowAccess
from memorywall.storage.sql.record_spec import Row
from memorywall.storage.sql.record_table import GROUP_MEMBERS, GROUPS, NAMESPACES
from memorywall.storage.sql.repository import SqlRecordRepository
from memorywall.storage.statements import load


class SqlNamespaceRepository(SqlRecordRepository[Namespace]):
    """`port.NamespaceRepository` over rows. The grants have rows of their own."""

    def __init__(self, rows: RowAccess) -> None:
        super().__init__(NAMESPACES, rows)
        self._own = load(rows.dialect, "namespaces")

    async def get(self, *key: str) -> Namespace | None:
        name = (self._rows.tenant, *key)
        row = await self._rows.row(self._sql["get"], *name)
        if row is None:
            return None
        grants = await self._rows.rows(self._own["grants"], *name)
        return namespace_from_row(row, grants)

    async def list_for(self, agent: str) -> list[Namespace]:
        rows = await self._rows.rows(self._own["list_for"], self._rows.tenant, agent)
        if len({row[1] for row in rows}) == len(rows):
            return await decode_rows(self._rows, rows, _with_one_grant)
        # A namespace has a row for each grant that names the agent or a group of it.
        named = (list(of_name) for _, of_name in groupby(rows, lambda row: row[1]))
        return [namespace_from_row(lines[0], [line[9:] for line in lines]) for lines in named]

    async def save(self, namespace: Namespace) -> None:
        tenant, name = namespace.tenant, namespace.name
        await self._rows.change(self._own["save"], *NAMESPACES.to_row(namespace))
        await self._rows.change(self._own["clear_grants"], tenant, name)
        if namespace.grants:
            lines = encode_grants(namespace.grants)
            await self._rows.change(self._own["add_grants"], tenant, name, lines)

    async def remove(self, *key: str) -> bool:
        await self._rows.change(self._own["clear_grants"], self._rows.tenant, *key)
        await self._rows.change(self._own["clear_schemas"], self._rows.tenant, *key)
        return await super().remove(*key)


def _with_one_grant(row: Row) -> Namespace:
    return namespace_from_row(row, (row[9:],))


class SqlGroupRepository(SqlRecordRepository[Group]):
    """`port.GroupRepository` over rows.

    rows: the same object as that of every repository whose statements read members, because it may
        cache them until a change through it
    """

    def __init__(self, rows: RowAccess) -> None:
        super().__init__(GROUPS, rows)
        self._own = load(rows.dialect, "groups")
        self.member_records = SqlRecordRepository(GROUP_MEMBERS, rows)

    async def remove(self, *key: str) -> bool:
        await self._rows.change(self._own["clear_members"], self._rows.tenant, *key)
        return await super().remove(*key)

    async def members(self, name: str) -> list[GroupMember]:
        return await self.member_records.page(parent=("name", name))

    async def of(self, principal: str) -> list[str]:
        rows = await self._rows.rows(self._own["of"], self._rows.tenant, principal)
        return [str(row[0]) for row in rows]

    async def add_member(self, member: GroupMember) -> bool:
        bindings = GROUP_MEMBERS.to_row(member)
        return bool(await self._rows.change(self._own["add_member"], *bindings))

    async def remove_member(self, name: str, principal: str) -> bool:
        return await self.member_records.remove(name, principal)


class SqlIdentityRepository:
    """`port.IdentityRepository` over rows.

    In a tenant's transaction, tenants and keys are those of the tenant; in one of the registry they
    are those of all tenants.
    """

    def __init__(self, rows: RowAccess) -> None:
        self._rows = rows
        self._sql = load(rows.dialect, "identities")

    async def add_tenant(self, name: str, now: str) -> bool:
        return bool(await self._rows.change(self._sql["add_tenant"], name, now))

    async def tenants(self) -> list[str]:
        return [row[0] for row in await self._rows.rows(self._sql["tenants"], self._rows.bound)]

    async def ensure_principal(
        self, principal: str, kind: PrincipalKind, now: str
    ) -> PrincipalKind:
        tenant = self._rows.tenant
        if await self._rows.change(self._sql["add_principal"], tenant, principal, kind.value, now):
            return kind
        row = await self._rows.row(self._sql["principal_kind"], tenant, principal)
        return PrincipalKind(row[0]) if row else kind

    async def add_key(self, key: ApiKey) -> None:
        await self._rows.change(self._sql["add_key"], *key_to_row(key))

    async def find_key(self, prefix: str) -> ApiKey | None:
        row = await self._rows.row(self._sql["find_key"], prefix, self._rows.bound)
        return None if row is None else key_from_row(row)

    async def keys(self, tenant: str | None) -> list[ApiKey]:
        of = self._rows.bound if tenant is None else tenant
        if of is None:
            rows = await self._rows.rows(self._sql["keys_of_all"])
        else:
            rows = await self._rows.rows(self._sql["keys"], of)
        return await decode_rows(self._rows, rows, key_from_row)

    async def revoke_key(self, prefix: str, now: str) -> bool:
        tenant = self._rows.bound
        if tenant is None:
            return False
        return bool(await self._rows.change(self._sql["revoke_key"], tenant, prefix, now))

    async def end_key(self, prefix: str, successor: str, expires_at: str) -> bool:
        bindings = (self._rows.tenant, prefix, successor, expires_at)
        return bool(await self._rows.change(self._sql["end_key"], *bindings))

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
