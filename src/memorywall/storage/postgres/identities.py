"""Tenants, principals and keys in PostgreSQL."""

from __future__ import annotations

from memorywall.records.principal import ApiKey, PrincipalKind
from memorywall.records.usage import AgentLimits
from memorywall.storage.postgres.session import Noun
from memorywall.storage.rows import (
    NOTHING_SET,
    encode_names,
    key_from_row,
    key_to_row,
    limits_from_row,
)
from memorywall.storage.statements import load

_SQL = load("postgres", "identities")


class PostgresIdentities(Noun):
    """`port.Identities` in one transaction.

    Where the port gives no tenant it is the transaction's own; the registry's has none, and there
    tenants and keys are those of all.
    """

    async def add_tenant(self, name: str, now: str) -> bool:
        return bool(await self._change(_SQL["add_tenant"], name, now))

    async def tenants(self) -> list[str]:
        return [row[0] for row in await self._rows(_SQL["tenants"], self._session.tenant)]

    async def ensure_principal(
        self, tenant: str, principal: str, kind: PrincipalKind, now: str
    ) -> PrincipalKind:
        if await self._change(_SQL["add_principal"], tenant, principal, kind.value, now):
            return kind
        row = await self._row(_SQL["principal_kind"], tenant, principal)
        return PrincipalKind(row[0]) if row else kind

    async def add_key(self, key: ApiKey) -> None:
        await self._change(_SQL["add_key"], *key_to_row(key))
        await self._note_key_change(key.tenant)

    async def find_key(self, prefix: str) -> ApiKey | None:
        row = await self._row(_SQL["find_key"], prefix, self._session.tenant)
        return None if row is None else key_from_row(row)

    async def keys(self, tenant: str | None) -> list[ApiKey]:
        of = self._session.tenant if tenant is None else tenant
        if of is None:
            rows = await self._rows(_SQL["keys_of_all"])
        else:
            rows = await self._rows(_SQL["keys"], of)
        return [key_from_row(row) for row in rows]

    async def revoke_key(self, prefix: str, now: str) -> bool:
        tenant = self._session.tenant
        if tenant is None or not await self._change(_SQL["revoke_key"], tenant, prefix, now):
            return False
        await self._note_key_change(tenant)
        self._session.keys_revoked += 1
        return True

    async def limits(self, tenant: str, agent: str) -> AgentLimits:
        return limits_from_row(await self._row(_SQL["limits"], tenant, agent))

    async def set_limits(self, tenant: str, agent: str, limits: AgentLimits) -> None:
        if limits == NOTHING_SET:
            await self._change(_SQL["clear_limits"], tenant, agent)
        else:
            names = encode_names(limits.pinned_namespaces)
            await self._change(_SQL["set_limits"], tenant, agent, limits.episodic_capacity, names)

    async def _note_key_change(self, tenant: str) -> None:
        """Lets this server and the others know that what they remember of keys may be old."""
        await self._change(_SQL["note_key_change"], tenant)
        self._session.keys_changed += 1
