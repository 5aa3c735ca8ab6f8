"""Expired entries: invisible at once, and returned to the sweep."""

# ruff: noqa: S101 - a case asserts.

from __future__ import annotations

from typing import Any

import msgspec

from memorywall.records.entry import Entry, Scope
from memorywall.records.filter import EntryFilter
from memorywall.records.tier import Tier
from memorywall.records.usage import Usage
from memorywall.storage.port import Store, Transaction
from memorywall_testing.base import (
    AGENT,
    NOW,
    TENANT,
    StoreCase,
    at,
    find,
    get,
    make_entry,
    make_shared,
    put,
    remove,
    replace,
    search,
    search_page,
    usage_of,
    visibility,
)

_JUST_BEFORE, _THEN, _AFTER = at(9.999), at(10), at(11)


class ExpiryConformance(StoreCase):
    """The meaning of `now` in every method that has the parameter."""

    async def test_entry_is_invisible_from_its_expiry_on(self, store: Store) -> None:
        entry = make_entry(expires_at=_THEN)
        await put(store, entry)
        assert await get(store, entry, _JUST_BEFORE) == entry
        assert await get(store, entry, _THEN) is None
        assert await get(store, entry, _AFTER) is None

    async def test_no_search_shows_or_counts_it(self, store: Store) -> None:
        fields: dict[str, Any] = {
            "tags": ("tag",),
            "scope": Scope(task_id="task", intent_id="intent"),
        }
        lasting = make_entry(**fields)
        entry = make_entry(expires_at=_THEN, **fields)
        shared = make_shared(expires_at=_THEN, **fields)
        await put(store, lasting, entry, shared)
        within = visibility(AGENT, namespaces=["policies"])
        for conditions in (
            {},
            {"tags": ("tag",)},
            {"tags_any": ("tag", "other")},
            {"task_id": "task"},
            {"intent_id": "intent"},
            {"tiers": (Tier.WORKING, Tier.SEMANTIC)},
            {"pinned": False},
        ):
            assert await search(store, within, _JUST_BEFORE, **conditions) == [
                shared,
                entry,
                lasting,
            ]
            assert await search(store, within, _THEN, **conditions) == [lasting]
        assert await search(store, within, _THEN, key=entry.key) == []
        assert await search_page(store, EntryFilter(tenant=TENANT, limit=1), within, _THEN) == (
            [lasting],
            1,
        )

    async def test_nothing_counts_it(self, store: Store) -> None:
        lasting = make_entry(value=b"123", created_at=at(2), scope=Scope(task_id="lasting"))
        entry = make_entry(
            value=b"12345",
            pinned=True,
            expires_at=_THEN,
            created_at=at(3),
            scope=Scope(task_id="task"),
        )
        await put(store, lasting, entry)
        tier = Tier.WORKING

        async def counts(now: str) -> tuple[object, ...]:
            return (
                await store.read(TENANT, lambda to: to.entries.usage(tier, AGENT, now)),
                await store.read(TENANT, lambda to: to.entries.task_usage(tier, "task", now)),
                await store.read(TENANT, lambda to: to.entries.tasks(tier, AGENT, now)),
                await store.read(TENANT, lambda to: to.entries.span(tier, AGENT, now)),
            )

        assert await counts(_JUST_BEFORE) == (
            Usage(entries=2, bytes=8, pinned=1),
            Usage(entries=1, bytes=5),
            ["lasting", "task"],
            (at(2), at(3)),
        )
        hidden = (Usage(entries=1, bytes=3), Usage(), ["lasting"], (at(2), at(2)))
        assert await counts(_THEN) == hidden
        await remove(store, entry)
        assert await counts(_THEN) == hidden
        assert await counts(_JUST_BEFORE) == hidden

    async def test_an_owner_all_of_whose_entries_expired_uses_nothing(self, store: Store) -> None:
        await put(store, *(make_entry(expires_at=at(second)) for second in range(1, 11)))
        for second in range(12):
            usage = await usage_of(store, now=at(second))
            assert usage.entries == max(0, 10 - second)

    async def test_an_expired_name_is_found_and_not_free_until_it_is_removed(
        self, store: Store
    ) -> None:
        entry = make_entry(expires_at=_THEN)
        await put(store, entry)
        assert await find(store, entry) == entry
        late = make_entry(key=entry.key)
        assert not await store.write(TENANT, lambda to: to.entries.insert(late, _AFTER))
        await remove(store, entry)
        assert await store.write(TENANT, lambda to: to.entries.insert(late, _AFTER))

    async def test_the_expired_are_listed_oldest_expiry_first(self, store: Store) -> None:
        seconds = (7, 3, 5, 3, 9)
        entries = [make_entry(expires_at=at(second)) for second in seconds]
        shared = make_shared(expires_at=at(1))
        lasting = make_entry()
        foreign = make_entry(tenant="globex", expires_at=at(1))
        await put(store, *entries, shared, lasting, foreign)
        ordered = [shared, *sorted(entries, key=lambda one: (one.expires_at or "", one.id))]

        async def expired(now: str, limit: int = 99) -> list[object]:
            return [*await store.read(TENANT, lambda to: to.entries.expired(now, limit))]

        assert await expired(at(99)) == ordered
        assert await expired(at(99), 2) == ordered[:2]
        assert await expired(at(5)) == ordered[:4]
        assert await expired(at(4.999)) == ordered[:3]
        assert await expired(at(0)) == []

    async def test_new_expiry_replaces_the_old_one(self, store: Store) -> None:
        entry = make_entry(expires_at=_THEN)
        await put(store, entry)
        lasting = msgspec.structs.replace(entry, version=2, expires_at=None)
        await replace(store, entry, lasting)
        assert await get(store, entry, _AFTER) == lasting
        assert await store.read(TENANT, lambda to: to.entries.expired(_AFTER, 9)) == []
        ending = msgspec.structs.replace(lasting, version=3, expires_at=at(1))
        await replace(store, lasting, ending)
        assert await get(store, entry, at(1)) is None
        assert await store.read(TENANT, lambda to: to.entries.expired(at(1), 9)) == [ending]

    async def test_all_of_an_owner_is_listed_the_expired_too(self, store: Store) -> None:
        entries = [make_entry(expires_at=one) for one in (_THEN, None, _THEN, None)]
        others = [
            make_entry(tier=Tier.EPISODIC),
            make_entry(owner="grace"),
            make_entry(owner="ADA"),
            make_entry(tenant="globex"),
            make_shared(),
        ]
        await put(store, *reversed(entries), *others)

        async def owned(owner: str, limit: int = 99, tier: Tier = Tier.WORKING) -> list[object]:
            return [*await store.read(TENANT, lambda to: to.entries.of_owner(tier, owner, limit))]

        assert await owned("ada") == entries
        assert await owned("ada", 3) == entries[:3]
        assert await owned("ada", tier=Tier.EPISODIC) == [others[0]]
        assert await owned("grace") == [others[1]]
        assert await owned("nobody") == []

        async def script(transaction: Transaction) -> list[Entry]:
            await transaction.entries.remove(entries[0])
            await transaction.entries.insert(late, NOW)
            return await transaction.entries.of_owner(Tier.WORKING, "ada", 99)

        late = make_entry()
        assert await store.write(TENANT, script) == [*entries[1:], late]
