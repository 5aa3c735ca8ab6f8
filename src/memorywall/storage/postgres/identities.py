"""Tenants and keys in PostgreSQL."""

from __future__ import annotations

from memorywall.records.principal import ApiKey
from memorywall.storage.postgres.session import PostgresRepository, StatementSession
from memorywall.storage.rows import key_from_row, key_to_row
from memorywall.storage.sql.registry import SqlPrincipalRepository


class PostgresIdentityRepository(SqlPrincipalRepository):
    """`port.IdentityRepository` in one transaction.

    Methods without a tenant parameter use the transaction's tenant. In the registry, which has
    none, tenants and keys are those of all tenants.
    """

    def __init__(self, session: StatementSession) -> None:
        super().__init__(PostgresRepository(session))
        self._session = session

    async def tenants(self) -> list[str]:
        rows = await self._rows.rows(self._sql["tenants"], self._session.tenant)
        return [row[0] for row in rows]

    async def add_key(self, key: ApiKey) -> None:
        await self._rows.change(self._sql["add_key"], *key_to_row(key))
        await self._note_key_change(key.tenant)

    async def find_key(self, prefix: str) -> ApiKey | None:
        row = await self._rows.row(self._sql["find_key"], prefix, self._session.tenant)
        return None if row is None else key_from_row(row)

    async def keys(self, tenant: str | None) -> list[ApiKey]:
        of = self._session.tenant if tenant is None else tenant
        if of is None:
            rows = await self._rows.rows(self._sql["keys_of_all"])
        else:
            rows = await self._rows.rows(self._sql["keys"], of)
        return [key_from_row(row) for row in rows]

    async def revoke_key(self, prefix: str, now: str) -> bool:
        tenant = self._session.tenant
        if tenant is None or not await self._rows.change(
            self._sql["revoke_key"], tenant, prefix, now
        ):
            return False
        await self._note_key_change(tenant)
        self._session.keys_revoked += 1
        return True

    async def _note_key_change(self, tenant: str) -> None:
        """Invalidates the key caches of this server and the others."""
        await self._rows.change(self._sql["note_key_change"], tenant)
        self._session.keys_changed += 1
