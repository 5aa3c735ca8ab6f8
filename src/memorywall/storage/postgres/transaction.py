"""All repositories within one transaction."""

from __future__ import annotations

import asyncio
from typing import Any

from memorywall.storage.event_log import DigestKeys
from memorywall.storage.postgres.entries import PostgresEntryRepository
from memorywall.storage.postgres.events import Last, PostgresEventRepository
from memorywall.storage.postgres.identities import PostgresIdentityRepository
from memorywall.storage.postgres.session import PostgresRepository, StatementSession
from memorywall.storage.postgres.write_buffer import FlushingRowAccess, Mark, WriteBuffer
from memorywall.storage.sql.idempotency import SqlDataKeyRepository, SqlIdempotencyRepository
from memorywall.storage.sql.leases import SqlLeaseRepository
from memorywall.storage.sql.links import SqlEdges, SqlHistory
from memorywall.storage.sql.recall import SqlRecallRepository
from memorywall.storage.sql.record_spec import Record, RecordSpec
from memorywall.storage.sql.record_table import (
    ATTACHMENTS,
    COORDINATORS,
    GROUP_MEMBERS,
    GROUPS,
    INTENTS,
    NAMESPACES,
    TASKS,
)
from memorywall.storage.sql.registry import SqlGroupRepository, SqlNamespaceRepository
from memorywall.storage.sql.repository import RecordRepository, SqlRecordRepository
from memorywall.storage.sql.scheduled_jobs import SqlScheduledJobs
from memorywall.storage.sql.work import (
    SqlAttachmentRepository,
    SqlCoordinatorRepository,
    SqlIntentRepository,
    SqlTaskRepository,
)


class PostgresTransaction:
    """`port.Transaction`. The owner of the connection begins and ends it.

    last: the end of the tenant's log
    cautious, side_by_side: see `PostgresEntryRepository`
    """

    digest_keys: DigestKeys | None = None

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
        self.entries = PostgresEntryRepository(
            session, self.buffer, cautious=cautious, side_by_side=side_by_side
        )
        self.events = PostgresEventRepository(session, self.buffer, last)
        # Grants are found through the members of groups, so a change of one is seen by the others.
        granting = PostgresRepository(session)
        self.namespaces = SqlNamespaceRepository(granting)
        self.groups = SqlGroupRepository(granting)
        self.identities = PostgresIdentityRepository(session)
        self.replies = SqlIdempotencyRepository(PostgresRepository(session, remembers=False))
        self.data_keys = SqlDataKeyRepository(PostgresRepository(session))
        self.leases = SqlLeaseRepository(PostgresRepository(session))
        self.intents = SqlIntentRepository(granting)
        self.tasks = SqlTaskRepository(PostgresRepository(session))
        self.coordinators = SqlCoordinatorRepository(PostgresRepository(session))
        self.attachments = SqlAttachmentRepository(PostgresRepository(session, remembers=False))
        derived = FlushingRowAccess(session, self.buffer)
        self.recall = SqlRecallRepository(derived)
        self.edges = SqlEdges(derived)
        self.history = SqlHistory(derived)
        self.jobs = SqlScheduledJobs(PostgresRepository(session))
        self._records: dict[str, SqlRecordRepository[Any]] = {
            INTENTS.table: self.intents,
            TASKS.table: self.tasks,
            COORDINATORS.table: self.coordinators,
            ATTACHMENTS.table: self.attachments,
            NAMESPACES.table: self.namespaces,
            GROUPS.table: self.groups,
            GROUP_MEMBERS.table: self.groups.member_records,
        }
        self._last = last
        self._mark: Mark = self.buffer.mark()
        self._statements = 0

    @property
    def tenant(self) -> str:
        return self.session.bound_tenant

    async def give_way(self) -> None:
        await asyncio.sleep(0)

    def records(self, spec: RecordSpec[Record]) -> RecordRepository[Record]:
        found = self._records.get(spec.table)
        if found is None:
            found = self._records[spec.table] = SqlRecordRepository(
                spec, PostgresRepository(self.session)
            )
        return found

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
