"""The base of the cases: opening a store, and short functions for its content."""

# ruff: noqa: S101 - a case asserts.

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any, Protocol, TypeVar

import msgspec
import pytest

from memorywall.records.clock import format_instant
from memorywall.records.decision import VisibilityFilter
from memorywall.records.entry import SEALED_SENSITIVITIES, Entry, Provenance
from memorywall.records.event import Event, EventType
from memorywall.records.event_chain import DigestKey, seal_event
from memorywall.records.filter import EntryFilter
from memorywall.records.idempotency import IdempotencyRecord
from memorywall.records.tier import Eviction, Tier
from memorywall.records.usage import Usage
from memorywall.storage.port import Store, Transaction
from memorywall.wire.entries import view

TENANT = "acme"
AGENT = "ada"
DEADLINE = 60.0
"""Seconds after which something that must happen soon counts as not happening."""

SEED = int(os.environ.get("MEMORYWALL_SEED") or 20_260_202)
"""Of cases that do something at random; they print it."""
_START = 1_770_000_000_000
_numbers = itertools.count(1)


class Identified(Protocol):
    """A record with an id."""

    @property
    def id(self) -> str: ...


class Owned(Protocol):
    """A record of a tenant."""

    @property
    def tenant(self) -> str: ...


Record = TypeVar("Record", bound=Identified)
OwnedRecord = TypeVar("OwnedRecord", bound=Owned)
Result = TypeVar("Result")


class UndoError(Exception):
    """Raised by a script to be undone."""


class Opener(Protocol):
    """The function with which a backend under test opens a store."""

    async def __call__(self, *, beside: bool = False) -> Store:
        """A store on the data of this test, the same at every call.

        beside: the data are open already, and this is a second process's view of them
        """
        ...


class Stores:
    """Opens stores on the data of one test and sees that all are closed."""

    def __init__(self, opener: Opener) -> None:
        self._opener = opener
        self._opened: list[Store] = []

    async def open(self, *, beside: bool = False) -> Store:
        """One more store on the same data."""
        store = await self._opener(beside=beside)
        self._opened.append(store)
        return store

    async def close(self, store: Store) -> None:
        """Closes one of them."""
        self._opened.remove(store)
        await store.close()

    async def close_all(self) -> None:
        """Closes those that are left, the last opened first."""
        while self._opened:
            await self.close(self._opened[-1])


class StoreCase:
    """The fixtures of every case. A backend provides `opener`."""

    pytestmark = pytest.mark.anyio

    @pytest.fixture
    def anyio_backend(self) -> str:
        """The factory of the event loop."""
        return "asyncio"

    @pytest.fixture
    def opener(self) -> Opener:
        """The function that opens a store; the only part that the test of a backend provides."""
        raise NotImplementedError("a backend's test has a fixture `opener`")

    @pytest.fixture
    async def stores(self, opener: Opener) -> AsyncIterator[Stores]:
        """For cases that open the data more than once."""
        stores = Stores(opener)
        yield stores
        await stores.close_all()

    @pytest.fixture
    async def store(self, stores: Stores) -> Store:
        """An empty store."""
        return await stores.open()


def at(seconds: float) -> str:
    """The instant so many seconds after the one at which every test begins."""
    return format_instant(_START + round(seconds * 1000))


NOW = at(0)


def make_entry(**fields: Any) -> Entry:
    """A working entry of `ada`, newer by id than every one made before it."""
    number = next(_numbers)
    value = fields.setdefault("value", b'{"number":%d}' % number)
    return Entry(
        **{
            "tenant": TENANT,
            "id": f"mem_{number:026d}",
            "tier": Tier.WORKING,
            "owner": AGENT,
            "agent_id": fields.get("owner", AGENT) or AGENT,
            "namespace": "invoices",
            "key": f"key-{number}",
            "size": len(value),
            "created_at": NOW,
            "updated_at": NOW,
            "created_by": AGENT,
            "provenance": Provenance(principal=AGENT, kind="agent"),
            **fields,
        }
    )


def make_shared(namespace: str = "policies", **fields: Any) -> Entry:
    """A semantic entry, owned by nobody."""
    return make_entry(tier=Tier.SEMANTIC, owner="", namespace=namespace, **fields)


def make_event(kind: str = EventType.CREATED, **fields: Any) -> Event:
    """An event of an entry of `ada`."""
    return Event(
        **{
            "tenant": TENANT,
            "type": kind,
            "stream": AGENT,
            "agent_id": AGENT,
            "actor": AGENT,
            "entry_id": "mem_1",
            "tier": Tier.WORKING,
            "namespace": "invoices",
            "key": "progress",
            "version": 1,
            "timestamp": NOW,
            **fields,
        }
    )


DIGEST_KEY = DigestKey.derive("dek_conformance", bytes(range(32)))
"""Keys the digests of what the cases log."""


async def log_event(transaction: Transaction, event: Event) -> Event:
    """Appends an event as the service does; returns it with its `seq`."""
    head = await transaction.events.head()
    await transaction.events.append(seal_event(event, head, DIGEST_KEY))
    return msgspec.structs.replace(event, seq=head.seq + 1)


def make_reply(key: str = "key", **fields: Any) -> IdempotencyRecord:
    """A stored response to `ada` that contains no entry."""
    return IdempotencyRecord(
        **{
            "tenant": TENANT,
            "principal": AGENT,
            "key": key,
            "fingerprint": b"\x00\xfffingerprint",
            "status": 201,
            "reply": b"\x00\xffreply",
            "sealing_key": "dek_1",
            "entry_ids": (),
            "created_at": NOW,
            **fields,
        }
    )


def visibility(*owners: str, namespaces: Iterable[str] = ()) -> VisibilityFilter:
    """A reach over owners and namespaces."""
    return VisibilityFilter(owners=owners, namespaces=tuple(namespaces))


async def write_each(
    store: Store,
    records: Iterable[OwnedRecord],
    change: Callable[[Transaction, OwnedRecord], Awaitable[Result]],
) -> list[Result]:
    """Does the same with each record, in one transaction for each of their tenants.

    Returns what came of it, in the order of the records.
    """
    listed = list(records)
    results: dict[int, Result] = {}
    for tenant in dict.fromkeys(record.tenant for record in listed):
        places = [place for place, record in enumerate(listed) if record.tenant == tenant]

        async def script(transaction: Transaction, places: list[int] = places) -> list[Result]:
            return [await change(transaction, listed[place]) for place in places]

        results.update(zip(places, await store.write(tenant, script), strict=True))
    return [results[place] for place in range(len(listed))]


async def put(store: Store, *entries: Entry, now: str = NOW) -> None:
    """Inserts entries, in one transaction for each tenant."""

    async def change(transaction: Transaction, entry: Entry) -> None:
        assert await transaction.entries.insert(entry, now)

    await write_each(store, entries, change)


async def insert(store: Store, entry: Entry, now: str = NOW) -> bool:
    """Returns the result of `insert` for an entry in a transaction of its own."""
    return await store.write(entry.tenant, lambda to: to.entries.insert(entry, now))


async def append(store: Store, event: Event | None = None) -> Event:
    """Appends an event, by default any one, in a transaction of its own."""
    one = make_event() if event is None else event
    return await store.write(one.tenant, lambda to: log_event(to, one))


async def read_log(store: Store, tenant: str = TENANT, after: int = 0) -> list[Event]:
    """All events of `ada` after a sequence number."""
    return await store.read(tenant, lambda to: to.events.list(AGENT, after, 100_000))


async def usage_of(
    store: Store, owner: str = AGENT, tier: Tier = Tier.WORKING, now: str = NOW
) -> Usage:
    """Returns the usage of an owner."""
    return await store.read(TENANT, lambda to: to.entries.usage(tier, owner, now))


async def get(store: Store, entry: Entry, now: str = NOW) -> Entry | None:
    """Returns the entry with the entry's id."""
    return await store.read(entry.tenant, lambda to: to.entries.get(entry.id, now))


async def find(store: Store, entry: Entry) -> Entry | None:
    """Returns the entry with the entry's unique name."""
    return await store.read(
        entry.tenant,
        lambda to: to.entries.find(
            entry.tier, entry.owner, entry.namespace, entry.key, entry.scope.session_id
        ),
    )


async def replace(store: Store, old: Entry, new: Entry) -> None:
    """Replaces an entry, reading it in the same transaction."""

    async def script(transaction: Transaction) -> None:
        read = await transaction.entries.find(
            old.tier, old.owner, old.namespace, old.key, old.scope.session_id
        )
        assert read == old
        await transaction.entries.replace(read, new)

    await store.write(old.tenant, script)


async def remove(store: Store, *entries: Entry) -> None:
    """Removes entries, in one transaction for each tenant."""
    await write_each(store, entries, lambda to, entry: to.entries.remove(entry))


async def first_to_evict(
    to: Transaction, tier: Tier = Tier.EPISODIC, owner: str = AGENT, now: str = NOW
) -> Entry | None:
    """The entry that goes first by last access."""
    policy = Eviction.LEAST_RECENTLY_USED
    found = await to.entries.first_to_evict(tier, owner, policy, now, 1)
    return found[0] if found else None


async def search(
    store: Store, within: VisibilityFilter | None = None, now: str = NOW, **conditions: Any
) -> list[Entry]:
    """Everything that matches; also sees to it that the total says as many. See `search_in`."""
    wanted = EntryFilter(**{"tenant": TENANT, "limit": None, **conditions})
    reached = visibility(AGENT) if within is None else within
    entries, total = await store.read(wanted.tenant, lambda to: search_in(to, wanted, reached, now))
    assert total == len(entries)
    return entries


async def search_in(
    to: Transaction, wanted: EntryFilter, within: VisibilityFilter, now: str
) -> tuple[list[Entry], int]:
    """One page and the total; also sees to it that the rendered page shows the same."""
    entries, total = await to.entries.search(wanted, within, now)
    if wanted.limit is None and wanted.offset == 0:
        counted = sorted(Counter(entry.namespace for entry in entries).items())
        assert await to.entries.namespaces(wanted, within, now, "", len(counted) + 1) == counted
        if counted:
            first = counted[0][0]
            assert await to.entries.namespaces(wanted, within, now, first, 1) == counted[1:2]
    rendered = await to.entries.search_rendered(wanted, within, now)
    assert rendered.total == total
    assert len(rendered.rows) == len(entries)
    for entry, row in zip(entries, rendered.rows, strict=True):
        assert row[:4] == (entry.id, entry.tier.value, entry.owner, entry.kind)
        if row[-1] is None:
            assert rendered.entries[entry.id] == entry
        else:
            assert row[-1] == msgspec.json.encode(view(entry))
            assert entry.sealing_key is None
            assert entry.sensitivity not in SEALED_SENSITIVITIES
    return entries, total


def newest_first(records: Iterable[Record]) -> list[Record]:
    """Entries in the order of a page, and others in the same."""
    return sorted(records, key=lambda record: record.id, reverse=True)


def undone(outcomes: Iterable[object]) -> list[bool]:
    """Returns those that were undone. No other error may have occurred."""
    listed = list(outcomes)
    for outcome in listed:
        assert isinstance(outcome, UndoError) or not isinstance(outcome, BaseException), outcome
    return [isinstance(outcome, UndoError) for outcome in listed]
