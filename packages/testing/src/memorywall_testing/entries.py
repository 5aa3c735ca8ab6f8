"""Entries: under their id, under their unique name, changed and removed as a whole."""

# ruff: noqa: S101 - a case asserts.

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from memorywall.records.entry import Entry, Provenance, Scope
from memorywall.records.tier import Tier
from memorywall.records.usage import Usage
from memorywall.storage.port import Store
from memorywall_testing.base import (
    AGENT,
    NOW,
    TENANT,
    StoreCase,
    at,
    find,
    first_to_evict,
    get,
    make_entry,
    make_shared,
    put,
    remove,
    replace,
    search,
    usage_of,
    visibility,
)
from memorywall_testing.names import LOOKALIKES

_FULL: dict[str, Any] = {
    "value": bytes(range(256)),
    "size": 77,
    "sealing_key": "dek_1",
    "scope": Scope(task_id="task", intent_id="intent", session_id="session"),
    "tags": ("zebra", "apple", "\U0001f44d", 'quo"te'),
    "ttl": "duration:PT1H",
    "expires_at": at(3600),
    "version": 7,
    "pinned": True,
    "priority": "high",
    "sensitivity": "restricted",
    "created_at": at(-10),
    "updated_at": at(-5),
    "created_by": "grace",
    "curated_by": "linus",
    "provenance": Provenance(principal="grace", kind="user", authority="human_curated"),
}


async def _changed(store: Store, entry: Entry, **fields: object) -> Entry:
    """The entry as it is after a replacement that sets these fields."""
    new: Entry = msgspec.structs.replace(entry, version=entry.version + 1, **fields)
    await replace(store, entry, new)
    return new


async def _in_task(store: Store, task: str) -> Usage:
    return await store.read(TENANT, lambda to: to.entries.task_usage(Tier.WORKING, task, NOW))


class EntriesConformance(StoreCase):
    """`port.Entries` but for searching and counting."""

    async def test_every_field_of_an_entry_comes_back(self, store: Store) -> None:
        entries = [
            make_entry(**_FULL),
            make_shared(**_FULL),
            make_entry(tier=Tier.EPISODIC, priority="low"),
            make_entry(scope=Scope(intent_id="intent"), sensitivity="public"),
            make_entry(scope=Scope(session_id="session"), value=b""),
            make_entry(value=b"x" * 70_000),
        ]
        await put(store, *entries)
        for entry in entries:
            assert await get(store, entry) == entry
            assert await find(store, entry) == entry

    async def test_missing_record_is_none(self, store: Store) -> None:
        entry = make_entry()
        assert await get(store, entry) is None
        assert await find(store, entry) is None

    async def test_names_are_told_apart_by_code_point(self, store: Store) -> None:
        by_key = [make_entry(key=name) for name in LOOKALIKES]
        by_namespace = [make_entry(namespace=name, key="same") for name in LOOKALIKES]
        by_owner = [make_entry(owner=name, key="same") for name in LOOKALIKES]
        shared = [make_shared(namespace=name, key="same") for name in LOOKALIKES]
        entries = [*by_key, *by_namespace, *by_owner, *shared]
        await put(store, *entries)
        for entry in entries:
            assert await find(store, entry) == entry

    @pytest.mark.parametrize("expires_at", [None, at(-1)], ids=["living", "expired"])
    async def test_insert_is_refused_when_the_name_exists(
        self, store: Store, expires_at: str | None
    ) -> None:
        holder = make_entry(
            tags=("old",), expires_at=expires_at, value=b'"old"', scope=Scope(task_id="old")
        )
        await put(store, holder, now=at(-10))
        before = at(-5)
        usage = await usage_of(store, now=before)
        late = make_entry(
            key=holder.key,
            tags=("new",),
            value=b'"longer"',
            pinned=True,
            scope=Scope(task_id="new"),
        )
        assert not await store.write(TENANT, lambda to: to.entries.insert(late, NOW))
        assert await find(store, holder) == holder
        assert await get(store, late) is None
        assert await search(store, now=before) == [holder]
        assert await search(store, now=before, tags=("new",)) == []
        assert await search(store, now=before, tags_any=("new",)) == []
        assert usage == Usage(entries=1, bytes=holder.size, pinned=0)
        assert usage == await usage_of(store, now=before)
        assert await store.read(
            TENANT, lambda to: to.entries.tasks(Tier.WORKING, AGENT, before)
        ) == ["old"]

    async def test_refused_insert_does_not_count_as_access(self, store: Store) -> None:
        first = make_entry(tier=Tier.EPISODIC)
        second = make_entry(tier=Tier.EPISODIC)
        await put(store, first, now=at(1))
        await put(store, second, now=at(2))
        late = make_entry(tier=Tier.EPISODIC, key=first.key)
        assert not await store.write(TENANT, lambda to: to.entries.insert(late, at(3)))
        victim = await store.read(TENANT, lambda to: first_to_evict(to, Tier.EPISODIC, AGENT))
        assert victim == first

    async def test_a_name_is_unique_only_with_tier_owner_and_namespace(self, store: Store) -> None:
        entries = [
            make_entry(key="same"),
            make_entry(key="same", tier=Tier.SESSION),
            make_entry(key="same", owner="grace"),
            make_entry(key="same", namespace="orders"),
            make_entry(key="same", tenant="globex"),
            make_shared("invoices", key="same"),
            make_shared("invoices", key="same", tenant="globex"),
        ]
        await put(store, *entries)
        for entry in entries:
            assert await find(store, entry) == entry

    async def test_a_name_is_found_in_several_tiers(self, store: Store) -> None:
        own = [make_entry(key="same", tier=tier) for tier in (Tier.EPISODIC, Tier.WORKING)]
        shared = make_shared(own[0].namespace, key="same")
        expired = make_entry(key="same", tier=Tier.SESSION, expires_at=at(-1))
        await put(
            store,
            *own,
            shared,
            expired,
            make_entry(key="other"),
            make_entry(key="same", owner="grace"),
            make_entry(key="same", namespace="orders"),
            make_entry(key="same", tenant="globex"),
            make_entry(key="same", tier=Tier.SESSION, scope=Scope(session_id="one")),
        )

        async def found(*tiers: Tier) -> set[str]:
            name = (own[0].owner, own[0].namespace, "same")
            entries = await store.read(TENANT, lambda to: to.entries.find_in(tiers, *name))
            return {entry.id for entry in entries}

        assert await found(*Tier) == {own[0].id, own[1].id, shared.id, expired.id}
        assert await found(Tier.WORKING, shared.tier) == {own[1].id, shared.id}
        assert await found(Tier.PROCEDURAL) == set()

    async def test_shared_name_is_unique_over_all_owners(self, store: Store) -> None:
        first = make_shared(key="same", agent_id="ada")
        await put(store, first)
        second = make_shared(key="same", agent_id="grace")
        assert not await store.write(TENANT, lambda to: to.entries.insert(second, NOW))
        assert await find(store, second) == first

    async def test_replacement_is_returned_by_reads(self, store: Store) -> None:
        old, other = make_entry(), make_entry()
        await put(store, old, other)
        fields = {
            name: value
            for name, value in _FULL.items()
            if name not in ("version", "created_at", "created_by")
        }
        new = await _changed(store, old, **fields)
        assert await get(store, new) == new
        assert await find(store, new) == new
        assert await get(store, other) == other
        back = await _changed(
            store, new, scope=Scope(), tags=(), ttl=None, expires_at=None, pinned=False,
            sealing_key=None, curated_by=None, value=b"{}", size=2, priority="low",
        )  # fmt: skip
        assert await get(store, back) == back

    async def test_a_replacement_moves_every_index(self, store: Store) -> None:
        old = make_entry(
            tags=("kept", "dropped"),
            scope=Scope(task_id="before", intent_id="before"),
            expires_at=at(10),
            value=b"12345",
        )
        other = make_entry(tags=("dropped",), value=b"123")
        await put(store, old, other)
        new = await _changed(
            store,
            old,
            tags=("added", "kept"),
            scope=Scope(task_id="after", intent_id="after"),
            expires_at=at(20),
            pinned=True,
            value=b"1234567",
            size=7,
            updated_at=at(5),
        )
        assert await search(store, tags=("kept",)) == [new]
        assert await search(store, tags=("added",)) == [new]
        assert await search(store, tags=("dropped",)) == [other]
        assert await search(store, task_id="after") == [new]
        assert await search(store, task_id="before") == []
        assert await search(store, intent_id="after") == [new]
        assert await search(store, intent_id="before") == []
        assert await search(store, pinned=True) == [new]
        assert await search(store, updated_after=at(4)) == [new]
        assert await search(store, now=at(15)) == [other, new]
        assert await store.read(TENANT, lambda to: to.entries.expired(at(15), 9)) == []
        assert await store.read(TENANT, lambda to: to.entries.expired(at(20), 9)) == [new]
        assert await usage_of(store) == Usage(entries=2, bytes=10, pinned=1)
        assert await _in_task(store, "before") == Usage()
        assert await _in_task(store, "after") == Usage(entries=1, bytes=7)

    async def test_replacements_in_a_row_leave_no_trace_of_the_ones_between(
        self, store: Store
    ) -> None:
        entry = make_entry(tags=("0",))
        await put(store, entry)
        for number in range(1, 6):
            entry = await _changed(
                store, entry, tags=(str(number), "always"), value=b"x" * number, size=number
            )
        assert await search(store, tags_any=("0", "1", "2", "3", "4")) == []
        assert await search(store, tags=("5", "always")) == [entry]
        assert await usage_of(store) == Usage(entries=1, bytes=5)

    async def test_removed_entry_leaves_every_index(self, store: Store) -> None:
        gone = make_entry(
            tier=Tier.EPISODIC,
            tags=("tag",),
            scope=Scope(task_id="task", intent_id="intent"),
            expires_at=at(10),
            priority="low",
        )
        await put(store, gone)
        await remove(store, gone)
        assert await get(store, gone) is None
        assert await find(store, gone) is None
        assert await search(store) == []
        for conditions in (
            {"tags": ("tag",)}, {"tags_any": ("tag",)}, {"task_id": "task"},
            {"intent_id": "intent"}, {"namespace": gone.namespace}, {"key": gone.key},
        ):  # fmt: skip
            assert await search(store, **conditions) == []
        assert await store.read(TENANT, lambda to: to.entries.expired(at(99), 9)) == []
        tier = Tier.EPISODIC
        assert await store.read(TENANT, lambda to: to.entries.usage(tier, AGENT, NOW)) == Usage()
        assert (
            await store.read(TENANT, lambda to: to.entries.task_usage(tier, "task", NOW)) == Usage()
        )
        assert await store.read(TENANT, lambda to: to.entries.of_task(tier, "task")) == []
        assert await store.read(TENANT, lambda to: to.entries.tasks(tier, AGENT, NOW)) == []
        assert await store.read(TENANT, lambda to: to.entries.span(tier, AGENT, NOW)) == (
            None,
            None,
        )
        assert await store.read(TENANT, lambda to: first_to_evict(to, tier, AGENT)) is None
        await store.write(TENANT, lambda to: to.entries.touch({gone.id: at(5)}))

    async def test_a_removed_name_is_free_and_its_next_holder_inherits_nothing(
        self, store: Store
    ) -> None:
        first = make_entry(tags=("first",), value=b"1234", pinned=True)
        await put(store, first)
        await remove(store, first)
        second = make_entry(key=first.key, tags=("second",), value=b"12")
        await put(store, second)
        assert await find(store, first) == second
        assert await get(store, first) is None
        assert await search(store, tags_any=("first", "second")) == [second]
        assert await search(store, tags=("first",)) == []
        assert await usage_of(store) == Usage(entries=1, bytes=2)

    async def test_removing_one_leaves_its_neighbours(self, store: Store) -> None:
        entries = [make_entry(tags=("tag",)) for _ in range(5)]
        shared = make_shared(tags=("tag",))
        await put(store, *entries, shared)
        await remove(store, entries[2])
        left = [entry for entry in reversed(entries) if entry is not entries[2]]
        assert await search(store, tags=("tag",)) == left
        assert await search(store, visibility(namespaces=["policies"]), tags=("tag",)) == [shared]

    async def test_a_sealed_value_is_kept_byte_for_byte(self, store: Store) -> None:
        entry = make_entry(value=b"\x00\xff" * 40_000, size=3, sealing_key="dek_1")
        await put(store, entry)
        assert await get(store, entry) == entry
        assert await search(store) == [entry]
