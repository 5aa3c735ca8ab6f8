"""The repositories of a transaction that both databases share."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from operator import attrgetter
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

_NAMED = {
    INTENTS.table: attrgetter("intents"),
    TASKS.table: attrgetter("tasks"),
    COORDINATORS.table: attrgetter("coordinators"),
    ATTACHMENTS.table: attrgetter("attachments"),
    NAMESPACES.table: attrgetter("namespaces"),
    GROUPS.table: attrgetter("groups"),
    GROUP_MEMBERS.table: attrgetter("groups.member_records"),
}
"""The repositories that have methods of their own, by table."""


class SqlTransaction:
    """The part of `port.Transaction` that both databases share.

    Each repository is made when it is first used: most transactions use two of them, and a store
    may make a transaction for each request.

    open_rows: returns a row access, which may cache reads until a change through it
    uncached: one that caches no reads
    derived: one that reads after all writes of entries
    """

    digest_keys: DigestKeys | None = None

    def __init__(
        self, open_rows: Callable[[], RowAccess], uncached: RowAccess, derived: RowAccess
    ) -> None:
        self._open_rows = open_rows
        self._uncached = uncached
        self._derived = derived
        self._records: dict[str, SqlRecordRepository[Any]] = {}

    @property
    def tenant(self) -> str:
        """The bound tenant. Raises LookupError in a transaction of the registry."""
        return self._uncached.tenant

    async def give_way(self) -> None:
        await self._uncached.give_way()

    @cached_property
    def _granting(self) -> RowAccess:
        # Grants are found through the members of groups, so a change of one is seen by the others.
        return self._open_rows()

    @cached_property
    def namespaces(self) -> SqlNamespaceRepository:
        return SqlNamespaceRepository(self._granting)

    @cached_property
    def groups(self) -> SqlGroupRepository:
        return SqlGroupRepository(self._granting)

    @cached_property
    def intents(self) -> SqlIntentRepository:
        return SqlIntentRepository(self._granting)

    @cached_property
    def data_keys(self) -> SqlDataKeyRepository:
        return SqlDataKeyRepository(self._open_rows())

    @cached_property
    def leases(self) -> SqlLeaseRepository:
        return SqlLeaseRepository(self._open_rows())

    @cached_property
    def tasks(self) -> SqlTaskRepository:
        return SqlTaskRepository(self._open_rows())

    @cached_property
    def coordinators(self) -> SqlCoordinatorRepository:
        return SqlCoordinatorRepository(self._open_rows())

    @cached_property
    def jobs(self) -> SqlScheduledJobs:
        return SqlScheduledJobs(self._open_rows())

    @cached_property
    def replies(self) -> SqlIdempotencyRepository:
        return SqlIdempotencyRepository(self._uncached)

    @cached_property
    def attachments(self) -> SqlAttachmentRepository:
        return SqlAttachmentRepository(self._uncached)

    @cached_property
    def recall(self) -> SqlRecallRepository:
        return SqlRecallRepository(self._derived)

    @cached_property
    def edges(self) -> SqlEdges:
        return SqlEdges(self._derived)

    @cached_property
    def history(self) -> SqlHistory:
        return SqlHistory(self._derived)

    def records(self, spec: RecordSpec[Record]) -> RecordRepository[Record]:
        """Returns the repository of a declared record."""
        found: SqlRecordRepository[Any] | None = self._records.get(spec.table)
        if found is None:
            named = _NAMED.get(spec.table)
            if named is None:
                found = SqlRecordRepository(spec, self._open_rows())
            else:
                found = named(self)
            self._records[spec.table] = found
        return found
