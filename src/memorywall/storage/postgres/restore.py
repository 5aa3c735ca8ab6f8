"""A restore into PostgreSQL as the target of a copy."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import asyncpg

from memorywall.storage.postgres.transfer import PostgresCopyTarget
from memorywall.storage.statements import load
from memorywall.storage.transfer import Key, Row, Table, TableDigest

_SQL = load("postgres", "transfer")


class PostgresRestoredDatabase(PostgresCopyTarget):
    """`transfer.Target`: a database that no server opens before `complete` has changed it. It is
    marked before its first row is written.

    complete: is called when everything is copied and compared
    """

    complete: Callable[[], Awaitable[None]]

    def __init__(self, connection: asyncpg.Connection) -> None:
        super().__init__(connection)
        self._marked: set[str] = set()

    async def apply(
        self, table: Table, tenant: str, put: Sequence[Row], remove: Sequence[Key]
    ) -> None:
        if tenant not in self._marked:
            await self.execute(tenant, _SQL["mark_unfinished"])
            self._marked.add(tenant)
        await super().apply(table, tenant, put, remove)

    async def finish(self, tables: Sequence[TableDigest]) -> None:
        await self.complete()
        await super().finish(tables)
