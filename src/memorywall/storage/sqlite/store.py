"""The embedded store: one file, one writer thread, short reads inline on the event loop."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from pathlib import Path

import apsw

from memorywall.records.errors import (
    ConfigurationError,
    StorageFullError,
    StoreLockedError,
    UnavailableError,
)
from memorywall.storage.description import StoreDescription
from memorywall.storage.durable_files import check_room
from memorywall.storage.port import Result, Transaction, TransactionFunction
from memorywall.storage.sqlite.checkpointer import Checkpointer
from memorywall.storage.sqlite.connection import (
    FileLock,
    connect,
    create_file,
    data_version,
    describe,
    lock,
    migrate,
    migrations,
    schema_version,
)
from memorywall.storage.sqlite.notifier import SqliteNotifier, SqliteWatch
from memorywall.storage.sqlite.thread_reads import ReadingConnection, ThreadReads
from memorywall.storage.sqlite.transaction import (
    SqliteTransaction,
    raise_translated,
    run_to_completion,
    translate_error,
)
from memorywall.storage.sqlite.writer import Writer, WriterBusyError

_STEPS_PER_LOOK = 10_000
"""Steps of SQLite's virtual machine; a page of 100 entries has about as many."""


class SqliteStore:
    """`port.Store` over one file."""

    def __init__(
        self,
        database: Path,
        connection: apsw.Connection,
        held: FileLock | None,
        *,
        erasure_deadline: float,
        exclusive: bool,
    ) -> None:
        self._database = database
        self._lock = held
        self._reader = connect(database, read_only=True)
        self._snapshot = SqliteTransaction(self._reader)
        self._rows = self._snapshot.rows
        self._reader.set_progress_handler(self._rows.is_over, _STEPS_PER_LOOK)
        self._notifier = SqliteNotifier()
        self._writer = Writer(connection, self._notifier.notify)
        self._checkpointer = (
            Checkpointer(database, self._writer, erasure_deadline) if exclusive else None
        )
        self._thread_reads = ThreadReads(
            database, self._checkpointer.let_read if self._checkpointer else lambda: None
        )
        self._calling: CallingThreadStore | None = None
        self._closed = False
        self._reading = False
        self._generation = -1

    @classmethod
    def open(
        cls, database: Path, *, exclusive: bool = True, erasure_deadline: float = 20.0
    ) -> SqliteStore:
        """Opens a database, and creates and migrates it if necessary.

        exclusive: be the server of this file; raises StoreLockedError if another process is. A
            store that is not exclusive may be opened beside a server, for a few administrative
            transactions; it migrates only if no server runs.
        """
        create_file(database)
        held: FileLock | None = None
        try:
            held = lock(database)
        except StoreLockedError:
            if exclusive:
                raise
        try:
            connection = connect(database)
            if held is not None:
                migrate(connection)
            elif schema_version(connection) != migrations()[-1].number:
                raise ConfigurationError(
                    "a server of another version has this database open; use its own commands"
                )
            if held is not None and not exclusive:
                held.release()
                held = None
            return cls(
                database, connection, held, erasure_deadline=erasure_deadline, exclusive=exclusive
            )
        except BaseException as error:
            if held is not None:
                held.release()
            if isinstance(translate_error(error), StorageFullError):
                raise ConfigurationError(
                    f"{database} cannot be opened, because its disk is full; make room first"
                ) from error
            raise

    async def compute(self, work: Callable[[], Result]) -> Result:
        return await asyncio.to_thread(work)

    async def read(
        self, tenant: str | None, script: TransactionFunction[Result], *, long: bool = False
    ) -> Result:
        """Runs inline: a point read takes microseconds, a switch to a thread takes longer. A long
        read, and one that turns out to be long, runs in a thread."""
        if not long:
            if not self._reading:
                self._begin()
            self._rows.latest = None
            try:
                return run_to_completion(script, self._snapshot, tenant)
            except apsw.InterruptError:
                # The function has read too much for the event loop; nothing else interrupts it.
                pass
            except Exception as error:
                raise_translated(error)
            finally:
                self._rows.latest = math.inf
        return await self._thread_reads.run(tenant, script)

    async def write(
        self, tenant: str, script: TransactionFunction[Result], *, long: bool = False
    ) -> Result:
        noted = self.noted(script)
        try:
            return await self._writer.submit(tenant, noted, long=long)
        except apsw.InterruptError:
            # Nothing was stored. The writer's thread may take as long as it must.
            return await self._writer.submit(tenant, noted, long=True)

    def noted(self, script: TransactionFunction[Result]) -> TransactionFunction[Result]:
        """Wraps a function for a process that does not erase: the process tells the server about
        removals."""
        return script if self._checkpointer is not None else _noting_removals(script)

    async def check_room(self) -> None:
        await self.compute(self.write_to_disk)

    def write_to_disk(self) -> None:
        """Writes a file beside the database. Raises StorageFullError."""
        try:
            check_room(self._database.parent)
        except OSError as error:
            raise StorageFullError("the disk takes no writes; reads go on") from error

    async def generation(self) -> int:
        if not self._reading:
            self._begin()
        return self._generation

    async def describe(self) -> StoreDescription:
        return describe(self._reader)

    def watch(self, tenant: str) -> SqliteWatch:
        return self._notifier.watch(tenant)

    def count_removals(self) -> int:
        return self._writer.removals

    def is_erasure_complete(self, removals: int | None = None) -> bool:
        if self._checkpointer is None:
            return True
        if removals is None:
            return self._checkpointer.is_erasure_complete
        return self._checkpointer.has_erased(removals)

    def for_calling_threads(self) -> CallingThreadStore:
        """Returns the same store for threads without an event loop, while this one's is running. It
        is closed with this store."""
        if self._calling is None:
            reader = ReadingConnection(self._database)
            self._calling = CallingThreadStore(
                self, self._writer, reader, asyncio.get_running_loop()
            )
        return self._calling

    def _begin(self) -> None:
        """Opens the snapshot that all reads of this event-loop iteration share.

        The snapshot ends with the next iteration. A caller whose write was acknowledged runs in a
        later iteration than the commit, so it always reads its own writes.
        """
        self._reader.execute("BEGIN")
        self._reading = True
        asyncio.get_running_loop().call_soon(self._end)
        self._generation = data_version(self._reader)

    def _end(self) -> None:
        if self._reading:
            self._reading = False
            self._reader.execute("COMMIT")

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await self._writer.close()
        if self._calling is not None:
            await self._calling.close()
        await self._thread_reads.close()
        self._end()
        self._reader.close()
        if self._checkpointer is not None:
            await asyncio.to_thread(self._checkpointer.close)
        if self._lock is not None:
            self._lock.release()


class CallingThreadStore:
    """`port.Store` for threads without an event loop: calls complete before they return.

    Reads and writes never suspend, so a coroutine over this store runs to completion in the calling
    thread. Reads have their own connection, which one thread uses at a time. Acknowledged writes
    are committed, so a later read sees them.
    """

    def __init__(
        self,
        store: SqliteStore,
        writer: Writer,
        reader: ReadingConnection,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._store = store
        self._writer = writer
        self._reader = reader
        self._loop = loop

    async def compute(self, work: Callable[[], Result]) -> Result:
        """Does the work in the calling thread."""
        return work()

    async def read(
        self, tenant: str | None, script: TransactionFunction[Result], *, long: bool = False
    ) -> Result:
        """Runs a function on its own snapshot, in the calling thread."""
        return self._reader.read(tenant, script)

    async def write(
        self, tenant: str, script: TransactionFunction[Result], *, long: bool = False
    ) -> Result:
        """Runs a function and commits it in the calling thread. While others write, the function
        joins the writer's queue and the thread waits."""
        try:
            return self._writer.write_here(tenant, self._store.noted(script))
        except WriterBusyError:
            writing = self._store.write(tenant, script, long=long)
        try:
            future = asyncio.run_coroutine_threadsafe(writing, self._loop)
        except RuntimeError as error:
            writing.close()
            raise UnavailableError("the store is closed") from error
        return future.result()

    async def check_room(self) -> None:
        self._store.write_to_disk()

    async def generation(self) -> int:
        """Returns a number that changes with every commit, in any process."""
        return self._reader.use(data_version)

    async def describe(self) -> StoreDescription:
        return self._reader.use(describe)

    def watch(self, tenant: str) -> SqliteWatch:
        return self._store.watch(tenant)

    def count_removals(self) -> int:
        return self._store.count_removals()

    def is_erasure_complete(self, removals: int | None = None) -> bool:
        return self._store.is_erasure_complete(removals)

    async def close(self) -> None:
        """Closes the reading connection, after a running read."""
        await asyncio.to_thread(self._reader.close)


def _noting_removals(script: TransactionFunction[Result]) -> TransactionFunction[Result]:
    """Wraps the function of a process that does not erase: the process tells the server about
    removals."""

    async def noting(transaction: Transaction) -> Result:
        assert isinstance(transaction, SqliteTransaction)  # noqa: S101 - this store runs it
        before = transaction.removals
        result = await script(transaction)
        if transaction.removals != before:
            transaction.entries.note_removal()
        return result

    return noting
