"""What a storage backend owes the rest of memorywall. Read this page first.

The contract is split by noun; `Transaction` puts the nouns together, `Store` runs transactions.
The nouns of work (leases, intents, tasks, coordinators, attachments) stand in `storage/work.py`,
what recall needs in `storage/recall.py`, edges and earlier versions in `storage/links.py`, how the
log is written in `storage/event_log.py`, background jobs in `storage/scheduled_jobs.py`.
`testing` holds one file of cases per noun and every backend passes all of it.

What holds for every method:
- A transaction is bound to one tenant: its methods see and change that tenant's rows, no others.
  Only what `IdentityRepository` and `DataKeyRepository.any` say of all tenants may be asked of
  the registry, which is bound to none.
- `now` is an instant in text form. Where a method takes it, an entry whose `expires_at` is at or
  before `now` does not exist for it, whether or not it has been swept.
- Names compare by code point: no case folding, no normalisation, no collation.
- Methods are `async def` so that one transaction script serves every backend. A backend may
  finish them without ever suspending, and an embedded one does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Mapping
from typing import Any, Final, Protocol, TypeVar

from memorywall.records.decision import VisibilityFilter
from memorywall.records.entry import Entry
from memorywall.records.event import EntryChange, Event
from memorywall.records.filter import EntryFilter
from memorywall.records.idempotency import IdempotencyRecord
from memorywall.records.namespace import Namespace
from memorywall.records.principal import ApiKey, PrincipalKind
from memorywall.records.tier import Eviction, Tier
from memorywall.records.usage import AgentLimits, Usage
from memorywall.storage.data_keys import DataKeyRepository
from memorywall.storage.event_log import DigestKeys, EventLog
from memorywall.storage.links import Edges, History
from memorywall.storage.recall import RecallRepository
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


class EntryRepository(Protocol):
    """Entries, their tags and every index over them, which change together or not at all."""

    async def get(self, entry_id: str, now: str) -> Entry | None:
        """The entry with this id, or None."""
        ...

    async def find(
        self, tier: Tier, owner: str, namespace: str, key: str, session_id: str | None = None
    ) -> Entry | None:
        """The entry that holds this unique name, expired or not, or None.

        session_id: the session it is bound to; None for an entry that is bound to no session
        """
        ...

    async def search(
        self, wanted: EntryFilter, visibility: VisibilityFilter, now: str
    ) -> tuple[list[Entry], int]:
        """One page of the entries that match `wanted` within `reach`, newest first by id, and how
        many match in all whatever the page; only how many are on it when `wanted` is not
        `counted`."""
        ...

    async def search_rendered(
        self, wanted: EntryFilter, visibility: VisibilityFilter, now: str
    ) -> RenderedPage:
        """The same page. An entry may come as the JSON text of its `wire.entries.EntryResponse`, at
        the version of its kind that is stored; a sealed entry never does."""
        ...

    async def insert(self, entry: Entry, now: str) -> bool:
        """Adds the entry. False, and nothing changed, when its unique name is taken, be it by an
        expired entry. It counts as accessed at `now`."""
        ...

    async def replace(self, old: Entry, new: Entry, *, keep_old: bool = False) -> None:
        """Puts `new` in the place of `old`, which was read in this transaction. It counts as
        accessed at the `updated_at` of `new`. Raises LookupError when `old` is not there.

        keep_old: keep `old` as an earlier version, see `links.History`
        """
        ...

    async def remove(self, entry: Entry) -> None:
        """Removes the entry from everywhere: table, tags, usage, edges, earlier versions, every
        index, and blanks the stored replies that show it. Its bytes leave the files soon after: see
        `Store.is_erasure_complete`. Raises LookupError when it is not there."""
        ...

    async def expired(self, now: str, limit: int) -> list[Entry]:
        """Up to `limit` entries whose `expires_at` is at or before `now`, oldest expiry first."""
        ...

    async def least_recently_used(self, tier: Tier, owner: str) -> Entry | None:
        """The unpinned entry to evict first, expired or not: lowest priority, then longest since
        its last access, then smallest id. None when all are pinned. Raises LookupError for a tier
        that evicts nothing."""
        ...

    async def first_to_evict(
        self, tier: Tier, owner: str, policy: Eviction, limit: int, namespace: str | None = None
    ) -> list[Entry]:
        """Up to `limit` unpinned and listed entries of `owner` in `tier` in the order in which they
        are evicted, expired or not: lowest priority first, then as `policy` says, then smallest id.

        namespace: only entries of this namespace; needed where `owner` is ""
        """
        ...

    async def touch(self, accesses: Mapping[str, str]) -> None:
        """Notes last accesses, entry id to instant. An id that is gone is passed over, and an
        instant earlier than the one noted changes nothing."""
        ...

    async def usage(self, tier: Tier, owner: str, now: str) -> Usage:
        """What `owner` has in `tier`."""
        ...

    async def task_usage(self, tier: Tier, task_id: str, now: str) -> Usage:
        """The entries of `tier`, whoever owns them, that are bound to the task. `pinned` is 0."""
        ...

    async def of_task(self, tier: Tier | None, task_id: str) -> list[Entry]:
        """Those entries, of every tier where `tier` is None, expired ones too, oldest first by
        id."""
        ...

    async def namespace_usage(self, tier: Tier, namespace: str, now: str) -> Usage:
        """What a namespace behind whose wall `tier` lies holds of it. `pinned` is 0."""
        ...

    async def of_owner(self, tier: Tier, owner: str, limit: int, after: str = "") -> list[Entry]:
        """Up to `limit` entries `owner` has in `tier`, expired ones too, oldest first by id, from
        the first whose id is greater than `after`."""
        ...

    async def walk(self, after: str, limit: int) -> list[Entry]:
        """Up to `limit` entries whose id is greater than `after`, expired ones too, by id."""
        ...

    async def get_many(self, entry_ids: Collection[str], now: str) -> list[Entry]:
        """Those of these entries that are there, in no order."""
        ...

    async def tasks(self, tier: Tier, owner: str, now: str) -> list[str]:
        """The tasks `owner` has entries for in `tier`, sorted."""
        ...

    async def span(self, tier: Tier, owner: str, now: str) -> tuple[str | None, str | None]:
        """`created_at` of the oldest and of the newest entry of `owner` in `tier`."""
        ...


class EventRepository(EventLog, Protocol):
    """Each tenant's append-only log, as it is read."""

    async def list_of_intent(
        self,
        intent_id: str,
        after: int,
        limit: int,
        *,
        kind: str | None = None,
        since: str | None = None,
    ) -> list[Event]:
        """Events of an intent's log with `seq` greater than `after`, in order; only those of a
        type, or from an instant on, where these are given."""
        ...

    async def latest(self) -> Event | None:
        """The end of the tenant's log."""
        ...

    async def list_of_entries(self, after: int, limit: int) -> list[EntryChange]:
        """What happened to entries, with `seq` greater than `after`, in order."""
        ...

    async def list(self, stream: str, after: int, limit: int) -> list[Event]:
        """Events of a stream with `seq` greater than `after`, in order."""
        ...


class NamespaceRepository(Protocol):
    """Namespaces of shared memory and their permissions."""

    async def get(self, name: str) -> Namespace | None:
        """The namespace with all its grants, or None."""
        ...

    async def list_for(self, agent: str) -> list[Namespace]:
        """Every namespace of the tenant by name, each with at most the grant of `agent`."""
        ...

    async def save(self, namespace: Namespace) -> None:
        """Puts the namespace and its grants in the place of what was there."""
        ...

    async def remove(self, name: str) -> bool:
        """Removes the namespace and its grants. False when there is none."""
        ...


class IdentityRepository(Protocol):
    """Tenants, principals and their keys, and what is set for one agent."""

    async def add_tenant(self, name: str, now: str) -> bool:
        """False when the tenant exists."""
        ...

    async def tenants(self) -> list[str]:
        """All tenants' names, sorted."""
        ...

    async def ensure_principal(
        self, principal: str, kind: PrincipalKind, now: str
    ) -> PrincipalKind:
        """Adds the principal unless it is known; returns the kind it is known as."""
        ...

    async def add_key(self, key: ApiKey) -> None:
        """Adds a key under its prefix, which is new."""
        ...

    async def find_key(self, prefix: str) -> ApiKey | None:
        """The key with this prefix, revoked or not, or None."""
        ...

    async def keys(self, tenant: str | None) -> list[ApiKey]:
        """Keys of a tenant, or of all, in the order they were made."""
        ...

    async def revoke_key(self, prefix: str, now: str) -> bool:
        """False when there is no such key; a key that is revoked stays so since the first time."""
        ...

    async def limits(self, agent: str) -> AgentLimits:
        """What is set for one agent; nothing is set for an agent that is not known."""
        ...

    async def set_limits(self, agent: str, limits: AgentLimits) -> None:
        """Puts these limits in the place of those set before."""
        ...


class IdempotencyRepository(Protocol):
    """First replies to Idempotency-Keys."""

    async def get(self, principal: str, key: str) -> IdempotencyRecord | None:
        """What is kept under the key, or None. `entry_ids` are those that are still there."""
        ...

    async def put(self, kept: IdempotencyRecord) -> None:
        """Keeps a reply under a key that is new."""
        ...

    async def prune(self, created_before: str) -> int:
        """Forgets replies kept before an instant; returns how many."""
        ...

    async def remove(self, principal: str, limit: int) -> int:
        """Removes up to `limit` of the principal's replies; returns how many."""
        ...


class Transaction(Protocol):
    """All the nouns, inside one transaction that is seen whole or not at all."""

    digest_keys: DigestKeys | None
    """Bound by what opens the transaction to write; None where nothing may be logged."""

    @property
    def tenant(self) -> str:
        """The tenant it is bound to. Raises LookupError in a transaction over the registry."""
        ...

    def records(self, spec: RecordSpec[Record]) -> RecordRepository[Record]:
        """The repository of a declared record."""
        ...

    @property
    def entries(self) -> EntryRepository: ...
    @property
    def events(self) -> EventRepository: ...
    @property
    def namespaces(self) -> NamespaceRepository: ...
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


REGISTRY: Final = None
"""Stands for a tenant where a script reads which tenants and keys there are: what must be known
before the tenant is. Of the memory of any tenant such a script sees nothing."""

TransactionFunction = Callable[[Transaction], Coroutine[Any, Any, Result]]
"""Transaction logic, written once. It awaits nothing but the transaction's own methods, and may
run more than once or be undone by the failure of the commit, so it changes nothing else."""


class Watch(Protocol):
    """Tells a follower when to look at the log again."""

    async def changed(self, timeout: float) -> None:
        """Returns after something was committed since the last call, or after `timeout` seconds.
        It may return for nothing; it never misses a commit."""
        ...

    def close(self) -> None:
        """Ends the watch."""
        ...


class Store(Protocol):
    """Runs scripts."""

    async def read(self, tenant: str | None, script: TransactionFunction[Result]) -> Result:
        """Runs a script that only reads, on one snapshot of what is committed.

        tenant: whose rows it reads; `REGISTRY` for the tenants, API keys and data keys of all
        """
        ...

    async def write(
        self, tenant: str, script: TransactionFunction[Result], *, long: bool = False
    ) -> Result:
        """Runs a script in a transaction of its own and returns after it is durably committed.

        tenant: whose rows it reads and changes; no transaction is about two
        long: it may take more than a few milliseconds, and is kept out of the way of others

        An exception of the script undoes all it did and nothing of any other script.
        Raises StorageFullError when there is no room; UnavailableError when too many wait.
        """
        ...

    async def generation(self) -> int:
        """A number that changes whenever keys may have changed, by this process or another."""
        ...

    def watch(self, tenant: str) -> Watch:
        """Starts a watch over the commits of a tenant."""
        ...

    def is_erasure_complete(self) -> bool:
        """Whether the bytes of everything removed have left the files."""
        ...

    async def close(self) -> None:
        """Finishes what is under way and lets the files go."""
        ...
