"""Idempotency records and data keys in PostgreSQL."""

from __future__ import annotations

from memorywall.records.idempotency import DataKey, IdempotencyRecord, KeyPurpose
from memorywall.storage.data_keys import (
    data_key_from_row,
    data_key_replacement,
    data_key_to_row,
    purpose_to_cell,
)
from memorywall.storage.postgres.session import PostgresRepository
from memorywall.storage.rows import reply_from_row, reply_to_row
from memorywall.storage.statements import load

_REPLIES = load("postgres", "replies")
_DATA_KEYS = load("postgres", "data_keys")


class PostgresIdempotencyRepository(PostgresRepository):
    """`port.IdempotencyRepository` in one transaction.

    Reads are not cached, because the removal of an entry in another repository also changes
    responses.
    """

    async def get(self, principal: str, key: str) -> IdempotencyRecord | None:
        name = (self.tenant, principal, key)
        row = await self._session.row(_REPLIES["get"], *name)
        if row is None:
            return None
        return reply_from_row(*name, row, await self._session.rows(_REPLIES["links"], *name))

    async def put(self, kept: IdempotencyRecord) -> None:
        await self.change(_REPLIES["put"], *reply_to_row(kept))
        if kept.entry_ids:
            await self.change(
                _REPLIES["link"], kept.tenant, kept.principal, kept.key, kept.entry_ids
            )

    async def names_key(self, key_id: str) -> bool:
        return await self._session.row(_REPLIES["names_key"], self.tenant, key_id) is not None

    async def has_older(self, created_before: str) -> bool:
        return (
            await self._session.row(_REPLIES["has_older"], self.tenant, created_before) is not None
        )

    async def prune(self, created_before: str) -> int:
        return await self._unlink(self.tenant, "prune", created_before)

    async def remove(self, principal: str, limit: int) -> int:
        return await self._unlink(self.tenant, "remove", principal, limit)

    async def _unlink(self, tenant: str, statement: str, *bindings: str | int) -> int:
        gone = await self.change(_REPLIES[statement], tenant, *bindings)
        if gone:
            names = ([row[0] for row in gone], [row[1] for row in gone])
            await self.change(_REPLIES["unlink"], tenant, *names)
        return len(gone)


class PostgresDataKeyRepository(PostgresRepository):
    """`port.DataKeyRepository` in one transaction."""

    async def get(self, key_id: str) -> DataKey | None:
        return data_key_from_row(await self.row(_DATA_KEYS["get"], self.tenant, key_id))

    async def current(
        self, owner: str = "", purpose: KeyPurpose = KeyPurpose.SEALING
    ) -> DataKey | None:
        row = await self.row(_DATA_KEYS["current"], self.tenant, owner, purpose_to_cell(purpose))
        return data_key_from_row(row)

    async def any(self) -> DataKey | None:
        return data_key_from_row(await self.row(_DATA_KEYS["any"], self._session.tenant))

    async def add(self, data_key: DataKey) -> None:
        await self.change(_DATA_KEYS["add"], *data_key_to_row(data_key))

    async def wrappers(self) -> dict[str, int]:
        rows = await self.rows(_DATA_KEYS["wrappers"], self._session.tenant)
        return {row[0]: row[1] for row in rows}

    async def wrapped_otherwise(self, wrapped_by: str, after: str, limit: int) -> list[DataKey]:
        bindings = (self.tenant, wrapped_by, after, limit)
        rows = await self.rows(_DATA_KEYS["wrapped_otherwise"], *bindings)
        return [found for row in rows if (found := data_key_from_row(row))]

    async def replace(self, data_key: DataKey) -> None:
        bindings = (self.tenant, *data_key_replacement(data_key))
        if not await self.change(_DATA_KEYS["replace"], *bindings):
            raise LookupError("no such data key")

    async def replaced(self) -> list[DataKey]:
        rows = await self.rows(_DATA_KEYS["replaced"], self.tenant)
        return [found for row in rows if (found := data_key_from_row(row))]

    async def first(self) -> DataKey | None:
        return data_key_from_row(await self.row(_DATA_KEYS["first"], self.tenant))

    async def discard(self, key_id: str) -> None:
        if not await self.change(_DATA_KEYS["discard"], self.tenant, key_id):
            raise LookupError("no such data key")

    async def remove(self, owner: str) -> int:
        return len(await self.change(_DATA_KEYS["remove"], self.tenant, owner))
