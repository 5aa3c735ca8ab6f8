"""The embedded store: one file, one writer thread, reads inline on the event loop."""

from __future__ import annotations

import asyncio
from pathlib import Path

from memorywall.records.errors import ConfigurationError, StoreLockedError
from memorywall.storage.port import Result, Script, Transaction
from memorywall.storage.sqlite.checkpointer import Checkpointer
from memorywall.storage.sqlite.connection import (
    FileLock,
    connect,
    create_file,
    data_version,
    lock,
    migrate,
    migrations,
    schema_version,
)
from memorywall.storage.sqlite.transaction import SqliteTransaction, drive, explain
from memorywall.storage.sqlite.watch import SqliteWatch, Watchers
from memorywall.storage.sqlite.writer import Writer


class SqliteStore:
    """`port.Store` over one file."""

    def __init__(
        self, database: Path, held: FileLock | None, *, erase_within: float, exclusive: bool
    ) -> None:
        self._lock = held
        self._reader = connect(database, read_only=True)
        self._snapshot = SqliteTransaction(self._reader)
        self._watchers = Watchers()
        self._writer = Writer(connect(database), self._watchers.notify)
        self._checkpointer = (
            Checkpointer(database, self._writer, erase_within) if exclusive else None
        )
        self._closed = False
        self._reading = False
        self._generation = -1

    @classmethod
    def open(
        cls, database: Path, *, exclusive: bool = True, erase_within: float = 20.0
    ) -> SqliteStore:
        """Opens a database, making and migrating it where needed.

        exclusive: be the one server of this file; raises StoreLockedError when another is. A
            store that is not exclusive may be opened beside a server, for a few administrative
            transactions; it migrates only when no server runs.
        """
        create_file(database)
        held: FileLock | None = None
        try:
            held = lock(database)
        except StoreLockedError:
            if exclusive:
                raise
        try:
            first = connect(database)
            if held is not None:
                migrate(first)
            elif schema_version(first) != migrations()[-1][0]:
                raise ConfigurationError(
                    "a server of another version has this database open; use its own commands"
                )
            first.close()
            if held is not None and not exclusive:
                held.release()
                held = None
            return cls(database, held, erase_within=erase_within, exclusive=exclusive)
        except BaseException:
            if held is not None:
                held.release()
            raise

    async def read(self, tenant: str | None, script: Script[Result]) -> Result:
        """Runs inline: a point read takes microseconds, a hop to a thread takes longer."""
        self._begin()
        try:
            return drive(script, self._snapshot)
        except Exception as error:
            explained = explain(error)
            if explained is error:
                raise
            raise explained from error

    async def write(self, tenant: str, script: Script[Result], *, long: bool = False) -> Result:
        if self._checkpointer is None:
            script = _noting_removals(tenant, script)
        return await self._writer.submit(script, long=long)

    async def generation(self) -> int:
        self._begin()
        return self._generation

    def watch(self, tenant: str) -> SqliteWatch:
        return self._watchers.watch()

    def erased(self) -> bool:
        return self._checkpointer is None or self._checkpointer.erased

    def _begin(self) -> None:
        """Opens the snapshot that all reads of this turn of the event loop share.

        It ends with the next turn. A caller whose write was acknowledged runs on a later turn than
        the commit, so it always reads what it wrote.
        """
        if not self._reading:
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
        self._end()
        self._reader.close()
        if self._checkpointer is not None:
            await asyncio.to_thread(self._checkpointer.close)
        if self._lock is not None:
            self._lock.release()


def _noting_removals(tenant: str, script: Script[Result]) -> Script[Result]:
    """The script of a process that erases nothing itself: what it removes the server is told."""

    async def noting(transaction: Transaction) -> Result:
        assert isinstance(transaction, SqliteTransaction)  # noqa: S101 - this store runs it
        before = transaction.removals
        result = await script(transaction)
        if transaction.removals != before:
            transaction.entries.note_removal(tenant)
        return result

    return noting
