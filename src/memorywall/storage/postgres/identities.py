"""Tenants and keys in PostgreSQL."""

from __future__ import annotations

from memorywall.records.principal import ApiKey
from memorywall.storage.postgres.session import PostgresRepository, StatementSession
from memorywall.storage.sql.registry import SqlIdentityRepository


class PostgresIdentityRepository(SqlIdentityRepository):
    """`port.IdentityRepository` in one transaction: every change of a key invalidates the key
    caches of this server and the others."""

    def __init__(self, session: StatementSession) -> None:
        super().__init__(PostgresRepository(session))
        self._session = session

    async def add_key(self, key: ApiKey) -> None:
        await super().add_key(key)
        await self._note_key_change(key.tenant)

    async def revoke_key(self, prefix: str, now: str) -> bool:
        if not await super().revoke_key(prefix, now):
            return False
        await self._note_key_end()
        return True

    async def end_key(self, prefix: str, successor: str, expires_at: str) -> bool:
        if not await super().end_key(prefix, successor, expires_at):
            return False
        await self._note_key_end()
        return True

    async def _note_key_end(self) -> None:
        await self._note_key_change(self._rows.tenant)
        self._session.keys_revoked += 1

    async def _note_key_change(self, tenant: str) -> None:
        await self._rows.change(self._sql["note_key_change"], tenant)
        self._session.keys_changed += 1
