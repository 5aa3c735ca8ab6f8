"""What a backend owes for work: leases, intents, tasks, coordinators, attachments.

The second half of `storage/port.py`, whose general rules hold here too. What can be done with every
declared record stands in `storage/sql/repository.py`.
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

    There is at most one lease for each (tenant, kind, place, name). One whose time is over stays
    until it is taken anew or ended; it holds nothing.
    """

    async def acquire(self, lease: Lease, now: str) -> Lease | None:
        """Takes a lease that nobody holds at `now`, and returns it with its token: the next of the
        tenant's counter, which never goes back, also when leases are ended. None, and nothing
        changed, when somebody holds it."""
        ...

    async def current(self, kind: LeaseKind, parent: str, name: str) -> Lease | None:
        """The lease over this, live or over, or None."""
        ...

    async def get(self, lease_id: str) -> Lease | None:
        """The lease with this id, live or over, or None."""
        ...

    async def find_held(self, token: int, holder: str, now: str) -> Lease | None:
        """The lease with this token if `holder` holds it at `now`, else None. One statement checks
        it and sees to it that nobody can take or end the lease before this transaction ends."""
        ...

    async def extend(self, token: int, holder: str, expires_at: str, now: str) -> Lease | None:
        """Lets a lease that `holder` holds at `now` last until `expires_at`, in one statement that
        notes `now` as its renewal. None, and nothing changed, when it is over or another's."""
        ...

    async def end(self, token: int) -> bool:
        """Ends the lease with this token, live or over. False when there is none."""
        ...

    async def held_by(self, kind: LeaseKind, holder: str, now: str) -> list[Lease]:
        """The live leases of a holder, by token."""
        ...

    async def count_held_by(self, kind: LeaseKind, holder: str, now: str) -> int:
        """How many live leases a holder has."""
        ...

    async def expired(self, now: str, limit: int) -> list[Lease]:
        """Up to `limit` leases whose time is over, by when it was over."""
        ...

    async def list(self, kind: LeaseKind, parent: str, now: str) -> list[Lease]:
        """The live leases over a place, by token."""
        ...


class IntentRepository(RecordRepository[Intent], Protocol):
    """Intents and their access lists."""

    async def children(self, intent_id: str) -> list[Intent]:
        """The intents whose parent this is, by id."""
        ...

    async def dependents(self, intent_id: str) -> list[Intent]:
        """The intents that depend on this one, by id."""
        ...

    async def grants(self, intent_id: str) -> list[IntentGrant]:
        """Its access list, in the order of ids, expired lines too."""
        ...

    async def grants_to(self, principal: str, now: str) -> list[IntentGrant]:
        """The unexpired lines of all access lists that name a principal, by intent and id."""
        ...

    async def add_grant(self, grant: IntentGrant) -> None:
        """Adds a line under a new id."""
        ...

    async def remove_grant(self, intent_id: str, grant_id: str) -> bool:
        """Takes a line away. False when there is none."""
        ...

    async def list(
        self,
        creator: str,
        ids: Collection[str],
        status: IntentStatus | None,
        limit: int,
        offset: int,
    ) -> tuple[list[Intent], int]:
        """Those that `creator` made, that are open to all, or whose id is among `ids`: one page,
        newest first by id, and how many there are in all."""
        ...


class TaskRepository(RecordRepository[Task], Protocol):
    """Tasks. One is open unless it is completed, failed, cancelled or skipped."""

    async def count(self, intent_id: str) -> int:
        """How many tasks an intent has."""
        ...

    async def assigned(
        self, agent: str, status: TaskStatus | None, limit: int, offset: int
    ) -> list[Task]:
        """The tasks an agent is assigned to at present, oldest first by id."""
        ...

    async def open_of(self, agent: str) -> list[Task]:
        """The open tasks an agent is assigned to at present, oldest first by id."""
        ...

    async def intents_of(self, agent: str) -> list[str]:
        """The intents of the tasks an agent is assigned to at present, open or not, sorted."""
        ...

    async def works_in(self, agent: str, intent_id: str) -> bool:
        """Whether that intent is among them."""
        ...

    async def unassigned(self, intent_ids: Collection[str], limit: int) -> list[Task]:
        """Ready tasks of these intents that nobody is assigned to, oldest first by id."""
        ...

    async def dependents(self, intent_id: str, task_id: str) -> list[Task]:
        """The pending tasks of an intent that depend on this task, oldest first by id."""
        ...

    async def completed(self, task_ids: Collection[str]) -> frozenset[str]:
        """Which of these tasks are completed, by id."""
        ...

    async def list(
        self, intent_id: str, status: TaskStatus | None, limit: int, offset: int
    ) -> list[Task]:
        """The tasks of an intent, oldest first by id."""
        ...


class CoordinatorRepository(RecordRepository[Coordinator], Protocol):
    """Coordinators, past and present; whether one is in authority is for its lease to say."""

    async def list(self, intent_id: str) -> list[Coordinator]:
        """All coordinators an intent has had, oldest first by id."""
        ...


class AttachmentRepository(RecordRepository[Attachment], Protocol):
    """Attachments and their content, which is kept in pieces and removed with them. An attachment
    is added without content."""

    async def list(self, intent_id: str) -> builtins.list[Attachment]:
        """The attachments of an intent, oldest first by id."""
        ...

    async def list_of_entry(self, entry_id: str) -> builtins.list[Attachment]:
        """The attachments of an entry, oldest first by id. They are removed with their entry."""
        ...

    async def put_chunk(self, attachment_id: str, index: int, content: bytes) -> None:
        """Adds a piece of content; the first has index 0."""
        ...

    async def chunks(self, attachment_id: str) -> Iterator[bytes]:
        """The content, piece by piece in order; to be used up within the transaction."""
        ...
