"""Kept replies and data keys in SQLite."""

from __future__ import annotations

import apsw

from memorywall.records.idempotency import DataKey, KeptReply
from memorywall.storage.sqlite.statements import load

_REPLIES = load("replies")
_DATA_KEYS = load("data_keys")


class SqliteKeptReplies:
    """`port.KeptReplies` on one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute = connection.execute

    async def get(self, tenant: str, principal: str, key: str) -> KeptReply | None:
        row = self._execute(_REPLIES["get"], (tenant, principal, key)).fetchone()
        if row is None:
            return None
        links = self._execute(_REPLIES["links"], (tenant, principal, key))
        return KeptReply(
            tenant=tenant,
            principal=principal,
            key=key,
            fingerprint=row[0],
            status=row[1],
            reply=row[2],
            sealing_key=row[3],
            created_at=row[4],
            entry_ids=tuple(link[0] for link in links),
        )

    async def put(self, kept: KeptReply) -> None:
        name = (kept.tenant, kept.principal, kept.key)
        self._execute(
            _REPLIES["put"],
            (*name, kept.fingerprint, kept.status, kept.reply, kept.sealing_key, kept.created_at),
        )
        for entry_id in kept.entry_ids:
            self._execute(_REPLIES["link"], (kept.tenant, entry_id, kept.principal, kept.key))

    async def prune(self, tenant: str, created_before: str) -> int:
        self._execute(_REPLIES["prune_links"], (tenant, created_before))
        return len(list(self._execute(_REPLIES["prune"], (tenant, created_before))))


class SqliteDataKeys:
    """`port.DataKeys` on one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute = connection.execute

    async def get(self, tenant: str, key_id: str) -> DataKey | None:
        return self._one("get", (tenant, key_id))

    async def current(self, tenant: str) -> DataKey | None:
        return self._one("current", (tenant,))

    async def any(self) -> DataKey | None:
        return self._one("any", ())

    async def add(self, data_key: DataKey) -> None:
        self._execute(
            _DATA_KEYS["add"],
            (
                data_key.tenant,
                data_key.id,
                data_key.wrapped,
                data_key.wrapped_by,
                data_key.created_at,
            ),
        )

    def _one(self, statement: str, bindings: tuple[str, ...]) -> DataKey | None:
        row = self._execute(_DATA_KEYS[statement], bindings).fetchone()
        if row is None:
            return None
        return DataKey(
            tenant=row[0], id=row[1], wrapped=row[2], wrapped_by=row[3], created_at=row[4]
        )
