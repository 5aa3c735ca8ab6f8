"""Kept replies and data keys in SQLite."""

from __future__ import annotations

import apsw

from memorywall.records.idempotency import DataKey, KeptReply
from memorywall.storage.rows import (
    data_key_from_row,
    data_key_to_row,
    reply_from_row,
    reply_to_row,
)
from memorywall.storage.statements import load

_REPLIES = load("sqlite", "replies")
_DATA_KEYS = load("sqlite", "data_keys")


class SqliteKeptReplies:
    """`port.KeptReplies` on one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute = connection.execute
        self.removals = 0
        """How often replies of a principal were removed, whose bytes have yet to leave the log."""

    async def get(self, tenant: str, principal: str, key: str) -> KeptReply | None:
        row = self._execute(_REPLIES["get"], (tenant, principal, key)).fetchone()
        if row is None:
            return None
        links = self._execute(_REPLIES["links"], (tenant, principal, key))
        return reply_from_row(tenant, principal, key, row, links)

    async def put(self, kept: KeptReply) -> None:
        self._execute(_REPLIES["put"], reply_to_row(kept))
        for entry_id in kept.entry_ids:
            self._execute(_REPLIES["link"], (kept.tenant, entry_id, kept.principal, kept.key))

    async def prune(self, tenant: str, created_before: str) -> int:
        self._execute(_REPLIES["prune_links"], (tenant, created_before))
        return len(list(self._execute(_REPLIES["prune"], (tenant, created_before))))

    async def remove(self, tenant: str, principal: str, limit: int) -> int:
        self._execute(_REPLIES["remove_links"], (tenant, principal, limit))
        removed = len(list(self._execute(_REPLIES["remove"], (tenant, principal, limit))))
        self.removals += removed > 0
        return removed


class SqliteDataKeys:
    """`port.DataKeys` on one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute = connection.execute
        self.removals = 0
        """How often data keys were destroyed, whose bytes have yet to leave the log."""

    async def get(self, tenant: str, key_id: str) -> DataKey | None:
        return self._one("get", (tenant, key_id))

    async def current(self, tenant: str, subject: str = "") -> DataKey | None:
        return self._one("current", (tenant, subject))

    async def any(self) -> DataKey | None:
        return self._one("any", ())

    async def add(self, data_key: DataKey) -> None:
        self._execute(_DATA_KEYS["add"], data_key_to_row(data_key))

    async def remove(self, tenant: str, subject: str) -> int:
        removed = len(list(self._execute(_DATA_KEYS["remove"], (tenant, subject))))
        self.removals += removed > 0
        return removed

    def _one(self, statement: str, bindings: tuple[str, ...]) -> DataKey | None:
        return data_key_from_row(self._execute(_DATA_KEYS[statement], bindings).fetchone())
