"""What a storage backend owes the rest of memorywall. Read this page first.

The contract is split by noun; `Transaction` puts the nouns together, `Store` runs transactions.
The nouns of work (leases, intents, tasks, coordinators, attachments) stand in `storage/work.py`,
what recall needs in `storage/recall.py`.
`storage/conformance` holds one file of cases per noun and every backend passes all of it.

What holds for every method:
- Tenants never meet: a method sees and changes rows of the `tenant` it is given, no others.
- `now` is an instant in text form. Where a method takes it, an entry whose `expires_at` is at or
  before `now` does not exist for it, whether or not it has been swept.
- Names compare by code point: no case folding, no normalisation, no collation.
- Methods are `async def` so that one transaction script serves every backend. A backend may
  finish them without ever suspending, and an embedded one does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping
from typing import Any, Final, Protocol, TypeVar

from memorywall.records.decision import Reach
from memorywall.records.entry import Entry
from memorywall.records.event import EntryChange, Event
from memorywall.records.filter import Filter
from memorywall.records.idempotency import DataKey, KeptReply
from memorywall.records.namespace import Namespace
from memorywall.records.principal import ApiKey, PrincipalKind
from memorywall.records.tier import Tier
from memorywall.records.usage import AgentLimits, Usage
from memorywall.storage.recall import Recall
from memorywall.storage.work import Attachments, Coordinators, Intents, Leases, Tasks

Result = TypeVar("Result")


class Entries(Protocol):
    """Entries, their tags and every index over them, which change together or not at all."""

    async def get(self, tenant: str, entry_id: str, now: str) -> Entry | None:
        """The entry with this id, or None."""
        ...

    async def find(
        self, tenant: str, tier: Tier, owner: str, namespace: str, key: str
    ) -> Entry | None:
        """The entry that holds this unique name, expired or not, or None."""
        ...

    async def search(self, wanted: Filter, reach: Reach, now: str) -> tuple[list[Entry], int]:
        """One page of the entries that match `wanted` within `reach`, newest first by id, and how
        many match in all whatever the page; only how many are on it when `wanted` is not
        `counted`."""
        ...

    async def insert(self, entry: Entry, now: str) -> bool:
        """Adds the entry. False, and nothing changed, when its unique name is taken, be it by an
        expired entry. It counts as accessed at `now`."""
        ...

    async def replace(self, old: Entry, new: Entry) -> None:
        """Puts `new` in the place of `old`, which was read in this transaction. It counts as
        accessed at the `updated_at` of `new`. Raises LookupError when `old` is not there."""
        ...

    async def remove(self, entry: Entry) -> None:
        """Removes the entry from everywhere: table, tags, usage, every index, and blanks the kept
        replies that show it. Its bytes leave the files soon after: see
        `Store.erased`. Raises LookupError when it is not there."""
        ...

    async def expired(self, tenant: str, now: str, limit: int) -> list[Entry]:
        """Up to `limit` entries whose `expires_at` is at or before `now`, oldest expiry first."""
        ...

    async def least_recently_used(self, tenant: str, tier: Tier, owner: str) -> Entry | None:
        """The unpinned entry to evict first, expired or not: lowest priority, then longest since
        its last access, then smallest id. None when all are pinned. Raises LookupError for a tier
        that evicts nothing."""
        ...

    async def touch(self, tenant: str, accesses: Mapping[str, str]) -> None:
        """Notes last accesses, entry id to instant. An id that is gone is passed over, and an
        instant earlier than the one noted changes nothing."""
        ...

    async def usage(self, tenant: str, tier: Tier, owner: str, now: str) -> Usage:
        """What `owner` has in `tier`."""
        ...

    async def task_usage(self, tenant: str, tier: Tier, task_id: str, now: str) -> Usage:
        """The entries of `tier`, whoever owns them, that are bound to the task. `pinned` is 0."""
        ...

    async def of_task(self, tenant: str, tier: Tier, task_id: str) -> list[Entry]:
        """Those entries, expired ones too, oldest first by id."""
        ...

    async def namespace_usage(self, tenant: str, tier: Tier, namespace: str, now: str) -> Usage:
        """What a namespace behind whose wall `tier` lies holds of it. `pinned` is 0."""
        ...

    async def of_owner(
        self, tenant: str, tier: Tier, owner: str, limit: int, after: str = ""
    ) -> list[Entry]:
        """Up to `limit` entries `owner` has in `tier`, expired ones too, oldest first by id, from
        the first whose id is greater than `after`."""
        ...

    async def get_many(self, tenant: str, entry_ids: Collection[str], now: str) -> list[Entry]:
        """Those of these entries that are there, in no order."""
        ...

    async def tasks(self, tenant: str, tier: Tier, owner: str, now: str) -> list[str]:
        """The tasks `owner` has entries for in `tier`, sorted."""
        ...

    async def span(
        self, tenant: str, tier: Tier, owner: str, now: str
    ) -> tuple[str | None, str | None]:
        """`created_at` of the oldest and of the newest entry of `owner` in `tier`."""
        ...


class Events(Protocol):
    """Each tenant's append-only log."""

    async def append(self, event: Event) -> Event:
        """Adds the event at the end of its tenant's log and returns it with its `seq`."""
        ...

    async def list_of_intent(
        self,
        tenant: str,
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

    async def latest(self, tenant: str) -> Event | None:
        """The end of the tenant's log."""
        ...

    async def list_of_entries(self, tenant: str, after: int, limit: int) -> list[EntryChange]:
        """What happened to entries, with `seq` greater than `after`, in order."""
        ...

    async def list(self, tenant: str, stream: str, after: int, limit: int) -> list[Event]:
        """Events of a stream with `seq` greater than `after`, in order."""
        ...


class Namespaces(Protocol):
    """Namespaces of shared memory and their permissions."""

    async def get(self, tenant: str, name: str) -> Namespace | None:
        """The namespace with all its grants, or None."""
        ...

    async def list_for(self, tenant: str, agent: str) -> list[Namespace]:
        """Every namespace of the tenant by name, each with at most the grant of `agent`."""
        ...

    async def save(self, namespace: Namespace) -> None:
        """Puts the namespace and its grants in the place of what was there."""
        ...


class Identities(Protocol):
    """Tenants, principals and their keys, and what is set for one agent."""

    async def add_tenant(self, name: str, now: str) -> bool:
        """False when the tenant exists."""
        ...

    async def tenants(self) -> list[str]:
        """All tenants' names, sorted."""
        ...

    async def ensure_principal(
        self, tenant: str, principal: str, kind: PrincipalKind, now: str
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

    async def limits(self, tenant: str, agent: str) -> AgentLimits:
        """What is set for one agent; nothing is set for an agent that is not known."""
        ...

    async def set_limits(self, tenant: str, agent: str, limits: AgentLimits) -> None:
        """Puts these limits in the place of those set before."""
        ...


class KeptReplies(Protocol):
    """First replies to Idempotency-Keys."""

    async def get(self, tenant: str, principal: str, key: str) -> KeptReply | None:
        """What is kept under the key, or None. `entry_ids` are those that are still there."""
        ...

    async def put(self, kept: KeptReply) -> None:
        """Keeps a reply under a key that is new."""
        ...

    async def prune(self, tenant: str, created_before: str) -> int:
        """Forgets replies kept before an instant; returns how many."""
        ...

    async def remove(self, tenant: str, principal: str, limit: int) -> int:
        """Removes up to `limit` of the principal's replies; returns how many."""
        ...


class DataKeys(Protocol):
    """Wrapped data keys."""

    async def get(self, tenant: str, key_id: str) -> DataKey | None:
        """The data key with this id, or None."""
        ...

    async def current(self, tenant: str, subject: str = "") -> DataKey | None:
        """The newest data key of an agent, or of the tenant as a whole, or None."""
        ...

    async def add(self, data_key: DataKey) -> None:
        """Adds a data key."""
        ...

    async def remove(self, tenant: str, subject: str) -> int:
        """Destroys all data keys of a subject; returns how many. What is sealed with them can be
        opened no more."""
        ...

    async def any(self) -> DataKey | None:
        """Some data key of some tenant, to try the key-encryption key on, or None."""
        ...


class Transaction(Protocol):
    """All the nouns, inside one transaction that is seen whole or not at all."""

    @property
    def entries(self) -> Entries: ...
    @property
    def events(self) -> Events: ...
    @property
    def namespaces(self) -> Namespaces: ...
    @property
    def identities(self) -> Identities: ...
    @property
    def replies(self) -> KeptReplies: ...
    @property
    def data_keys(self) -> DataKeys: ...
    @property
    def leases(self) -> Leases: ...
    @property
    def intents(self) -> Intents: ...
    @property
    def tasks(self) -> Tasks: ...
    @property
    def coordinators(self) -> Coordinators: ...
    @property
    def attachments(self) -> Attachments: ...
    @property
    def recall(self) -> Recall: ...


REGISTRY: Final = None
"""Stands for a tenant where a script reads which tenants and keys there are: what must be known
before the tenant is. Of the memory of any tenant such a script sees nothing."""

Script = Callable[[Transaction], Coroutine[Any, Any, Result]]
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

    async def read(self, tenant: str | None, script: Script[Result]) -> Result:
        """Runs a script that only reads, on one snapshot of what is committed.

        tenant: whose rows it reads; `REGISTRY` for the tenants, API keys and data keys of all
        """
        ...

    async def write(self, tenant: str, script: Script[Result], *, long: bool = False) -> Result:
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

    def erased(self) -> bool:
        """Whether the bytes of everything removed have left the files."""
        ...

    async def close(self) -> None:
        """Finishes what is under way and lets the files go."""
        ...


class Inspection(Protocol):
    """Long sequential reads for `verify`, on one snapshot; not for the path of a request."""

    def tenants(self) -> list[str]:
        """All tenants' names."""
        ...

    def tenants_of_rows(self) -> list[str]:
        """The names that entries and events give as their tenant."""
        ...

    def entries(self, tenant: str) -> Iterator[Entry]:
        """Every entry there is, expired ones too, by id."""
        ...

    def events(self, tenant: str) -> Iterator[Event]:
        """Every event, by entry id and within that by `seq`."""
        ...

    def sizes(self) -> tuple[int, int]:
        """How many entries and how many events there are."""
        ...

    def index_problems(self) -> Iterable[str]:
        """What does not agree between the entries and each index, tag and count over them."""
        ...

    def close(self) -> None:
        """Lets the snapshot go."""
        ...
