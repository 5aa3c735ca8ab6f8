"""Transactions: whole or not at all, seen at one moment, durable before anyone hears of them."""

# ruff: noqa: S101 - a case asserts.

from __future__ import annotations

import asyncio
import time

import msgspec
import pytest

from memorywall.records.idempotency import DataKey
from memorywall.records.lease import LeaseKind
from memorywall.records.namespace import Access, Namespace
from memorywall.records.principal import ApiKey, Permission, PrincipalKind
from memorywall.records.tier import Tier
from memorywall.records.usage import AgentLimits
from memorywall.storage.port import REGISTRY, Store, Transaction
from memorywall_testing.base import (
    AGENT,
    DEADLINE,
    NOW,
    TENANT,
    StoreCase,
    Stores,
    UndoError,
    find,
    get,
    log_event,
    make_entry,
    make_event,
    make_reply,
    put,
    remove,
    search,
    usage_of,
)
from memorywall_testing.work import (
    make_attachment,
    make_coordinator,
    make_grant,
    make_intent,
    make_lease,
    make_task,
)


def _api_key(prefix: str) -> ApiKey:
    return ApiKey(
        prefix=prefix,
        digest=b"digest",
        tenant=TENANT,
        principal=AGENT,
        kind=PrincipalKind.AGENT,
        permissions=frozenset({Permission.READ}),
        created_at=NOW,
    )


async def _write_every_noun(transaction: Transaction) -> None:
    entry = make_entry(id="mem_undone", key="undone", tags=("undone",))
    await transaction.entries.insert(entry, NOW)
    await log_event(transaction, make_event(stream="undone"))
    await transaction.namespaces.save(
        Namespace(tenant=TENANT, name="undone", default=Access.READ, created_at=NOW, updated_at=NOW)
    )
    await transaction.identities.add_tenant(TENANT, NOW)
    await transaction.identities.add_key(_api_key("undone"))
    await transaction.identities.set_limits("undone", AgentLimits(episodic_capacity=5))
    await transaction.replies.put(make_reply("undone", principal="undone", entry_ids=(entry.id,)))
    await transaction.data_keys.add(
        DataKey(tenant=TENANT, id="undone", wrapped=b"w", wrapped_by="kek", created_at=NOW)
    )
    await transaction.leases.acquire(make_lease(name="undone"), NOW)
    await transaction.intents.insert(make_intent(id="undone", depends_on=("undone",)))
    await transaction.intents.add_grant(make_grant(intent_id="undone"))
    await transaction.tasks.insert(make_task(id="undone", assigned_agent="undone"))
    await transaction.coordinators.insert(make_coordinator(id="undone", intent_id="undone"))
    await transaction.attachments.insert(make_attachment(id="undone", intent_id="undone"))
    await transaction.attachments.put_chunk("undone", 0, b"undone")


async def _read_every_noun(transaction: Transaction) -> list[object]:
    return [
        await transaction.entries.get("mem_undone", NOW),
        await transaction.entries.find(Tier.WORKING, AGENT, "invoices", "undone"),
        (await transaction.entries.usage(Tier.WORKING, AGENT, NOW)).entries or None,
        (await transaction.events.list("undone", 0, 9)) or None,
        await transaction.events.latest(),
        await transaction.namespaces.get("undone"),
        (await transaction.namespaces.list_for("undone")) or None,
        (await transaction.identities.limits("undone")).episodic_capacity,
        await transaction.replies.get("undone", "undone"),
        await transaction.data_keys.get("undone"),
        await transaction.leases.current(LeaseKind.CLAIM, "shared/global", "undone"),
        await transaction.intents.get("undone"),
        (await transaction.intents.dependents("undone")) or None,
        (await transaction.intents.grants("undone")) or None,
        (await transaction.intents.grants_to("grace", NOW)) or None,
        await transaction.tasks.get("undone"),
        (await transaction.tasks.open_of("undone")) or None,
        await transaction.coordinators.get("undone"),
        await transaction.attachments.get("undone"),
        list(await transaction.attachments.chunks("undone")) or None,
    ]


async def _read_registry(transaction: Transaction) -> list[object]:
    return [
        (await transaction.identities.tenants()) or None,
        await transaction.identities.find_key("undone"),
        (await transaction.identities.keys(TENANT)) or None,
        (await transaction.identities.keys(None)) or None,
        await transaction.data_keys.any(),
    ]


async def _read_everything(store: Store) -> list[object]:
    nouns = await store.read(TENANT, _read_every_noun)
    return [*nouns, *await store.read(REGISTRY, _read_registry)]


async def _changed(store: Store, seen: int) -> int:
    """The generation, once it is not what was seen; another process's change may take a moment."""
    until = time.monotonic() + DEADLINE
    while (now := await store.generation()) == seen:
        assert time.monotonic() < until, "the generation does not change"
        await asyncio.sleep(0.01)
    return now


class TransactionsConformance(StoreCase):
    """`port.Store`, one caller at a time."""

    async def test_a_script_gives_its_result(self, store: Store) -> None:
        result = object()

        async def script(transaction: Transaction) -> object:
            return result

        assert await store.read(TENANT, script) is result
        assert await store.write(TENANT, script) is result

    async def test_transaction_reads_its_own_writes(self, store: Store) -> None:
        entry = make_entry(tags=("tag",))

        async def script(transaction: Transaction) -> None:
            await transaction.entries.insert(entry, NOW)
            assert await transaction.entries.get(entry.id, NOW) == entry
            changed = msgspec.structs.replace(entry, version=2, tags=("other",))
            await transaction.entries.replace(entry, changed)
            assert await transaction.entries.get(entry.id, NOW) == changed
            await transaction.entries.remove(changed)
            assert await transaction.entries.get(entry.id, NOW) is None
            assert await transaction.entries.insert(entry, NOW)

        await store.write(TENANT, script)
        assert await search(store, tags=("tag",)) == [entry]
        assert await search(store, tags=("other",)) == []

    async def test_an_exception_undoes_everything(self, store: Store) -> None:
        async def undone(transaction: Transaction) -> None:
            await _write_every_noun(transaction)
            assert None not in await _read_every_noun(transaction)
            raise UndoError("said by the script")

        with pytest.raises(UndoError, match="said by the script"):
            await store.write(TENANT, undone)
        assert await _read_everything(store) == [None] * 25
        await store.write(TENANT, _write_every_noun)
        assert None not in await _read_everything(store)

    async def test_an_exception_undoes_changes_and_removals(self, store: Store) -> None:
        kept, removed = make_entry(tags=("old",)), make_entry(tags=("old",))
        await put(store, kept, removed)

        async def undone(transaction: Transaction) -> None:
            changed = msgspec.structs.replace(kept, version=2, tags=("new",), value=b"1", size=1)
            await transaction.entries.replace(kept, changed)
            await transaction.entries.remove(removed)
            raise UndoError

        usage = await usage_of(store)
        with pytest.raises(UndoError):
            await store.write(TENANT, undone)
        assert await search(store, tags=("old",)) == [removed, kept]
        assert await search(store, tags=("new",)) == []
        assert usage == await usage_of(store)

    async def test_an_exception_of_a_reading_script_comes_out(self, store: Store) -> None:
        async def failing(transaction: Transaction) -> None:
            assert await transaction.events.latest() is None
            raise UndoError("said by the script")

        async def failing_in_registry(transaction: Transaction) -> None:
            assert await transaction.identities.tenants() == []
            raise UndoError("said of the registry")

        with pytest.raises(UndoError, match="said by the script"):
            await store.read(TENANT, failing)
        with pytest.raises(UndoError, match="said of the registry"):
            await store.read(REGISTRY, failing_in_registry)
        assert await _read_everything(store) == [None] * 25

    async def test_write_is_visible_after_reopening(self, stores: Stores) -> None:
        store = await stores.open()
        await store.write(TENANT, _write_every_noun)
        written = await _read_everything(store)
        assert None not in written
        await stores.close(store)
        again = await stores.open()
        assert await _read_everything(again) == written

    async def test_write_is_visible_to_another_open_store(self, stores: Stores) -> None:
        store = await stores.open()
        other = await stores.open(beside=True)
        for _ in range(5):
            entry = make_entry()
            await put(store, entry)
            assert await get(other, entry) == entry
            await remove(store, entry)
            assert await find(other, entry) is None

    async def test_close_waits_for_running_work(self, stores: Stores) -> None:
        store = await stores.open()
        entries = [make_entry() for _ in range(50)]
        writes = [asyncio.ensure_future(put(store, entry)) for entry in entries]
        await asyncio.sleep(0)
        await stores.close(store)
        outcomes = await asyncio.gather(*writes, return_exceptions=True)
        again = await stores.open()
        for entry, outcome in zip(entries, outcomes, strict=True):
            assert outcome is None
            assert await get(again, entry) == entry

    async def test_generation_changes_with_keys(self, stores: Stores) -> None:
        store = await stores.open()
        seen = await store.generation()
        assert await store.generation() == seen
        await store.write(TENANT, lambda to: to.identities.add_key(_api_key("one")))
        assert await store.generation() != seen
        seen = await store.generation()
        await store.write(TENANT, lambda to: to.identities.revoke_key("one", NOW))
        assert await store.generation() != seen

    async def test_generation_changes_with_keys_of_another_opener(self, stores: Stores) -> None:
        store = await stores.open()
        other = await stores.open(beside=True)
        seen = await store.generation()
        await other.write(TENANT, lambda to: to.identities.add_key(_api_key("one")))
        seen = await _changed(store, seen)
        found = await store.read(REGISTRY, lambda to: to.identities.find_key("one"))
        assert found == _api_key("one")
        await other.write(TENANT, lambda to: to.identities.revoke_key("one", NOW))
        await _changed(store, seen)
        found = await store.read(REGISTRY, lambda to: to.identities.find_key("one"))
        assert found is not None
        assert found.revoked_at == NOW

    async def test_bytes_of_removed_data_leave_by_the_deadline(self, store: Store) -> None:
        entries = [make_entry() for _ in range(3)]
        await put(store, *entries)
        changed = msgspec.structs.replace(entries[0], version=2)

        async def replace_one(transaction: Transaction) -> None:
            await transaction.entries.replace(entries[0], changed)

        await store.write(TENANT, replace_one)
        await remove(store, *entries[1:])
        removals = store.count_removals()
        until = time.monotonic() + DEADLINE
        while not store.is_erasure_complete():
            assert time.monotonic() < until, "the bytes of what was removed are still there"
            await asyncio.sleep(0.05)
        assert await search(store) == [changed]
        await remove(store, changed)
        assert store.is_erasure_complete(removals), "a later removal is another one"
