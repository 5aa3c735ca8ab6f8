"""Kept replies and data keys in PostgreSQL."""

from __future__ import annotations

from memorywall.records.idempotency import DataKey, KeptReply
from memorywall.storage.postgres.session import Noun
from memorywall.storage.rows import (
    data_key_from_row,
    data_key_to_row,
    reply_from_row,
    reply_to_row,
)
from memorywall.storage.statements import load

_REPLIES = load("postgres", "replies")
_DATA_KEYS = load("postgres", "data_keys")


class PostgresKeptReplies(Noun):
    """`port.KeptReplies` in one transaction.

    Nothing read is remembered: removing an entry, which is the business of another noun, changes
    replies too.
    """

    async def get(self, tenant: str, principal: str, key: str) -> KeptReply | None:
        name = (tenant, principal, key)
        row = await self._session.row(_REPLIES["get"], *name)
        if row is None:
            return None
        return reply_from_row(*name, row, await self._session.rows(_REPLIES["links"], *name))

    async def put(self, kept: KeptReply) -> None:
        await self._change(_REPLIES["put"], *reply_to_row(kept))
        if kept.entry_ids:
            await self._change(
                _REPLIES["link"], kept.tenant, kept.principal, kept.key, kept.entry_ids
            )

    async def prune(self, tenant: str, created_before: str) -> int:
        return await self._unlink(tenant, "prune", created_before)

    async def remove(self, tenant: str, principal: str, limit: int) -> int:
        return await self._unlink(tenant, "remove", principal, limit)

    async def _unlink(self, tenant: str, statement: str, *bindings: str | int) -> int:
        gone = await self._change(_REPLIES[statement], tenant, *bindings)
        if gone:
            names = ([row[0] for row in gone], [row[1] for row in gone])
            await self._change(_REPLIES["unlink"], tenant, *names)
        return len(gone)


class PostgresDataKeys(Noun):
    """`port.DataKeys` in one transaction."""

    async def get(self, tenant: str, key_id: str) -> DataKey | None:
        return data_key_from_row(await self._row(_DATA_KEYS["get"], tenant, key_id))

    async def current(self, tenant: str, subject: str = "") -> DataKey | None:
        return data_key_from_row(await self._row(_DATA_KEYS["current"], tenant, subject))

    async def any(self) -> DataKey | None:
        return data_key_from_row(await self._row(_DATA_KEYS["any"], self._session.tenant))

    async def add(self, data_key: DataKey) -> None:
        await self._change(_DATA_KEYS["add"], *data_key_to_row(data_key))

    async def remove(self, tenant: str, subject: str) -> int:
        return len(await self._change(_DATA_KEYS["remove"], tenant, subject))
