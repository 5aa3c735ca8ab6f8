"""Idempotency records and data keys in SQLite."""

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
from memorywall.storage.sqlite.repository import SqliteRepository
from memorywall.storage.statements import load

_REPLIES = load("sqlite", "replies")
_DATA_KEYS = load("sqlite", "data_keys")


class SqliteIdempotencyRepository(SqliteRepository):
    """`port.IdempotencyRepository` on one connection."""

    async def get(self, principal: str, key: str) -> IdempotencyRecord | None:
        row = self._execute(_REPLIES["get"], (self._tenant, principal, key)).fetchone()
        if row is None:
            return None
        links = self._execute(_REPLIES["links"], (self._tenant, principal, key))
        return reply_from_row(self._tenant, principal, key, row, links)

    async def put(self, kept: IdempotencyRecord) -> None:
        self._execute(_REPLIES["put"], reply_to_row(kept))
        for entry_id in kept.entry_ids:
            self._execute(_REPLIES["link"], (kept.tenant, entry_id, kept.principal, kept.key))

    async def names_key(self, key_id: str) -> bool:
        bindings = (self._tenant, key_id)
        return self._execute(_REPLIES["names_key"], bindings).fetchone() is not None

    async def has_older(self, created_before: str) -> bool:
        bindings = (self._tenant, created_before)
        return self._execute(_REPLIES["has_older"], bindings).fetchone() is not None

    async def prune(self, created_before: str) -> int:
        self._execute(_REPLIES["prune_links"], (self._tenant, created_before))
        return len(list(self._execute(_REPLIES["prune"], (self._tenant, created_before))))

    async def remove(self, principal: str, limit: int) -> int:
        self._execute(_REPLIES["remove_links"], (self._tenant, principal, limit))
        removed = len(list(self._execute(_REPLIES["remove"], (self._tenant, principal, limit))))
        if removed:
            self.count_removal()
        return removed


class SqliteDataKeyRepository(SqliteRepository):
    """`port.DataKeyRepository` on one connection."""

    async def get(self, key_id: str) -> DataKey | None:
        return self._one("get", (self._tenant, key_id))

    async def current(
        self, owner: str = "", purpose: KeyPurpose = KeyPurpose.SEALING
    ) -> DataKey | None:
        return self._one("current", (self._tenant, owner, purpose_to_cell(purpose)))

    async def any(self) -> DataKey | None:
        return self._one("any", ())

    async def add(self, data_key: DataKey) -> None:
        self._execute(_DATA_KEYS["add"], data_key_to_row(data_key))

    async def remove(self, owner: str) -> int:
        removed = len(list(self._execute(_DATA_KEYS["remove"], (self._tenant, owner))))
        if removed:
            self.count_removal()
        return removed

    async def wrappers(self) -> dict[str, int]:
        rows = self._execute(_DATA_KEYS["wrappers"], (self._binding.bound,))
        return {str(row[0]): int(row[1]) for row in rows}

    async def wrapped_otherwise(self, wrapped_by: str, after: str, limit: int) -> list[DataKey]:
        bindings = (self._tenant, wrapped_by, after, limit)
        rows = self._execute(_DATA_KEYS["wrapped_otherwise"], bindings).fetchall()
        return [found for row in rows if (found := data_key_from_row(row))]

    async def replace(self, data_key: DataKey) -> None:
        self._change("replace", (self._tenant, *data_key_replacement(data_key)))

    async def replaced(self) -> list[DataKey]:
        rows = self._execute(_DATA_KEYS["replaced"], (self._tenant,)).fetchall()
        return [found for row in rows if (found := data_key_from_row(row))]

    async def first(self) -> DataKey | None:
        return self._one("first", (self._tenant,))

    async def discard(self, key_id: str) -> None:
        self._change("discard", (self._tenant, key_id))

    def _change(self, statement: str, bindings: tuple[Any, ...]) -> None:
        """Runs a statement that changes one key. Raises LookupError."""
        if not self._execute(_DATA_KEYS[statement], bindings).fetchall():
            raise LookupError("no such data key")
        self.count_removal()

    def _one(self, statement: str, bindings: tuple[str | None, ...]) -> DataKey | None:
        return data_key_from_row(self._execute(_DATA_KEYS[statement], bindings).fetchone())
