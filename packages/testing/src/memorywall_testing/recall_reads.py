"""The reads of recall: all entries of an owner, many entries, and the changes in the log."""

# ruff: noqa: S101 - a case asserts.

from __future__ import annotations

import itertools
from typing import Any

import pytest

from memorywall.records.entry import Entry
from memorywall.records.event import ENDINGS, EntryChange, Event, EventType, WorkEventType
from memorywall.records.tier import Tier
from memorywall.storage.port import Store, Transaction
from memorywall_testing.base import (
    AGENT,
    NOW,
    TENANT,
    StoreCase,
    UndoError,
    append,
    at,
    log_event,
    make_entry,
    make_event,
    make_shared,
    put,
    remove,
    write_each,
)


async def _many(store: Store, *entries: Entry, now: str = NOW, tenant: str = TENANT) -> list[Entry]:
    ids = {entry.id for entry in entries}
    found = await store.read(tenant, lambda to: to.entries.get_many(ids, now))
    return sorted(found, key=lambda entry: entry.id)


async def _of_owner(
    store: Store, owner: str, limit: int, after: str, tier: Tier = Tier.WORKING
) -> list[Entry]:
    return await store.read(TENANT, lambda to: to.entries.of_owner(tier, owner, limit, after))


async def _changes(
    store: Store, after: int = 0, limit: int = 1_000, tenant: str = TENANT
) -> list[EntryChange]:
    return (await store.read(tenant, lambda to: to.events.list_of_entries(after, limit)))[0]


def _change_of(event: Event) -> EntryChange:
    assert event.tier is not None
    return EntryChange(
        event.seq,
        event.entry_id,
        event.tier,
        event.agent_id,
        event.version,
        event.type in ENDINGS,
    )


def _of_work(kind: str = WorkEventType.TASK_CREATED, **fields: Any) -> Event:
    """An event that is about no entry."""
    return make_event(kind, entry_id="", tier=None, namespace="", key="", version=0, **fields)


class RecallReadsConformance(StoreCase):
    """`Entries.get_many`, `Entries.of_owner` page by page, and `Events.list_of_entries`."""

    async def test_many_entries_are_got_at_once(self, store: Store) -> None:
        entries = [
            make_entry(tags=("a", "b"), value=bytes(range(256))),
            make_entry(tier=Tier.EPISODIC, owner="grace"),
            make_shared(sensitivity="restricted", sealing_key="dek_1"),
        ]
        await put(store, *entries)
        assert await _many(store, *entries, make_entry()) == entries
        assert await _many(store, entries[1]) == [entries[1]]
        assert await _many(store, make_entry()) == await _many(store) == []
        await remove(store, entries[0])
        assert await _many(store, *entries) == entries[1:]

    async def test_expired_entry_is_absent_from_get_many(self, store: Store) -> None:
        entries = [make_entry(expires_at=at(seconds)) for seconds in (1, 2, 3)] + [make_entry()]
        await put(store, *entries)
        for seconds, first in ((0, 0), (0.999, 0), (1, 1), (2.5, 2), (3, 3), (99, 3)):
            assert await _many(store, *entries, now=at(seconds)) == entries[first:]

    async def test_more_than_a_thousand_are_got_at_once(self, store: Store) -> None:
        entries = [make_entry() for _ in range(1_500)]
        await put(store, *entries)
        assert await _many(store, *entries) == entries

    async def test_many_of_another_tenant_are_not_got(self, store: Store) -> None:
        mine, theirs = make_entry(id="mem_1"), make_entry(id="mem_1", tenant="globex")
        only = make_entry(tenant="globex")
        await put(store, mine, theirs, only)
        assert await _many(store, mine, only) == [mine]
        assert await _many(store, mine, only, tenant="globex") == sorted(
            [theirs, only], key=lambda entry: entry.id
        )

    async def test_a_transaction_gets_many_as_it_left_them(self, store: Store) -> None:
        new, old = make_entry(), make_entry()
        await put(store, old)

        async def script(to: Transaction) -> None:
            ids = [new.id, old.id]
            assert await to.entries.insert(new, NOW)
            assert len(await to.entries.get_many(ids, NOW)) == 2
            assert await to.entries.of_owner(Tier.WORKING, AGENT, 9, new.id) == [old]
            await to.entries.remove(old)
            assert await to.entries.get_many(ids, NOW) == [new]

        await store.write(TENANT, script)

    async def test_entries_of_an_owner_are_read_in_pages(self, store: Store) -> None:
        entries = [make_entry(expires_at=at(-5) if n % 3 == 0 else None) for n in range(7)]
        await put(store, *reversed(entries), make_entry(owner="grace"))
        await put(store, make_entry(tier=Tier.EPISODIC), make_entry(tenant="globex"))
        ids = ["", *(entry.id for entry in entries)]
        for (place, after), limit in itertools.product(enumerate(ids), (1, 3, 99)):
            page = await _of_owner(store, AGENT, limit, after)
            assert page == entries[place : place + limit]
        assert await _of_owner(store, AGENT, 9, entries[1].id + "!") == entries[2:]
        assert await _of_owner(store, "", 9, "") == []

    async def test_a_namespaces_tier_is_gone_through_in_pages(self, store: Store) -> None:
        entries = [make_shared(namespace=f"n{number % 2}") for number in range(4)]
        await put(store, *entries, make_entry())
        assert await _of_owner(store, "", 2, "", Tier.SEMANTIC) == entries[:2]
        assert await _of_owner(store, "", 2, entries[1].id, Tier.SEMANTIC) == entries[2:]

    async def test_changes_of_an_empty_log(self, store: Store) -> None:
        assert await _changes(store) == []
        await append(store, _of_work())
        assert await _changes(store) == []

    @pytest.mark.parametrize("kind", list(EventType))
    async def test_every_kind_of_change_appends_an_event(
        self, store: Store, kind: EventType
    ) -> None:
        fields: dict[str, Any] = {"tier": Tier.SEMANTIC, "agent_id": "grace", "stream": ""}
        event = await append(store, make_event(kind, entry_id="mem_9", version=8, **fields))
        (change,) = await _changes(store)
        assert change == EntryChange(event.seq, "mem_9", Tier.SEMANTIC, "grace", 8, kind in ENDINGS)
        assert type(change.tier) is Tier
        assert change.ended is (kind not in (EventType.CREATED, EventType.UPDATED))

    async def test_changes_come_in_order_after_a_place(self, store: Store) -> None:
        kinds: list[Event] = []
        for kind, tier in itertools.product(EventType, Tier):
            kinds.append(make_event(kind, tier=tier, stream=tier.value, agent_id=tier.name))
            kinds.append(_of_work(stream=AGENT, intent_id="int_1"))
        kinds.append(_of_work("memory.created", data=b"{}"))
        appended = await write_each(store, kinds, lambda to, event: log_event(to, event))
        expected = [_change_of(event) for event in appended if event.tier is not None]
        assert len(expected) == len(EventType) * len(Tier)
        assert await _changes(store) == expected
        for after in (0, 1, 2, 5, expected[-2].seq, expected[-1].seq, len(kinds), len(kinds) + 9):
            rest = [change for change in expected if change.seq > after]
            assert await _changes(store, after) == rest
            for limit in (1, 3):
                assert await _changes(store, after, limit) == rest[:limit]

    async def test_changes_of_tenants_never_meet(self, store: Store) -> None:
        mine = await append(store, make_event())
        theirs = await append(store, make_event(tenant="globex", entry_id="mem_2"))
        assert await _changes(store) == [_change_of(mine)]
        assert await _changes(store, tenant="globex") == [_change_of(theirs)]
        assert await _changes(store, tenant="Acme") == []

    async def test_changes_name_the_end_of_the_log_and_the_kinds_of_stored_entries(
        self, store: Store
    ) -> None:
        async def look(to: Transaction) -> list[object]:
            found = [await to.events.list_of_entries(after, 2) for after in (0, 1, 4)]
            return [([change.kind for change in changes], end) for changes, end in found]

        assert await store.read(TENANT, look) == [([], 0)] * 3
        await put(store, make_entry(id="mem_1", kind="core"), make_entry(id="mem_2"))
        for name in ("mem_1", "mem_2", "mem_3"):
            await append(store, make_event(entry_id=name))
        await append(store, _of_work())
        expected = [(["core", None], 4), ([None, None], 4), ([], 4)]
        assert await store.read(TENANT, look) == expected
        assert await store.read("globex", look) == [([], 0)] * 3

    async def test_a_transaction_sees_the_changes_it_logs(self, store: Store) -> None:
        await append(store, make_event())

        async def undone(to: Transaction) -> None:
            event = await log_event(to, make_event(EventType.EVICTED, entry_id="mem_2"))
            changes, end = await to.events.list_of_entries(0, 9)
            assert [change.ended for change in changes] == [False, True]
            assert end == event.seq
            assert await to.events.list_of_entries(1, 9) == ([_change_of(event)], end)
            raise UndoError

        with pytest.raises(UndoError):
            await store.write(TENANT, undone)
        assert len(await _changes(store)) == 1
