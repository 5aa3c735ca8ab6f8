"""Intents, tasks and attachments: the operations of their repositories beyond those of every
record."""

from __future__ import annotations

import builtins
from collections.abc import Collection, Iterator

from memorywall.records.attachment import Attachment
from memorywall.records.coordinator import Coordinator
from memorywall.records.intent import Intent, IntentGrant, IntentStatus
from memorywall.records.task import Task, TaskStatus
from memorywall.storage.sql.access import RowAccess
from memorywall.storage.sql.record_table import (
    ATTACHMENTS,
    COORDINATORS,
    INTENT_GRANTS,
    INTENTS,
    TASKS,
)
from memorywall.storage.sql.repository import SqlRecordRepository
from memorywall.storage.statements import load
from memorywall.storage.work_rows import encode_text


class SqlIntentRepository(SqlRecordRepository[Intent]):
    """`port.Intents` over rows."""

    def __init__(self, rows: RowAccess) -> None:
        super().__init__(INTENTS, rows)
        self._own = load(rows.dialect, "intents", shown=self._sql["columns"])
        self._grants = SqlRecordRepository(INTENT_GRANTS, rows)

    async def insert(self, record: Intent) -> None:
        await super().insert(record)
        await self._add_needs(record)

    async def replace(self, record: Intent) -> None:
        await super().replace(record)
        needed = self._rows.names(record.depends_on)
        await self._rows.change(self._own["clear_needs"], record.tenant, record.id, needed)
        await self._add_needs(record)

    async def children(self, intent_id: str) -> list[Intent]:
        return await self._list(self._own["children"], intent_id)

    async def dependents(self, intent_id: str) -> list[Intent]:
        return await self._list(self._own["dependents"], intent_id)

    async def grants(self, intent_id: str) -> list[IntentGrant]:
        return await self._grants.page(parent=("intent_id", intent_id))

    async def grants_to(self, principal: str, now: str) -> list[IntentGrant]:
        # The time is compared here, so that many functions on one snapshot share one statement.
        found = await self._grants._list(self._own["grants_to"], principal)
        return [grant for grant in found if grant.is_active(now)]

    async def add_grant(self, grant: IntentGrant) -> None:
        await self._grants.insert(grant)

    async def remove_grant(self, intent_id: str, grant_id: str) -> bool:
        return await self._grants.remove(intent_id, grant_id)

    async def list(
        self,
        creator: str,
        ids: Collection[str],
        status: IntentStatus | None,
        limit: int,
        offset: int,
    ) -> tuple[list[Intent], int]:
        wanted = (creator, self._rows.names(ids), None if status is None else status.value)
        page = await self._list(self._own["page"], *wanted, limit, offset)
        total = await self._rows.row(self._own["total"], self._rows.tenant, *wanted)
        return page, total[0] if total else 0

    async def _add_needs(self, intent: Intent) -> None:
        if intent.depends_on:
            needed = self._rows.names(intent.depends_on)
            await self._rows.change(self._own["add_needs"], intent.tenant, intent.id, needed)


class SqlTaskRepository(SqlRecordRepository[Task]):
    """`port.Tasks` over rows."""

    def __init__(self, rows: RowAccess) -> None:
        super().__init__(TASKS, rows)
        self._own = load(rows.dialect, "tasks", shown=self._sql["columns"])

    async def count(self, intent_id: str) -> int:
        row = await self._rows.row(self._own["count"], self._rows.tenant, intent_id)
        return int(row[0]) if row else 0

    async def assigned(
        self, agent: str, status: TaskStatus | None, limit: int, offset: int
    ) -> list[Task]:
        return await self._in_status("assigned", agent, status, limit, offset)

    async def open_of(self, agent: str) -> list[Task]:
        return await self._list(self._own["open_of"], agent)

    async def intents_of(self, agent: str) -> list[str]:
        rows = await self._rows.rows(self._own["intents_of"], self._rows.tenant, agent)
        return [str(row[0]) for row in rows]

    async def works_in(self, agent: str, intent_id: str) -> bool:
        bindings = (self._rows.tenant, agent, intent_id)
        return await self._rows.row(self._own["works_in"], *bindings) is not None

    async def unassigned(self, intent_ids: Collection[str], limit: int) -> list[Task]:
        return await self._list(self._own["unassigned"], self._rows.names(intent_ids), limit)

    async def dependents(self, intent_id: str, task_id: str) -> list[Task]:
        naming = await self._list(self._own["naming"], intent_id, encode_text(task_id))
        return [task for task in naming if task_id in task.depends_on]

    async def completed(self, task_ids: Collection[str]) -> frozenset[str]:
        if not task_ids:
            return frozenset()
        bindings = (self._rows.tenant, self._rows.names(task_ids))
        rows = await self._rows.rows(self._own["completed"], *bindings)
        return frozenset(str(row[0]) for row in rows)

    async def _in_status(
        self, name: str, of: str, status: TaskStatus | None, limit: int, offset: int
    ) -> list[Task]:
        """Returns a page of tasks. A separate statement with the status selects the rows by an
        index alone."""
        if status is None:
            return await self._list(self._own[name], of, limit, offset)
        return await self._list(self._own[f"{name}_in"], of, status.value, limit, offset)

    async def list(
        self, intent_id: str, status: TaskStatus | None, limit: int, offset: int
    ) -> list[Task]:
        return await self._in_status("list", intent_id, status, limit, offset)


class SqlCoordinatorRepository(SqlRecordRepository[Coordinator]):
    """`port.Coordinators` over rows."""

    def __init__(self, rows: RowAccess) -> None:
        super().__init__(COORDINATORS, rows)

    async def list(self, intent_id: str) -> list[Coordinator]:
        return await self.page(parent=("intent_id", intent_id))


class SqlAttachmentRepository(SqlRecordRepository[Attachment]):
    """`port.Attachments` over rows."""

    def __init__(self, rows: RowAccess) -> None:
        super().__init__(ATTACHMENTS, rows)
        self._own = load(rows.dialect, "attachments")

    async def list(self, intent_id: str) -> builtins.list[Attachment]:
        return await self.page(parent=("intent_id", intent_id))

    async def list_of_entry(self, entry_id: str) -> builtins.list[Attachment]:
        return await self.page(parent=("entry_id", entry_id))

    async def remove(self, *key: str) -> bool:
        if not await super().remove(*key):
            return False
        await self._rows.change(self._own["remove_chunks"], self._rows.tenant, *key)
        return True

    async def remove_chunks(self, attachment_id: str) -> None:
        await self._rows.change(self._own["remove_chunks"], self._rows.tenant, attachment_id)
        self._rows.count_removal()

    async def put_chunk(self, attachment_id: str, index: int, content: bytes) -> None:
        bindings = (self._rows.tenant, attachment_id, index, content)
        await self._rows.change(self._own["put_chunk"], *bindings)

    async def chunks(self, attachment_id: str) -> Iterator[bytes]:
        # Content may have sixteen megabytes, so it is never cached.
        bindings = (self._rows.tenant, attachment_id)
        rows = await self._rows.large_rows(self._own["chunks"], *bindings)
        return (row[0] for row in rows)
