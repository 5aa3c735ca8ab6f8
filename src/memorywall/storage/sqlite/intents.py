"""Intents and their access lists in SQLite."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import apsw
import msgspec

from memorywall.records.intent import Intent, IntentGrant, IntentStatus
from memorywall.records.namespace import Access
from memorywall.storage.sqlite.rows import encode_body, encode_names
from memorywall.storage.sqlite.statements import load

_SQL = load("intents")
_decode = msgspec.json.Decoder(Intent).decode


class SqliteIntents:
    """`port.Intents` on one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute = connection.execute

    async def get(self, tenant: str, intent_id: str) -> Intent | None:
        row = self._execute(_SQL["get"], (tenant, intent_id)).fetchone()
        return None if row is None else _decode(row[0])

    async def insert(self, intent: Intent) -> None:
        self._execute(_SQL["insert"], _intent_to_row(intent))
        self._add_needs(intent)

    async def replace(self, intent: Intent) -> None:
        if self._execute(_SQL["replace"], _intent_to_row(intent)).fetchone() is None:
            raise LookupError("the intent to replace was not read in this transaction")
        self._execute(_SQL["clear_needs"], (intent.tenant, intent.id))
        self._add_needs(intent)

    async def children(self, tenant: str, intent_id: str) -> list[Intent]:
        return [_decode(row[0]) for row in self._execute(_SQL["children"], (tenant, intent_id))]

    async def dependents(self, tenant: str, intent_id: str) -> list[Intent]:
        return [_decode(row[0]) for row in self._execute(_SQL["dependents"], (tenant, intent_id))]

    async def grants(self, tenant: str, intent_id: str) -> list[IntentGrant]:
        return [_grant_from_row(row) for row in self._execute(_SQL["grants"], (tenant, intent_id))]

    async def grants_to(self, tenant: str, principal: str, now: str) -> list[IntentGrant]:
        rows = self._execute(_SQL["grants_to"], (tenant, principal, now))
        return [_grant_from_row(row) for row in rows]

    async def add_grant(self, grant: IntentGrant) -> None:
        self._execute(
            _SQL["add_grant"],
            (
                grant.tenant,
                grant.intent_id,
                grant.id,
                grant.principal_id,
                grant.principal_type,
                grant.access.value,
                grant.granted_by,
                grant.granted_at,
                grant.expires_at,
                grant.reason,
            ),
        )

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
        intents = [_decode(row[0]) for row in self._execute(_SQL["page"], (*wanted, limit, offset))]
        total = self._execute(_SQL["total"], wanted).fetchone()
        return intents, total[0] if total else 0

    def _add_needs(self, intent: Intent) -> None:
        for needed in intent.depends_on:
            self._execute(_SQL["add_need"], (intent.tenant, needed, intent.id))


def _intent_to_row(intent: Intent) -> tuple[Any, ...]:
    return (
        intent.tenant,
        intent.id,
        intent.created_by,
        intent.default_policy.value,
        intent.status.value,
        intent.parent_intent_id,
        encode_body(intent),
    )


def _grant_from_row(row: tuple[Any, ...]) -> IntentGrant:
    return IntentGrant(
        tenant=row[0],
        intent_id=row[1],
        id=row[2],
        principal_id=row[3],
        principal_type=row[4],
        access=Access(row[5]),
        granted_by=row[6],
        granted_at=row[7],
        expires_at=row[8],
        reason=row[9],
    )
