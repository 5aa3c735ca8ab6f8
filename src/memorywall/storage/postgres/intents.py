"""Intents and their access lists in PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from memorywall.records.intent import Intent, IntentGrant, IntentStatus
from memorywall.storage.postgres.session import Noun
from memorywall.storage.statements import load
from memorywall.storage.work_rows import (
    decode_intent,
    grant_from_row,
    grant_to_row,
    intent_to_row,
)

_SQL = load("postgres", "intents")


class PostgresIntents(Noun):
    """`port.Intents` in one transaction."""

    async def get(self, tenant: str, intent_id: str) -> Intent | None:
        row = await self._row(_SQL["get"], tenant, intent_id)
        return None if row is None else decode_intent(row[0])

    async def insert(self, intent: Intent) -> None:
        await self._change(_SQL["insert"], *intent_to_row(intent))
        await self._add_needs(intent)

    async def replace(self, intent: Intent) -> None:
        if not await self._change(_SQL["replace"], *intent_to_row(intent)):
            raise LookupError("the intent to replace was not read in this transaction")
        await self._change(_SQL["clear_needs"], intent.tenant, intent.id, intent.depends_on)
        await self._add_needs(intent)

    async def children(self, tenant: str, intent_id: str) -> list[Intent]:
        rows = await self._rows(_SQL["children"], tenant, intent_id)
        return [decode_intent(row[0]) for row in rows]

    async def dependents(self, tenant: str, intent_id: str) -> list[Intent]:
        rows = await self._rows(_SQL["dependents"], tenant, intent_id)
        return [decode_intent(row[0]) for row in rows]

    async def grants(self, tenant: str, intent_id: str) -> list[IntentGrant]:
        rows = await self._rows(_SQL["grants"], tenant, intent_id)
        return [_grant_from_row(row) for row in rows]

    async def grants_to(self, tenant: str, principal: str, now: str) -> list[IntentGrant]:
        # Asked with nearly every request of an agent, so once for a group of scripts: without the
        # time, which is looked at here.
        rows = await self._rows(_SQL["grants_to"], tenant, principal)
        return [grant for grant in map(_grant_from_row, rows) if grant.counts(now)]

    async def add_grant(self, grant: IntentGrant) -> None:
        *columns, reason = grant_to_row(grant)
        await self._change(_SQL["add_grant"], *columns, None if reason is None else reason.encode())

    async def remove_grant(self, tenant: str, intent_id: str, grant_id: str) -> bool:
        return bool(await self._change(_SQL["remove_grant"], tenant, intent_id, grant_id))

    async def list(
        self,
        tenant: str,
        creator: str,
        ids: Collection[str],
        status: IntentStatus | None,
        limit: int,
        offset: int,
    ) -> tuple[list[Intent], int]:
        wanted = (tenant, creator, tuple(ids), None if status is None else status.value)
        page = await self._rows(_SQL["page"], *wanted, limit, offset)
        total = await self._row(_SQL["total"], *wanted)
        return [decode_intent(row[0]) for row in page], total[0] if total else 0

    async def _add_needs(self, intent: Intent) -> None:
        if intent.depends_on:
            await self._change(_SQL["add_needs"], intent.tenant, intent.id, intent.depends_on)


def _grant_from_row(row: Sequence[Any]) -> IntentGrant:
    *columns, reason = row
    return grant_from_row((*columns, None if reason is None else reason.decode()))
