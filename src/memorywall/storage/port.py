"""The contract of a storage backend. Read this file first.

The contract has one interface per record. `Transaction` combines the interfaces, and `Store` runs
transactions. `storage/work.py` has the records of work (leases, intents, tasks, coordinators,
attachments), `storage/recall_repository.py` the data of recall, `storage/links.py` edges and
earlier versions, `storage/namespaces.py` namespaces and groups, `storage/event_log.py` the log,
`storage/identities.py` tenants and API keys, `storage/scheduled_jobs.py` background jobs,
`storage/idempotency.py` stored responses.
`packages/testing` has one file of cases per interface, and every backend must pass all of them.

Obligations of every method:

- A transaction is bound to one tenant: its methods read and change only that tenant's rows. A
  transaction of the registry is bound to no tenant and may only use `IdentityRepository` and
  `DataKeyRepository.any` and `wrappers`.
- `now` is an instant in text form. For a method with `now`, an entry whose `expires_at` is at or
  before `now` does not exist, whether or not it has been swept.
- Names compare by code point: no case folding, no normalisation, no collation. Only the names of
  an `EntryFilter` match in all their forms, see `records.identifiers.name_forms`.
- Methods are `async def`, so that one transaction function serves every backend. A backend may
  complete them without suspending, and an embedded backend does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

from memorywall.records.decision import VisibilityFilter
from memorywall.records.entry import Entry
from memorywall.records.event import EntryChange, Event
from memorywall.records.filter import EntryFilter
from memorywall.records.tier import Eviction, Tier
from memorywall.records.usage import Usage
from memorywall.storage.data_keys import DataKeyRepository
from memorywall.storage.description import StoreDescription
from memorywall.storage.event_log import DigestKeys, EventLog, Watch
from memorywall.storage.idempotency import IdempotencyRepository
from memorywall.storage.identities import IdentityRepository
from memorywall.storage.links import Edges, History
from memorywall.storage.namespaces import GroupRepository, NamespaceRepository
from memorywall.storage.recall_repository import RecallRepository
from memorywall.storage.rendered_page import RenderedPage
from memorywall.storage.scheduled_jobs import ScheduledJobs
from memorywall.storage.sql.record_spec import Record, RecordSpec
from memorywall.storage.sql.repository import RecordRepository
from memorywall.storage.work import (
    AttachmentRepository,
    CoordinatorRepository,
    IntentRepository,
    LeaseRepository,
    TaskRepository,
)

Result = TypeVar("Result")

LAST_KEY: Final = "\U0010ffff"
"""Is after every key; no key contains this character, because it is not printable."""


class EntryRepository(Protocol):
    """Entries, their tags and every index over them, which change together or not at all."""

    async def get(self, entry_id: str, now: str) -> Entry | None:
        """Returns the entry with this id, or None."""
        ...

    async def find(
        self, tier: Tier, owner: str, namespace: str, key: str, session_id: str | None = None
    ) -> Entry | None:
        """Returns the entry with this unique name, expired or not, or None; without `session_id`
        an entry without a session."""
        ...

    async def find_in(
        self, tiers: Sequence[Tier], owner: str, namespace: str, key: str
    ) -> list[Entry]:
        """Returns the entries of this name in these tiers that belong to `owner` or are shared and
        have no session, expired or not, in any order."""
        ...

    async def search(
        self, wanted: EntryFilter, visibility: VisibilityFilter, now: str
    ) -> tuple[list[Entry], int]:
        """Returns one page of the visible matching entries in the wanted order, and the number of
        all, or of the page if not `counted`. `where` is computed for visible entries only."""
        ...

    async def search_each(
        self, searches: Sequence[tuple[EntryFilter, VisibilityFilter]], now: str
    ) -> list[list[Entry]]:
        """Returns the page of each search, as `search` returns it."""
        ...

    async def count(
        self, wanted: EntryFilter, within: VisibilityFilter, now: str, at_most: int | None
    ) -> Usage:
        """Returns the number and the bytes of all matches, or of any `at_most` of them."""
        ...

    async def namespaces(
        self, wanted: EntryFilter, within: VisibilityFilter, now: str, after: str, limit: int
    ) -> list[tuple[str, int]]:
        """Returns up to `limit` stored namespaces of all matches, in order, each with its number of
        matches, starting with the first one after `after`. A page of `wanted` has no effect."""
        ...

    async def search_rendered(
        self, wanted: EntryFilter, visibility: VisibilityFilter, now: str
    ) -> RenderedPage:
        """The same page. An entry may come as the JSON text of its `wire.entries.EntryResponse`, at
        the version of its kind that is stored; a sealed entry never does."""
        ...

    async def insert(self, entry: Entry, now: str) -> bool:
        """Adds the entry, with `now` as its last access. Returns False without a change if the
        unique name is taken, even by an expired entry."""
        ...

    async def replace(self, old: Entry, new: Entry, *, keep_old: bool = False) -> None:
        """Replaces `old`, which was read in this transaction, by `new`. The last access becomes the
        `updated_at` of `new`. With `keep_old`, `old` becomes an earlier version, see `links.py`.
        Raises LookupError if `old` is absent."""
        ...

    async def rename(self, old: Entry, new: Entry) -> None:
        """Gives `old`, which was read in this transaction, the namespace and the key of `new`,
        which no entry has, and changes nothing else; `replace` must follow. Raises LookupError if
        `old` is absent."""
        ...

    async def reseal(self, entry: Entry, *, earlier: bool = False) -> None:
        """Stores the value and the data key of an entry in their present form, and changes nothing
        else. Raises LookupError if the entry is not stored in this version.

        earlier: the entry is an earlier version; default: false
        """
        ...

    async def remove(self, entry: Entry) -> None:
        """Removes the entry from the table, tags, usage, edges, earlier versions and every index,
        and erases the stored responses that contain it. Its bytes leave the files soon after: see
        `Store.is_erasure_complete`. Raises LookupError if the entry is absent."""
        ...

    async def expired(self, now: str, limit: int) -> list[Entry]:
        """Returns up to `limit` entries whose `expires_at` is at or before `now`, earliest expiry
        first."""
        ...

    async def first_to_evict(
        self,
        tier: Tier,
        owner: str,
        policy: Eviction,
        now: str,
        limit: int,
        *,
        namespace: str | None = None,
        task_id: str | None = None,
        except_kinds: Sequence[str] = (),
        about: Sequence[str] | None = None,
    ) -> list[Entry]:
        """Returns up to `limit` unpinned and listed entries of `owner` in `tier` in the order of
        eviction: lowest priority first, then by `policy`, then smallest id. Expired entries are
        excluded, because their removal frees no capacity.

        In tiers that evict the least recently used entry by default, an index gives that order.

        policy: not `REFUSE`
        namespace: only entries of this namespace; required if `owner` is ""
        task_id: only entries that are bound to this task
        except_kinds: no entries of these kinds
        about: only entries that are about one of these subjects, in their stored forms
        """
        ...

    async def touch(self, accesses: Mapping[str, str]) -> None:
        """Stores last accesses by entry id. Absent ids and earlier instants have no effect."""
        ...

    async def usage(self, tier: Tier, owner: str, now: str) -> Usage:
        """Returns the usage of `owner` in `tier`."""
        ...

    async def tenant_usage(self, now: str) -> Usage:
        """Returns the usage of the whole tenant. `pinned` is 0."""
        ...

    async def task_usage(self, tier: Tier, task_id: str, now: str) -> Usage:
        """Returns the usage of `tier` by a task's entries of all owners. `pinned` is 0."""
        ...

    async def of_task(self, tier: Tier | None, task_id: str) -> list[Entry]:
        """Returns those entries, of every tier if `tier` is None, also expired ones, by id."""
        ...

    async def namespace_usage(self, tier: Tier, namespace: str, now: str) -> Usage:
        """Returns the usage of a namespace in `tier`, isolated by namespace. `pinned` is 0."""
        ...

    async def fullest_owners(self, tier: Tier, least: int, limit: int) -> list[tuple[str, int]]:
        """Returns the owners with at least `least` entries in `tier`, isolated by agent, and those
        with an own capacity, with their numbers of entries, the fullest first. Expired entries
        count until swept."""
        ...

    async def usage_by_tier(self) -> dict[Tier, Usage]:
        """Returns the usage of the tenant by tier of entries. Expired ones count until swept."""
        ...

    async def of_owner(
        self, tier: Tier, owner: str, limit: int, after: str = "", before: str = LAST_KEY
    ) -> list[Entry]:
        """Returns up to `limit` entries of `owner` in `tier`, including expired ones, oldest first
        by id, with ids greater than `after` and less than `before`."""
        ...

    async def of_session(
        self,
        session_id: str,
        kind: str,
        owner: str,
        limit: int,
        *,
        after: str = "",
        before: str = LAST_KEY,
        newest_first: bool = False,
    ) -> list[Entry]:
        """Returns up to `limit` entries of `owner` in a session, of a kind, with keys between
        `after` and `before` without both, in the order of their keys or in the reverse order.
        Includes expired ones."""
        ...

    async def newest_of_session(
        self, session_id: str, owner: str, wanted: Mapping[str, int]
    ) -> dict[str, list[Entry]]:
        """Returns the entries of `owner` in a session by kind: of each kind in `wanted` up to so
        many with the last keys, in the reverse order of their keys. Includes expired ones."""
        ...

    async def session_owners(self, session_id: str, kind: str) -> list[str]:
        """Returns the first and the last owner, in the order of names, of all entries of a kind in
        a session: one name if all have the same owner, none without entries."""
        ...

    async def count_of_session(self, session_id: str, kind: str) -> int:
        """Returns the number of all entries of a kind in a session, expired or not."""
        ...

    async def walk(self, after: str, limit: int) -> list[Entry]:
        """Returns up to `limit` entries with an id greater than `after`, expired or not, by id."""
        ...

    async def get_many(self, entry_ids: Collection[str], now: str) -> list[Entry]:
        """Returns those of these entries that exist, in any order."""
        ...

    async def tasks(self, tier: Tier, owner: str, now: str) -> list[str]:
        """Returns the tasks for which `owner` has entries in `tier`, sorted."""
        ...

    async def span(self, tier: Tier, owner: str, now: str) -> tuple[str | None, str | None]:
        """Returns `created_at` of the oldest and of the newest entry of `owner` in `tier`."""
        ...


class EventRepository(EventLog, Protocol):
    """Reads of each tenant's append-only log."""

    async def list_of_intent(
        self,
        intent_id: str,
        after: int,
        limit: int,
        *,
        kind: str | None = None,
        since: str | None = None,
    ) -> list[Event]:
        """Returns events of an intent's log with `seq` greater than `after`, in order; optionally
        only those of a type or from an instant on."""
        ...

    async def latest(self) -> Event | None:
        """Returns the `seq` of the last event of the tenant's log."""
        ...

    async def list_of_entries(self, after: int, limit: int) -> tuple[list[EntryChange], int]:
        """Returns the changes of entries with `seq` greater than `after`, in order, and the `seq`
        of the last event of the tenant's log, 0 for an empty log."""
        ...

    async def list(self, stream: str, after: int, limit: int) -> list[Event]:
        """Returns events of a stream with `seq` greater than `after`, in order."""
        ...


class Transaction(Protocol):
    """All repositories, inside one transaction that is visible completely or not at all."""

    digest_keys: DigestKeys | None
    """Set by the code that opens the transaction to write; without it no events are appended."""

    @property
    def tenant(self) -> str:
        """The bound tenant. Raises LookupError in a transaction of the registry."""
        ...

    async def give_way(self) -> None:
        """Lets other requests run, if the function has used the event loop for a few milliseconds:
        between two parts of a function that may take long. A store may run the function again from
        its begin instead, where it delays nobody."""
        ...

    def records(self, spec: RecordSpec[Record]) -> RecordRepository[Record]:
        """Returns the repository of a declared record."""
        ...

    @property
    def entries(self) -> EntryRepository: ...
    @property
    def events(self) -> EventRepository: ...
    @property
    def namespaces(self) -> NamespaceRepository: ...
    @property
    def groups(self) -> GroupRepository: ...
    @property
    def identities(self) -> IdentityRepository: ...
    @property
    def replies(self) -> IdempotencyRepository: ...
    @property
    def data_keys(self) -> DataKeyRepository: ...
    @property
    def leases(self) -> LeaseRepository: ...
    @property
    def intents(self) -> IntentRepository: ...
    @property
    def tasks(self) -> TaskRepository: ...
    @property
    def coordinators(self) -> CoordinatorRepository: ...
    @property
    def attachments(self) -> AttachmentRepository: ...
    @property
    def recall(self) -> RecallRepository: ...
    @property
    def edges(self) -> Edges: ...
    @property
    def history(self) -> History: ...
    @property
    def jobs(self) -> ScheduledJobs: ...

    async def compute(self, size: int, function: Callable[[], Result]) -> Result:
        """Computes without I/O from about `size` bytes. Delays no other if `long`, see `Store`."""
        ...


REGISTRY: Final = None
"""Replaces the tenant in a transaction function that reads tenants and keys before a tenant is
known. Such a function reads no tenant's memory."""

TransactionFunction = Callable[[Transaction], Coroutine[Any, Any, Result]]
"""Transaction logic, written once. It awaits only methods of the transaction, and may run more than
once or be rolled back by a failed commit. Therefore it must not change anything else."""


class Store(Protocol):
    """Runs transaction functions."""

    async def read(
        self, tenant: str | None, script: TransactionFunction[Result], *, long: bool = False
    ) -> Result:
        """Runs a read-only transaction function on one snapshot of the committed state.

        tenant: the bound tenant; `REGISTRY` for tenants, API keys and data keys of all tenants
        long: the function may take more than a few milliseconds and must not delay others
        """
        ...

    async def compute(self, work: Callable[[], Result]) -> Result:
        """Returns the result of work outside of a transaction that takes more than a few
        milliseconds: in a thread, unless the caller has no event loop."""
        ...

    async def write(
        self, tenant: str, script: TransactionFunction[Result], *, long: bool = False
    ) -> Result:
        """Runs a function in a transaction and returns after the durable commit.

        tenant: the bound tenant; a transaction has exactly one
        long: the function may take more than a few milliseconds and must not delay others

        An exception of the function rolls back all its changes and those of no other function.
        Raises StorageFullError if the disk is full; UnavailableError if too many functions wait.
        """
        ...

    async def check_room(self) -> None:
        """Raises StorageFullError if the disk has no room for about a MiB more. Writes as much, and
        removes it."""
        ...

    async def generation(self) -> int:
        """Returns a number that changes whenever keys may have changed, in any process."""
        ...

    async def describe(self) -> StoreDescription:
        """Returns the name and version of the database, and the number of its schema."""
        ...

    def watch(self, tenant: str) -> Watch:
        """Starts a watch over the commits of a tenant."""
        ...

    def count_removals(self) -> int:
        """Returns the number of removals of this process so far, for `is_erasure_complete`."""
        ...

    def is_erasure_complete(self, removals: int | None = None) -> bool:
        """Returns whether the bytes of all removed data have left the files.

        removals: only the data that was removed before `count_removals` returned this number, which
            later removals do not delay; default: all
        """
        ...

    async def close(self) -> None:
        """Waits for running transactions and closes the files."""
        ...
