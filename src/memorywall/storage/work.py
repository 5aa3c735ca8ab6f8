"""The contract of a backend for work: leases, intents, tasks, coordinators, attachments.

A part of `storage/port.py`, whose general obligations apply. `storage/sql/repository.py` has the
operations of every declared record.
"""

from __future__ import annotations

import builtins
from collections.abc import Collection, Iterator
from typing import Protocol

from memorywall.records.attachment import Attachment
from memorywall.records.coordinator import Coordinator
from memorywall.records.intent import Intent, IntentGrant, IntentStatus
from memorywall.records.lease import Lease, LeaseKind
from memorywall.records.task import Task, TaskStatus
from memorywall.storage.sql.repository import RecordRepository


class LeaseRepository(Protocol):
    """Leases and the counter of their fencing tokens.

    There is at most one lease for each (tenant, kind, parent, name). An expired lease stays until
    it is acquired again or ended, and gives no ownership.
    """

    async def acquire(self, lease: Lease, now: str) -> Lease | None:
        """Acquires a lease that has no holder at `now`, and returns it with its token: the next
        value of the tenant's counter, which never decreases, even if leases are ended. Returns None
        and changes nothing if the lease is held."""
        ...

    async def current(self, kind: LeaseKind, parent: str, name: str) -> Lease | None:
        """Returns the lease on this name, live or expired, or None."""
        ...

    async def get(self, lease_id: str) -> Lease | None:
        """Returns the lease with this id, live or expired, or None."""
        ...

    async def find_held(self, token: int, holder: str, now: str) -> Lease | None:
        """Returns the lease with this token if `holder` holds it at `now`, else None. One statement
        checks the lease and locks it against acquisition and ending until this transaction ends."""
        ...

    async def extend(self, token: int, holder: str, expires_at: str, now: str) -> Lease | None:
        """Extends a lease that `holder` holds at `now` to `expires_at`, in one statement that
        stores `now` as its renewal. Returns None and changes nothing if the lease has expired or
        has another holder."""
        ...

    async def end(self, token: int) -> bool:
        """Ends the lease with this token, live or expired. Returns False if it is absent."""
        ...

    async def held_by(self, kind: LeaseKind, holder: str, now: str) -> list[Lease]:
        """Returns the live leases of a holder, by token."""
        ...

    async def count_held_by(self, kind: LeaseKind, holder: str, now: str) -> int:
        """Returns the number of live leases of a holder."""
        ...

    async def expired(self, now: str, limit: int) -> list[Lease]:
        """Returns up to `limit` expired leases, earliest expiry first."""
        ...

    async def list(self, kind: LeaseKind, parent: str, now: str) -> list[Lease]:
        """Returns the live leases with a parent, by token."""
        ...


class IntentRepository(RecordRepository[Intent], Protocol):
    """Intents and their access lists."""

    async def children(self, intent_id: str) -> list[Intent]:
        """Returns the children of an intent, by id."""
        ...

    async def dependents(self, intent_id: str) -> list[Intent]:
        """Returns the intents that depend on this one, by id."""
        ...

    async def grants(self, intent_id: str) -> list[IntentGrant]:
        """Returns the access list, ordered by id, including expired entries."""
        ...

    async def grants_to(self, principal: str, now: str) -> list[IntentGrant]:
        """Returns the unexpired entries of all access lists for a principal or a group of the
        principal, by intent and id."""
        ...

    async def add_grant(self, grant: IntentGrant) -> None:
        """Adds an entry under a new id."""
        ...

    async def remove_grant(self, intent_id: str, grant_id: str) -> bool:
        """Removes an entry. Returns False if it is absent."""
        ...

    async def list(
        self,
        creator: str,
        ids: Collection[str],
        status: IntentStatus | None,
        limit: int,
        offset: int,
    ) -> tuple[list[Intent], int]:
        """Returns a page of the intents that `creator` created, that are open to all, or whose id
        is in `ids`, newest first by id, and the total number."""
        ...


class TaskRepository(RecordRepository[Task], Protocol):
    """Tasks. A task is open unless it is completed, failed, cancelled or skipped."""

    async def count(self, intent_id: str) -> int:
        """Returns the number of tasks of an intent."""
        ...

    async def assigned(
        self, agent: str, status: TaskStatus | None, limit: int, offset: int
    ) -> list[Task]:
        """Returns the tasks that are assigned to an agent now, oldest first by id."""
        ...

    async def open_of(self, agent: str) -> list[Task]:
        """Returns the open tasks that are assigned to an agent now, oldest first by id."""
        ...

    async def intents_of(self, agent: str) -> list[str]:
        """Returns the intents of the tasks that are assigned to an agent now, open or not,
        sorted."""
        ...

    async def works_in(self, agent: str, intent_id: str) -> bool:
        """Returns whether an intent is one of them."""
        ...

    async def unassigned(self, intent_ids: Collection[str], limit: int) -> list[Task]:
        """Returns ready unassigned tasks of these intents, oldest first by id."""
        ...

    async def dependents(self, intent_id: str, task_id: str) -> list[Task]:
        """Returns the pending tasks of an intent that depend on this task, oldest first by id."""
        ...

    async def completed(self, task_ids: Collection[str]) -> frozenset[str]:
        """Returns the completed ones of these tasks, by id."""
        ...

    async def list(
        self, intent_id: str, status: TaskStatus | None, limit: int, offset: int
    ) -> list[Task]:
        """Returns the tasks of an intent, oldest first by id."""
        ...


class CoordinatorRepository(RecordRepository[Coordinator], Protocol):
    """Current and former coordinators; the lease decides which one is current."""

    async def list(self, intent_id: str) -> list[Coordinator]:
        """Returns all coordinators that an intent has had, oldest first by id."""
        ...


class AttachmentRepository(RecordRepository[Attachment], Protocol):
    """Attachments and their content, which is stored in chunks and removed with them. An attachment
    is added without content."""

    async def list(self, intent_id: str) -> builtins.list[Attachment]:
        """Returns the attachments of an intent, oldest first by id."""
        ...

    async def list_of_entry(self, entry_id: str) -> builtins.list[Attachment]:
        """Returns the attachments of an entry, oldest first by id. They are removed with their
        entry."""
        ...

    async def put_chunk(self, attachment_id: str, index: int, content: bytes) -> None:
        """Adds a chunk of content; the first has index 0."""
        ...

    async def remove_chunks(self, attachment_id: str) -> None:
        """Removes the content, and not the attachment."""
        ...

    async def chunks(self, attachment_id: str) -> Iterator[bytes]:
        """Yields the chunks of the content in order; must be consumed within the transaction."""
        ...
