"""All repositories within one transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from memorywall.storage.port import Result
from memorywall.storage.postgres.entries import PostgresEntryRepository
from memorywall.storage.postgres.events import Last, PostgresEventRepository
from memorywall.storage.postgres.identities import PostgresIdentityRepository
from memorywall.storage.postgres.session import PostgresRepository, StatementSession
from memorywall.storage.postgres.write_buffer import FlushingRowAccess, Mark, WriteBuffer
from memorywall.storage.sql.transaction import SqlTransaction

_COMPUTED_INLINE = 4 * 1024
"""Bytes that a function may read on the event loop; a switch to a thread takes as long."""


class PostgresTransaction(SqlTransaction):
    """`port.Transaction`. The owner of the connection begins and ends it.

    last: the end of the tenant's log
    cautious, side_by_side: see `PostgresEntryRepository`
    """

    def __init__(
        self,
        session: StatementSession,
        last: Last = (0, None),
        *,
        cautious: bool = False,
        side_by_side: bool = False,
    ) -> None:
        self.session = session
        self.buffer = WriteBuffer(session)
        derived = FlushingRowAccess(session, self.buffer)
        super().__init__(
            partial(PostgresRepository, session),
            PostgresRepository(session, remembers=False),
            derived,
        )
        self.entries = PostgresEntryRepository(
            session, self.buffer, derived, cautious=cautious, side_by_side=side_by_side
        )
        self.events = PostgresEventRepository(session, self.buffer, last)
        self.identities = PostgresIdentityRepository(session)
        self._last = last
        self._mark: Mark = self.buffer.mark()
        self._statements = 0

    async def compute(self, size: int, function: Callable[[], Result]) -> Result:
        """Computes in a thread if it may take long, because every transaction runs on the event
        loop."""
        return function() if size <= _COMPUTED_INLINE else await asyncio.to_thread(function)

    def begin_script(self) -> None:
        """Marks the position to which `undo_script` rolls back."""
        self._mark, self._last = self.buffer.mark(), self.events.last
        self._statements = self.session.statements

    @property
    def has_noted(self) -> bool:
        """Returns whether the last function has buffered writes that are not flushed."""
        return self.buffer.mark() != self._mark

    def undo_script(self) -> bool:
        """Discards the changes of the last function, which is possible only while all of them are
        buffered. Returns False if it is not."""
        if self.session.statements != self._statements:
            return False
        self.buffer.undo(self._mark)
        self.events.last = self._last
        self.entries.forget()
        return True
