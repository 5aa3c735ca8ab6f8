"""The repositories of a transaction that both databases share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memorywall.storage.event_log import DigestKeys
from memorywall.storage.sql.access import RowAccess
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


class SqlTransaction:
    """The part of `port.Transaction` that both databases share.

    open_rows: returns a row access, which may cache reads until a change through it
    uncached: one that caches no reads
    derived: one that reads after all writes of entries
    """

    digest_keys: DigestKeys | None = None

    def __init__(
        self, open_rows: Callable[[], RowAccess], uncached: RowAccess, derived: RowAccess
    ) -> None:
        self._open_rows = open_rows
        # Grants are found through the members of groups, so a change of one is seen by the others.
        granting = open_rows()
        self.namespaces = SqlNamespaceRepository(granting)
        self.groups = SqlGroupRepository(granting)
        self.intents = SqlIntentRepository(granting)
        self.data_keys = SqlDataKeyRepository(open_rows())
        self.leases = SqlLeaseRepository(open_rows())
        self.tasks = SqlTaskRepository(open_rows())
        self.coordinators = SqlCoordinatorRepository(open_rows())
        self.jobs = SqlScheduledJobs(open_rows())
        self.replies = SqlIdempotencyRepository(uncached)
        self.attachments = SqlAttachmentRepository(uncached)
        self.recall = SqlRecallRepository(derived)
        self.edges = SqlEdges(derived)
        self.history = SqlHistory(derived)
        self._records: dict[str, SqlRecordRepository[Any]] = {
            INTENTS.table: self.intents,
            TASKS.table: self.tasks,
            COORDINATORS.table: self.coordinators,
            ATTACHMENTS.table: self.attachments,
            NAMESPACES.table: self.namespaces,
            GROUPS.table: self.groups,
            GROUP_MEMBERS.table: self.groups.member_records,
        }

    def records(self, spec: RecordSpec[Record]) -> RecordRepository[Record]:
        """Returns the repository of a declared record."""
        found = self._records.get(spec.table)
        if found is None:
            found = self._records[spec.table] = SqlRecordRepository(spec, self._open_rows())
        return found
