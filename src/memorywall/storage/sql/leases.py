"""Leases and fencing tokens."""

from __future__ import annotations

from typing import Any

from memorywall.records.lease import Lease, LeaseKind
from memorywall.storage.rows import decode_rows
from memorywall.storage.sql.access import RowAccess
from memorywall.storage.statements import load
from memorywall.storage.work_rows import lease_from_row, lease_to_row


class SqlLeaseRepository:
    """`port.LeaseRepository` over rows.

    Only one transaction of a tenant writes at a time, so no other transaction changes the rows that
    it has read. Statements about leases do not contain the time, which is compared here: many
    functions on one snapshot share one statement.
    """

    def __init__(self, rows: RowAccess) -> None:
        self._rows = rows
        self._sql = load(rows.dialect, "leases")

    async def acquire(self, lease: Lease, now: str) -> Lease | None:
        taken = await self._changed("acquire", *lease_to_row(lease, now))
        if taken is not None:
            # The counter changes last, because a refused acquisition must change nothing.
            await self._rows.change(self._sql["count"], taken.tenant, taken.token)
        return taken

    async def current(self, kind: LeaseKind, parent: str, name: str) -> Lease | None:
        return await self._one("current", kind.value, parent, name)

    async def get(self, lease_id: str) -> Lease | None:
        return await self._one("get", lease_id)

    async def find_held(self, token: int, holder: str, now: str) -> Lease | None:
        lease = await self._one("by_token", token)
        is_held = lease is not None and lease.holder == holder and lease.is_live(now)
        return lease if is_held else None

    async def extend(self, token: int, holder: str, expires_at: str, now: str) -> Lease | None:
        bindings = (self._rows.tenant, token, holder, expires_at, now)
        return await self._changed("extend", *bindings)

    async def end(self, token: int) -> bool:
        return bool(await self._rows.change(self._sql["end"], self._rows.tenant, token))

    async def held_by(self, kind: LeaseKind, holder: str, now: str) -> list[Lease]:
        found = await self._several("of_holder", kind.value, holder)
        return [lease for lease in found if lease.is_live(now)]

    async def count_held_by(self, kind: LeaseKind, holder: str, now: str) -> int:
        bindings = (self._rows.tenant, kind.value, holder, now)
        row = await self._rows.row(self._sql["count_held_by"], *bindings)
        return int(row[0]) if row else 0

    async def expired(self, now: str, limit: int) -> list[Lease]:
        return await self._several("expired", now, limit)

    async def _one(self, statement: str, *bindings: Any) -> Lease | None:
        row = await self._rows.row(self._sql[statement], self._rows.tenant, *bindings)
        return None if row is None else lease_from_row(row)

    async def _several(self, statement: str, *bindings: Any) -> list[Lease]:
        rows = await self._rows.rows(self._sql[statement], self._rows.tenant, *bindings)
        return await decode_rows(self._rows, rows, lease_from_row)

    async def _changed(self, statement: str, *bindings: Any) -> Lease | None:
        rows = await self._rows.change(self._sql[statement], *bindings)
        return lease_from_row(rows[0]) if rows else None

    async def list(self, kind: LeaseKind, parent: str, now: str) -> list[Lease]:
        found = await self._several("list", kind.value, parent)
        return [lease for lease in found if lease.is_live(now)]
