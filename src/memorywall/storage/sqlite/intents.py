"""Intents and their access lists in SQLite."""

from __future__ import annotations

from collections.abc import Collection

import apsw

from memorywall.records.intent import Intent, IntentGrant, IntentStatus
from memorywall.storage.rows import encode_names
from memorywall.storage.statements import load
from memorywall.storage.work_rows import (
    decode_intent,
    grant_from_row,
    grant_to_row,
    intent_to_row,
)

_SQL = load("sqlite", "intents")


class SqliteIntents:
    """`port.Intents` on one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute = connection.execute

    async def get(self, tenant: str, intent_id: str) -> Intent | None:
        row = self._execute(_SQL["get"], (tenant, intent_id)).fetchone()
        return None if row is None else decode_intent(row[0])

    async def insert(self, intent: Intent) -> None:
        self._execute(_SQL["insert"], intent_to_row(intent))
        self._add_needs(intent)

    async def replace(self, intent: Intent) -> None:
        if self._execute(_SQL["replace"], intent_to_row(intent)).fetchone() is None:
            raise LookupError("the intent to replace was not read in this transaction")
        self._execute(_SQL["clear_needs"], (intent.tenant, intent.id))
        self._add_needs(intent)

    async def children(self, tenant: str, intent_id: str) -> list[Intent]:
        return [
            decode_intent(row[0]) for row in self._execute(_SQL["children"], (tenant, intent_id))
        ]

    async def dependents(self, tenant: str, intent_id: str) -> list[Intent]:
        return [
            decode_intent(row[0]) for row in self._execute(_SQL["dependents"], (tenant, intent_id))
        ]

    async def grants(self, tenant: str, intent_id: str) -> list[IntentGrant]:
        return [grant_from_row(row) for row in self._execute(_SQL["grants"], (tenant, intent_id))]

    async def grants_to(self, tenant: str, principal: str, now: str) -> list[IntentGrant]:
        rows = self._execute(_SQL["grants_to"], (tenant, principal, now))
        return [grant_from_row(row) for row in rows]

    async def add_grant(self, grant: IntentGrant) -> None:
        self._execute(_SQL["add_grant"], grant_to_row(grant))

    async def remove_grant(self, tenant: str, intent_id: str, grant_id: str) -> bool:
        removed = self._execute(_SQL["remove_grant"], (tenant, intent_id, grant_id)).fetchone()
        return removed is not None

    async def list(
        self,
        tenant: str,
        creator: str,
        ids: Collection[str],
        status: IntentStatus | None,
        limit: int,
        offset: int,
    ) -> tuple[list[Intent], int]:
        wanted = (tenant, creator, encode_names(ids), None if status is None else status.value)
        intents = [
            decode_intent(row[0]) for row in self._execute(_SQL["page"], (*wanted, limit, offset))
        ]
        total = self._execute(_SQL["total"], wanted).fetchone()
        return intents, total[0] if total else 0

    def _add_needs(self, intent: Intent) -> None:
        for needed in intent.depends_on:
            self._execute(_SQL["add_need"], (intent.tenant, needed, intent.id))
