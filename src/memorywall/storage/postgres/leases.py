"""Leases and fencing tokens in PostgreSQL."""

from __future__ import annotations

from typing import Any

from memorywall.records.lease import Lease, LeaseKind
from memorywall.storage.postgres.session import Noun
from memorywall.storage.statements import load
from memorywall.storage.work_rows import lease_from_row, lease_to_row

_SQL = load("postgres", "leases")


class PostgresLeases(Noun):
    """`port.Leases` in one transaction.

    A transaction that writes holds the lock of its tenant, so what it has read nobody else changes
    before it ends. Facts about single leases are read without the time, which is looked at here:
    so a group of scripts asks for each once.
    """

    async def take(self, lease: Lease, now: str) -> Lease | None:
        taken = await self._changed("take", *lease_to_row(lease, now))
        if taken is not None:
            # After the fact, for a refused one changes nothing and leaves nothing to undo.
            await self._change(_SQL["count"], taken.tenant, taken.token)
        return taken

    async def current(self, tenant: str, kind: LeaseKind, place: str, name: str) -> Lease | None:
        return await self._one("current", tenant, kind.value, place, name)

    async def get(self, tenant: str, lease_id: str) -> Lease | None:
        return await self._one("get", tenant, lease_id)

    async def held(self, tenant: str, token: int, holder: str, now: str) -> Lease | None:
        lease = await self._one("by_token", tenant, token)
        is_held = lease is not None and lease.holder == holder and lease.is_live(now)
        return lease if is_held else None

    async def extend(
        self, tenant: str, token: int, holder: str, expires_at: str, now: str
    ) -> Lease | None:
        return await self._changed("extend", tenant, token, holder, expires_at, now)

    async def end(self, tenant: str, token: int) -> bool:
        return bool(await self._change(_SQL["end"], tenant, token))

    async def held_by(self, tenant: str, kind: LeaseKind, holder: str, now: str) -> list[Lease]:
        rows = await self._rows(_SQL["of_holder"], tenant, kind.value, holder)
        return [lease for lease in map(lease_from_row, rows) if lease.is_live(now)]

    async def count_held_by(self, tenant: str, kind: LeaseKind, holder: str, now: str) -> int:
        return len(await self.held_by(tenant, kind, holder, now))

    async def lapsed(self, tenant: str, now: str, limit: int) -> list[Lease]:
        rows = await self._rows(_SQL["lapsed"], tenant, now, limit)
        return [lease_from_row(row) for row in rows]

    async def list(self, tenant: str, kind: LeaseKind, place: str, now: str) -> list[Lease]:
        rows = await self._rows(_SQL["list"], tenant, kind.value, place, now)
        return [lease_from_row(row) for row in rows]

    async def _one(self, statement: str, *bindings: Any) -> Lease | None:
        row = await self._row(_SQL[statement], *bindings)
        return None if row is None else lease_from_row(row)

    async def _changed(self, statement: str, *bindings: Any) -> Lease | None:
        rows = await self._change(_SQL[statement], *bindings)
        return lease_from_row(rows[0]) if rows else None
