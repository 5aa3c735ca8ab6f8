"""Leases and fencing tokens in SQLite."""

from __future__ import annotations

from typing import Any

import apsw

from memorywall.records.lease import Lease, LeaseKind
from memorywall.storage.statements import load
from memorywall.storage.work_rows import lease_from_row, lease_to_row

_SQL = load("sqlite", "leases")


class SqliteLeases:
    """`port.Leases` on one connection.

    Only one transaction writes at a time, so what one has read nobody else changes before it ends.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute = connection.execute

    async def take(self, lease: Lease, now: str) -> Lease | None:
        taken = self._one("take", lease_to_row(lease, now))
        if taken is not None:
            # After the fact, for a refused one changes nothing and leaves nothing to undo.
            self._execute(_SQL["count"], (taken.tenant, taken.token))
        return taken

    async def current(self, tenant: str, kind: LeaseKind, place: str, name: str) -> Lease | None:
        return self._one("current", (tenant, kind.value, place, name))

    async def get(self, tenant: str, lease_id: str) -> Lease | None:
        return self._one("get", (tenant, lease_id))

    async def held(self, tenant: str, token: int, holder: str, now: str) -> Lease | None:
        return self._one("held", (tenant, token, holder, now))

    async def extend(
        self, tenant: str, token: int, holder: str, expires_at: str, now: str
    ) -> Lease | None:
        return self._one("extend", (tenant, token, holder, expires_at, now))

    async def end(self, tenant: str, token: int) -> bool:
        return self._execute(_SQL["end"], (tenant, token)).fetchone() is not None

    async def held_by(self, tenant: str, kind: LeaseKind, holder: str, now: str) -> list[Lease]:
        rows = self._execute(_SQL["held_by"], (tenant, kind.value, holder, now))
        return [lease_from_row(row) for row in rows]

    async def count_held_by(self, tenant: str, kind: LeaseKind, holder: str, now: str) -> int:
        row = self._execute(_SQL["count_held_by"], (tenant, kind.value, holder, now)).fetchone()
        return int(row[0]) if row else 0

    async def lapsed(self, tenant: str, now: str, limit: int) -> list[Lease]:
        rows = self._execute(_SQL["lapsed"], (tenant, now, limit))
        return [lease_from_row(row) for row in rows]

    async def list(self, tenant: str, kind: LeaseKind, place: str, now: str) -> list[Lease]:
        rows = self._execute(_SQL["list"], (tenant, kind.value, place, now))
        return [lease_from_row(row) for row in rows]

    def _one(self, statement: str, bindings: tuple[Any, ...]) -> Lease | None:
        row = self._execute(_SQL[statement], bindings).fetchone()
        return None if row is None else lease_from_row(row)
