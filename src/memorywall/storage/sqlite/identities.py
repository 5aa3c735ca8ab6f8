"""Tenants and keys in SQLite."""

from __future__ import annotations

from memorywall.records.principal import ApiKey
from memorywall.storage.rows import key_from_row, key_to_row
from memorywall.storage.sql.registry import SqlPrincipalRepository


class SqliteIdentityRepository(SqlPrincipalRepository):
    """`port.Identities` on one connection."""

    async def tenants(self) -> list[str]:
        return [str(row[0]) for row in await self._rows.rows(self._sql["tenants"])]

    async def add_key(self, key: ApiKey) -> None:
        await self._rows.change(self._sql["add_key"], *key_to_row(key))

    async def find_key(self, prefix: str) -> ApiKey | None:
        row = await self._rows.row(self._sql["find_key"], prefix)
        return None if row is None else key_from_row(row)

    async def keys(self, tenant: str | None) -> list[ApiKey]:
        return [key_from_row(row) for row in await self._rows.rows(self._sql["keys"], tenant)]

    async def revoke_key(self, prefix: str, now: str) -> bool:
        return bool(await self._rows.change(self._sql["revoke_key"], prefix, now))
