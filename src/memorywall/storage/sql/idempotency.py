"""Stored responses and data keys."""

from __future__ import annotations

from typing import Any

from memorywall.records.idempotency import DataKey, IdempotencyRecord, KeyPurpose
from memorywall.storage.data_keys import (
    data_key_from_row,
    data_key_replacement,
    data_key_to_row,
    purpose_to_cell,
)
from memorywall.storage.rows import reply_from_row, reply_to_row
from memorywall.storage.sql.access import RowAccess
from memorywall.storage.statements import load


class SqlIdempotencyRepository:
    """`port.IdempotencyRepository` over rows.

    rows: without a cache, because the removal of an entry in another repository also changes
        responses
    """

    def __init__(self, rows: RowAccess) -> None:
        self._rows = rows
        self._sql = load(rows.dialect, "replies")

    async def get(self, principal: str, key: str) -> IdempotencyRecord | None:
        name = (self._rows.tenant, principal, key)
        row = await self._rows.row(self._sql["get"], *name)
        if row is None:
            return None
        return reply_from_row(*name, row, await self._rows.rows(self._sql["links"], *name))

    async def put(self, kept: IdempotencyRecord) -> None:
        await self._rows.change(self._sql["put"], *reply_to_row(kept))
        name = (kept.tenant, kept.principal, kept.key)
        links = [(entry_id,) for entry_id in kept.entry_ids]
        await self._rows.change_each(self._sql["link"], name, links)

    async def names_key(self, key_id: str) -> bool:
        return await self._rows.row(self._sql["names_key"], self._rows.tenant, key_id) is not None

    async def has_older(self, created_before: str) -> bool:
        bindings = (self._rows.tenant, created_before)
        return await self._rows.row(self._sql["has_older"], *bindings) is not None

    async def prune(self, created_before: str) -> int:
        return await self._remove("prune", created_before)

    async def remove(self, principal: str, limit: int) -> int:
        removed = await self._remove("remove", principal, limit)
        if removed:
            self._rows.count_removal()
        return removed

    async def _remove(self, statement: str, *bindings: str | int) -> int:
        tenant = self._rows.tenant
        removed = await self._rows.change(self._sql[statement], tenant, *bindings)
        await self._rows.change_each(self._sql["unlink"], (tenant,), removed)
        return len(removed)


class SqlDataKeyRepository:
    """`port.DataKeyRepository` over rows."""

    def __init__(self, rows: RowAccess) -> None:
        self._rows = rows
        self._sql = load(rows.dialect, "data_keys")

    async def get(self, key_id: str) -> DataKey | None:
        return await self._one("get", self._rows.tenant, key_id)

    async def current(
        self, owner: str = "", purpose: KeyPurpose = KeyPurpose.SEALING
    ) -> DataKey | None:
        return await self._one("current", self._rows.tenant, owner, purpose_to_cell(purpose))

    async def any(self) -> DataKey | None:
        return await self._one("any", self._rows.bound)

    async def first(self) -> DataKey | None:
        return await self._one("first", self._rows.tenant)

    async def add(self, data_key: DataKey) -> None:
        await self._rows.change(self._sql["add"], *data_key_to_row(data_key))

    async def remove(self, owner: str) -> int:
        removed = await self._rows.change(self._sql["remove"], self._rows.tenant, owner)
        if removed:
            self._rows.count_removal()
        return len(removed)

    async def wrappers(self) -> dict[str, int]:
        rows = await self._rows.rows(self._sql["wrappers"], self._rows.bound)
        return {str(row[0]): int(row[1]) for row in rows}

    async def wrapped_otherwise(self, wrapped_by: str, after: str, limit: int) -> list[DataKey]:
        return await self._several("wrapped_otherwise", wrapped_by, after, limit)

    async def replaced(self) -> list[DataKey]:
        return await self._several("replaced")

    async def replace(self, data_key: DataKey) -> None:
        await self._change("replace", *data_key_replacement(data_key))

    async def discard(self, key_id: str) -> None:
        await self._change("discard", key_id)

    async def _change(self, statement: str, *bindings: Any) -> None:
        """Runs a statement that changes one key. Raises LookupError."""
        if not await self._rows.change(self._sql[statement], self._rows.tenant, *bindings):
            raise LookupError("no such data key")
        self._rows.count_removal()

    async def _one(self, statement: str, *bindings: str | None) -> DataKey | None:
        return data_key_from_row(await self._rows.row(self._sql[statement], *bindings))

    async def _several(self, statement: str, *bindings: str | int) -> list[DataKey]:
        rows = await self._rows.rows(self._sql[statement], self._rows.tenant, *bindings)
        return [found for row in rows if (found := data_key_from_row(row))]
