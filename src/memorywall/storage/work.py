"""What a backend owes for work: leases, intents, tasks, coordinators, attachments.

The second half of `storage/port.py`, whose general rules hold here too. A record is saved whole; a
record that is replaced was read in the same transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Protocol

from memorywall.records.attachment import Attachment
from memorywall.records.coordinator import Coordinator
from memorywall.records.intent import Intent, IntentGrant, IntentStatus
from memorywall.records.lease import Lease, LeaseKind
from memorywall.records.task import Task, TaskStatus


class Leases(Protocol):
    """Leases and the counter of their fencing tokens.

    There is at most one lease for each (tenant, kind, place, name). One whose time is over stays
    until it is taken anew or ended; it holds nothing.
    """

    async def take(self, lease: Lease, now: str) -> Lease | None:
        """Takes a lease that nobody holds at `now`, and returns it with its token: the next of the
        tenant's counter, which never goes back, also when leases are ended. None, and nothing
        changed, when somebody holds it."""
        ...

    async def current(self, tenant: str, kind: LeaseKind, place: str, name: str) -> Lease | None:
        """The lease over this, live or over, or None."""
        ...

    async def get(self, tenant: str, lease_id: str) -> Lease | None:
        """The lease with this id, live or over, or None."""
        ...

    async def held(self, tenant: str, token: int, holder: str, now: str) -> Lease | None:
        """The lease with this token if `holder` holds it at `now`, else None. One statement checks
        it and sees to it that nobody can take or end the lease before this transaction ends."""
        ...

    async def extend(
        self, tenant: str, token: int, holder: str, expires_at: str, now: str
    ) -> Lease | None:
        """Lets a lease that `holder` holds at `now` last until `expires_at`, in one statement that
        notes `now` as its renewal. None, and nothing changed, when it is over or another's."""
        ...

    async def end(self, tenant: str, token: int) -> bool:
        """Ends the lease with this token, live or over. False when there is none."""
        ...

    async def held_by(self, tenant: str, kind: LeaseKind, holder: str, now: str) -> list[Lease]:
        """The live leases of a holder, by token."""
        ...

    async def count_held_by(self, tenant: str, kind: LeaseKind, holder: str, now: str) -> int:
        """How many live leases a holder has."""
        ...

    async def lapsed(self, tenant: str, now: str, limit: int) -> list[Lease]:
        """Up to `limit` leases whose time is over, by when it was over."""
        ...

    async def list(self, tenant: str, kind: LeaseKind, place: str, now: str) -> list[Lease]:
        """The live leases over a place, by token."""
        ...


class Intents(Protocol):
    """Intents and their access lists."""

    async def get(self, tenant: str, intent_id: str) -> Intent | None:
        """The intent, or None."""
        ...

    async def insert(self, intent: Intent) -> None:
        """Adds an intent under a new id."""
        ...

    async def replace(self, intent: Intent) -> None:
        """Puts the intent in the place of the one with its id. Raises LookupError."""
        ...

    async def children(self, tenant: str, intent_id: str) -> list[Intent]:
        """The intents whose parent this is, by id."""
        ...

    async def dependents(self, tenant: str, intent_id: str) -> list[Intent]:
        """The intents that depend on this one, by id."""
        ...

    async def grants(self, tenant: str, intent_id: str) -> list[IntentGrant]:
        """Its access list, in the order of ids, expired lines too."""
        ...

    async def grants_to(self, tenant: str, principal: str, now: str) -> list[IntentGrant]:
        """The unexpired lines of all access lists that name a principal, by intent and id."""
        ...

    async def add_grant(self, grant: IntentGrant) -> None:
        """Adds a line under a new id."""
        ...

    async def remove_grant(self, tenant: str, intent_id: str, grant_id: str) -> bool:
        """Takes a line away. False when there is none."""
        ...

    async def list(
        self,
        tenant: str,
        creator: str,
        ids: Collection[str],
        status: IntentStatus | None,
        limit: int,
        offset: int,
    ) -> tuple[list[Intent], int]:
        """Those that `creator` made, that are open to all, or whose id is among `ids`: one page,
        newest first by id, and how many there are in all."""
        ...


class Tasks(Protocol):
    """Tasks. One is open unless it is completed, failed, cancelled or skipped."""

    async def get(self, tenant: str, task_id: str) -> Task | None:
        """The task, or None."""
        ...

    async def insert(self, task: Task) -> None:
        """Adds a task under a new id."""
        ...

    async def replace(self, task: Task) -> None:
        """Puts the task in the place of the one with its id. Raises LookupError."""
        ...

    async def count(self, tenant: str, intent_id: str) -> int:
        """How many tasks an intent has."""
        ...

    async def assigned(
        self, tenant: str, agent: str, status: TaskStatus | None, limit: int, offset: int
    ) -> list[Task]:
        """The tasks an agent is assigned to at present, oldest first by id."""
        ...

    async def open_of(self, tenant: str, agent: str) -> list[Task]:
        """The open tasks an agent is assigned to at present, oldest first by id."""
        ...

    async def intents_of(self, tenant: str, agent: str) -> list[str]:
        """The intents of the tasks an agent is assigned to at present, open or not, sorted."""
        ...

    async def works_in(self, tenant: str, agent: str, intent_id: str) -> bool:
        """Whether that intent is among them."""
        ...

    async def unassigned(self, tenant: str, intent_ids: Collection[str], limit: int) -> list[Task]:
        """Ready tasks of these intents that nobody is assigned to, oldest first by id."""
        ...

    async def list(
        self, tenant: str, intent_id: str, status: TaskStatus | None, limit: int, offset: int
    ) -> list[Task]:
        """The tasks of an intent, oldest first by id."""
        ...


class Coordinators(Protocol):
    """Coordinators, past and present; whether one is in authority is for its lease to say."""

    async def get(self, tenant: str, coordinator_id: str) -> Coordinator | None:
        """The coordinator, or None."""
        ...

    async def insert(self, coordinator: Coordinator) -> None:
        """Adds a coordinator under a new id."""
        ...

    async def replace(self, coordinator: Coordinator) -> None:
        """Puts it in the place of the one with its id. Raises LookupError."""
        ...

    async def list(self, tenant: str, intent_id: str) -> list[Coordinator]:
        """All coordinators an intent has had, oldest first by id."""
        ...


class Attachments(Protocol):
    """Attachments and their content, which is kept in pieces."""

    async def get(self, tenant: str, attachment_id: str) -> Attachment | None:
        """The attachment, or None."""
        ...

    async def insert(self, attachment: Attachment) -> None:
        """Adds an attachment, without content, under a new id."""
        ...

    async def replace(self, attachment: Attachment) -> None:
        """Puts it in the place of the one with its id. Raises LookupError."""
        ...

    async def list(self, tenant: str, intent_id: str) -> list[Attachment]:
        """The attachments of an intent, oldest first by id."""
        ...

    async def remove(self, tenant: str, attachment_id: str) -> bool:
        """Removes it with its content. False when there is none. Its bytes leave the files as an
        entry's do: see `Store.erased`."""
        ...

    async def put_piece(self, tenant: str, attachment_id: str, place: int, content: bytes) -> None:
        """Adds a piece of content; the first has place 0."""
        ...

    async def pieces(self, tenant: str, attachment_id: str) -> Iterator[bytes]:
        """The content, piece by piece in order; to be used up within the transaction."""
        ...
