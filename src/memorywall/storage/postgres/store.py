"""The store on a database server: many processes share it, each with a connection pool."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from typing import Any

from memorywall.records.errors import ConfigurationError, UnavailableError
from memorywall.storage.description import StoreDescription
from memorywall.storage.port import Result, Transaction, TransactionFunction
from memorywall.storage.postgres.connection import (
    ConnectionPool,
    make_pool,
    translate_error,
)
from memorywall.storage.postgres.group_commit import GroupCommitter
from memorywall.storage.postgres.migrate import migrate
from memorywall.storage.postgres.notifier import PostgresNotifier, PostgresWatch
from memorywall.storage.postgres.row_security import check_row_security
from memorywall.storage.postgres.snapshot_readers import SnapshotReaders
from memorywall.storage.postgres.transaction_queue import Deadlines, QueuedTransaction
from memorywall.storage.statements import load
from memorywall.storage.transfer import UNFINISHED_RESTORE

_SQL = {**load("postgres", "heads"), "unfinished": load("postgres", "transfer")["unfinished"]}
_MOST_WAITING = 4_096
_READERS_PER_TENANT = 3
_GENERATION_READ_EVERY = 0.1
"""The seconds for which cached keys are trusted. A revocation is acknowledged only afterwards, so
no server accepts a key whose revocation has been acknowledged."""


class PostgresStore:
    """`port.Store` over one database."""

    def __init__(self, connections: ConnectionPool, size: int, deadline: float) -> None:
        self._connections = connections
        self._deadline = deadline
        self._most_readers = max(1, min(_READERS_PER_TENANT, size - 1))
        self._deadlines = Deadlines()
        self._readers: dict[str | None, SnapshotReaders] = {}
        self._writers: dict[str, GroupCommitter] = {}
        self._writer = secrets.token_hex(8)
        self._notifier = PostgresNotifier(self._progress)
        self._waiting = 0
        self._generation = -1
        self._generation_read_at = float("-inf")
        self._reading_generation: asyncio.Task[None] | None = None
        self._closing = False

    @classmethod
    async def open(
        cls, url: str, *, connections: int = 10, deadline: float = 10.0, unfinished: bool = False
    ) -> PostgresStore:
        """Connects to a database, and creates and migrates the schema if necessary.

        connections: the most open connections
        deadline: seconds after which a function without an outcome ends with UnavailableError
        unfinished: whether this is the restore that has not finished the store; default: false

        Raises ConfigurationError if the database cannot be used.
        """
        await migrate(url)
        pool = await make_pool(url, connections)
        try:
            await check_row_security(pool)
        except BaseException:
            await pool.close()
            raise
        store = cls(pool, connections, deadline)
        if not unfinished and await store._is_unfinished():
            await store.close()
            raise ConfigurationError(UNFINISHED_RESTORE)
        return store

    async def compute(self, work: Callable[[], Result]) -> Result:
        return await asyncio.to_thread(work)

    async def read(
        self, tenant: str | None, script: TransactionFunction[Result], *, long: bool = False
    ) -> Result:
        """Runs every function on the event loop, which serves others while the database reads."""
        readers = self._readers.get(tenant)
        if readers is None:
            readers = self._readers[tenant] = SnapshotReaders(
                self._connections, tenant, self._most_readers
            )
        job = self._take(script)
        readers.submit(job)
        result: Result = await self._outcome(job)
        return result

    async def write(
        self, tenant: str, script: TransactionFunction[Result], *, long: bool = False
    ) -> Result:
        writers = self._writers.get(tenant)
        if writers is None:
            writers = self._writers[tenant] = GroupCommitter(
                self._connections, tenant, self._writer, self._notifier.notify
            )
        job = self._take(script, long=long)
        writers.submit(job)
        result: Result = await self._outcome(job)
        if job.keys_changed:
            self._generation_read_at = float("-inf")
        if job.keys_revoked:
            await asyncio.sleep(_GENERATION_READ_EVERY)
        return result

    async def check_room(self) -> None:
        try:
            async with (
                asyncio.timeout(self._deadline),
                self._connections.use() as connection,
                connection.transaction(readonly=True),
            ):
                await connection.execute("SET LOCAL work_mem = '64kB'")
                await connection.fetch(_SQL["check_room"])
        except Exception as error:
            raise translate_error(error) from error

    async def generation(self) -> int:
        now = time.monotonic()
        # A check that another request has started may have started too early for this one.
        while now - self._generation_read_at > _GENERATION_READ_EVERY:
            if self._reading_generation is None:
                self._reading_generation = asyncio.ensure_future(self._read_generation())
            await asyncio.shield(self._reading_generation)
        return self._generation

    async def describe(self) -> StoreDescription:
        ((version, schema),) = await self._registry("describe")
        return StoreDescription(engine="PostgreSQL", version=version, schema=schema)

    def watch(self, tenant: str) -> PostgresWatch:
        return self._notifier.watch(tenant)

    def count_removals(self) -> int:
        """Returns 0: nothing needs to wait for removals."""
        return 0

    def is_erasure_complete(self, removals: int | None = None) -> bool:
        """Returns True: deleted data is invisible at once. Its bytes leave with the database's own
        vacuum and log, which a server cannot wait for."""
        return True

    async def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        await self._notifier.close()
        for writers in self._writers.values():
            await writers.close()
        for readers in self._readers.values():
            await readers.close()
        self._deadlines.close()
        await self._connections.close()

    def _take(self, script: TransactionFunction[Any], *, long: bool = False) -> QueuedTransaction:
        if self._closing:
            raise UnavailableError("the server is shutting down")
        if self._waiting >= _MOST_WAITING:
            raise UnavailableError("too many requests wait for the database; try again shortly")
        job = QueuedTransaction(
            script, asyncio.get_running_loop().time() + self._deadline, long=long
        )
        self._deadlines.watch(job)
        return job

    async def _outcome(self, job: QueuedTransaction) -> Any:
        self._waiting += 1
        try:
            # A running write completes even if its caller is cancelled.
            return await asyncio.shield(job.future)
        finally:
            self._waiting -= 1

    async def _read_generation(self) -> None:
        # Not the event loop's time, which stops while the loop is blocked.
        read_at = time.monotonic()
        try:
            rows = await self._registry("generation")
            self._generation, self._generation_read_at = rows[0][0], read_at
        finally:
            self._reading_generation = None

    async def _progress(self, tenants: list[str]) -> dict[str, int]:
        return {row[0]: row[1] for row in await self._registry("progress", tenants)}

    async def _is_unfinished(self) -> bool:
        """Returns whether a restore into the database is not finished."""
        return bool(await self._registry("unfinished"))

    async def _registry(self, statement: str, *bindings: Any) -> list[Any]:
        async def script(transaction: Transaction) -> list[Any]:
            return await transaction.session.rows(_SQL[statement], *bindings)  # type: ignore[attr-defined, no-any-return]

        return await self.read(None, script)
