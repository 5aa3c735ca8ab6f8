"""The order of eviction, and last accesses."""

# ruff: noqa: S101, S311 - a case asserts, and what it does at random it can repeat.

from __future__ import annotations

import random
from collections.abc import Iterable

import msgspec
import pytest

from memorywall.records.entry import PRIORITY_RANK, Entry, Scope
from memorywall.records.tier import Eviction, Tier
from memorywall.storage.port import Store, Transaction
from memorywall_testing.base import (
    AGENT,
    NOW,
    TENANT,
    StoreCase,
    at,
    first_to_evict,
    get,
    make_entry,
    make_shared,
    put,
    replace,
)


async def _victim(store: Store, owner: str = AGENT) -> Entry | None:
    return await store.read(TENANT, lambda to: first_to_evict(to, Tier.EPISODIC, owner))


async def _order(store: Store, owner: str = AGENT, tier: Tier = Tier.EPISODIC) -> list[str]:
    """The ids in the order in which they would be evicted. Evicts them."""

    async def script(transaction: Transaction) -> list[str]:
        order = []
        while victim := await first_to_evict(transaction, tier, owner):
            await transaction.entries.remove(victim)
            order.append(victim.id)
        return order

    return await store.write(TENANT, script)


async def _touch(store: Store, **accesses: str) -> None:
    await store.write(TENANT, lambda to: to.entries.touch(accesses))


def _ids(entries: Iterable[Entry]) -> list[str]:
    return [entry.id for entry in entries]


def _episode(**fields: object) -> Entry:
    return make_entry(tier=Tier.EPISODIC, **fields)


_POLICIES = [policy for policy in Eviction if policy is not Eviction.REFUSE]


class EvictionConformance(StoreCase):
    """`port.Entries.first_to_evict` and `touch`."""

    async def test_eviction_candidate_is_none_when_all_are_pinned(self, store: Store) -> None:
        assert await _victim(store) is None
        await put(store, make_entry(), make_shared(), _episode(owner="grace"))
        assert await _victim(store) is None

    @pytest.mark.parametrize("tier", [Tier.EPISODIC, Tier.SESSION])
    async def test_priority_then_last_access_then_id(self, store: Store, tier: Tier) -> None:
        entries = [
            (make_entry(tier=tier, priority=priority), second)
            for priority in ("high", "low", "normal")
            for second in (3, 1, 2, 1)
        ]
        for entry, second in entries:
            await put(store, entry, now=at(second))
        entries.sort(key=lambda one: (PRIORITY_RANK[one[0].priority], one[1], one[0].id))
        assert await _order(store, tier=tier) == _ids(entry for entry, _ in entries)

    @pytest.mark.parametrize("tier", [Tier.EPISODIC, Tier.SESSION])
    @pytest.mark.parametrize("policy", _POLICIES)
    async def test_order_of_eviction_follows_the_policy(
        self, store: Store, policy: Eviction, tier: Tier
    ) -> None:
        entries = [
            make_entry(tier=tier, created_at=at(place), priority=priority)
            for place, priority in enumerate(("high", "normal", "normal", "normal"))
        ]
        pinned = make_entry(tier=tier, pinned=True)
        hidden = make_entry(tier=tier, listed=False)
        elsewhere = make_entry(tier=tier, namespace="elsewhere")
        await put(store, *entries, pinned, hidden, elsewhere)
        high, a, b, c = entries
        day = 24 * 3600

        async def script(to: Transaction) -> None:
            await to.entries.touch({a.id: at(3 * day), b.id: at(2 * day), c.id: at(day)})
            await to.recall.add_uses({a.id: 1, b.id: 0, c.id: 5})

        await store.write(TENANT, script)
        expected = {
            Eviction.LEAST_RECENTLY_USED: [c, b, a, high],
            Eviction.LEAST_FREQUENTLY_USED: [b, a, c, high],
            Eviction.OLDEST: [a, b, c, high],
            Eviction.UTILITY: [b, a, c, high],
        }[policy]

        async def look(to: Transaction) -> None:
            first = to.entries.first_to_evict
            in_order = await first(tier, AGENT, policy, NOW, 9, namespace="invoices")
            assert in_order == expected
            two = await first(tier, AGENT, policy, NOW, 2, namespace="invoices")
            assert two == expected[:2]
            assert len(await first(tier, AGENT, policy, NOW, 9)) == 5
            assert await first(Tier.WORKING, AGENT, policy, NOW, 9) == []

        await store.read(TENANT, look)

    @pytest.mark.parametrize("tier", [Tier.EPISODIC, Tier.WORKING])
    @pytest.mark.parametrize("policy", _POLICIES)
    async def test_only_entries_of_the_task_are_found(
        self, store: Store, policy: Eviction, tier: Tier
    ) -> None:
        own, second = (make_entry(tier=tier, scope=Scope(task_id="task")) for _ in range(2))
        others = [
            make_entry(tier=tier),
            make_entry(tier=tier, scope=Scope(task_id="other")),
            make_entry(tier=tier, scope=Scope(task_id="task"), owner="grace"),
        ]
        await put(store, *others, own, second)

        async def look(to: Transaction) -> None:
            found = await to.entries.first_to_evict(tier, AGENT, policy, NOW, 9, task_id="task")
            assert found == [own, second]

        await store.read(TENANT, look)

    @pytest.mark.parametrize("tier", [Tier.EPISODIC, Tier.SESSION])
    @pytest.mark.parametrize("policy", _POLICIES)
    async def test_only_entries_about_the_subjects_are_found(
        self, store: Store, policy: Eviction, tier: Tier
    ) -> None:
        nobody = make_entry(tier=tier)
        ana, both, bob = (
            make_entry(tier=tier, subjects=who, edges=tuple(("about", one) for one in who))
            for who in (("ana",), ("ana", "bob"), ("bob",))
        )
        await put(store, nobody, ana, both, bob)

        async def look(to: Transaction) -> None:
            first = to.entries.first_to_evict
            assert await first(tier, AGENT, policy, NOW, 9, about=["ana"]) == [ana, both]
            assert await first(tier, AGENT, policy, NOW, 1, about=["bob", "ana"]) == [ana]
            assert await first(tier, AGENT, policy, NOW, 9, about=["eve"]) == []
            assert len(await first(tier, AGENT, policy, NOW, 9)) == 4

        await store.read(TENANT, look)

    @pytest.mark.parametrize("policy", _POLICIES)
    async def test_entries_of_a_namespace_are_found(self, store: Store, policy: Eviction) -> None:
        first, second = make_shared("policies"), make_shared("policies")
        await put(store, make_shared("other"), make_entry(), first, second)

        async def look(to: Transaction) -> None:
            found = await to.entries.first_to_evict(
                Tier.SEMANTIC, "", policy, NOW, 9, namespace="policies"
            )
            assert found == [first, second]

        await store.read(TENANT, look)

    @pytest.mark.parametrize("tier", [Tier.EPISODIC, Tier.SESSION])
    @pytest.mark.parametrize("policy", _POLICIES)
    async def test_an_expired_entry_is_never_chosen(
        self, store: Store, policy: Eviction, tier: Tier
    ) -> None:
        brief, lasting = make_entry(tier=tier, expires_at=at(5)), make_entry(tier=tier)
        await put(store, brief, lasting)

        async def look(to: Transaction) -> None:
            first = to.entries.first_to_evict
            assert await first(tier, AGENT, policy, at(4), 9) == [brief, lasting]
            assert await first(tier, AGENT, policy, at(5), 9) == [lasting]
            assert await first(tier, AGENT, policy, at(5), 1) == [lasting]

        await store.read(TENANT, look)

    @pytest.mark.parametrize("tier", [Tier.EPISODIC, Tier.SESSION])
    @pytest.mark.parametrize("policy", _POLICIES)
    async def test_entries_of_other_kinds_do_not_hide_those_that_may_go(
        self, store: Store, policy: Eviction, tier: Tier
    ) -> None:
        governed = [make_entry(tier=tier, kind=kind) for kind in ("turn", "turn", "scratch")]
        lesson, free = make_entry(tier=tier, kind="correction"), make_entry(tier=tier)
        await put(store, *governed, lesson, free)

        async def look(to: Transaction) -> None:
            first, kinds = to.entries.first_to_evict, ("turn", "scratch")
            assert await first(tier, AGENT, policy, NOW, 1, except_kinds=kinds) == [lesson]
            assert await first(tier, AGENT, policy, NOW, 9, except_kinds=kinds) == [lesson, free]
            assert len(await first(tier, AGENT, policy, NOW, 9)) == 5

        await store.read(TENANT, look)

    async def test_a_pinned_entry_is_never_chosen(self, store: Store) -> None:
        pinned = _episode(pinned=True, priority="low")
        other = _episode(priority="high")
        await put(store, pinned, now=at(1))
        await put(store, other, now=at(9))
        assert await _order(store) == [other.id]
        assert await _victim(store) is None
        assert await get(store, pinned) == pinned

    async def test_pinning_and_priority_count_from_when_they_change(self, store: Store) -> None:
        first, second = _episode(), _episode()
        await put(store, first, now=at(1))
        await put(store, second, now=at(2))
        pinned = msgspec.structs.replace(first, version=2, pinned=True, updated_at=at(1))
        await replace(store, first, pinned)
        assert await _victim(store) == second
        raised = msgspec.structs.replace(
            pinned, version=3, pinned=False, priority="high", updated_at=at(1)
        )
        await replace(store, pinned, raised)
        assert await _victim(store) == second
        lowered = msgspec.structs.replace(raised, version=4, priority="low", updated_at=at(5))
        await replace(store, raised, lowered)
        assert await _victim(store) == lowered

    async def test_a_replacement_is_an_access(self, store: Store) -> None:
        first, second = _episode(), _episode()
        await put(store, first, now=at(1))
        await put(store, second, now=at(2))
        await replace(store, first, msgspec.structs.replace(first, version=2, updated_at=at(3)))
        assert await _victim(store) == second

    async def test_a_touch_is_an_access(self, store: Store) -> None:
        first, second = _episode(), _episode()
        await put(store, first, now=at(1))
        await put(store, second, now=at(2))
        await _touch(store, **{first.id: at(3)})
        assert await _victim(store) == second
        await _touch(store, **{first.id: at(5), second.id: at(6)})
        assert await _victim(store) == first

    async def test_an_earlier_touch_changes_nothing(self, store: Store) -> None:
        first, second = _episode(), _episode()
        await put(store, first, now=at(5))
        await put(store, second, now=at(4))
        await _touch(store, **{first.id: at(1)})
        assert await _victim(store) == second
        await _touch(store, **{second.id: at(9)})
        await _touch(store, **{second.id: at(2)})
        assert await _victim(store) == first

    async def test_touch_ignores_removed_entries(self, store: Store) -> None:
        first, second = _episode(), _episode()
        foreign = _episode(tenant="globex")
        await put(store, first, second, foreign, now=at(1))
        await _touch(store, mem_gone=at(9), **{foreign.id: at(9)}, **{first.id: at(9)})
        await _touch(store)
        assert await _victim(store) == second

    async def test_touch_does_not_change_the_entry(self, store: Store) -> None:
        entry = _episode()
        await put(store, entry)
        await _touch(store, **{entry.id: at(9)})
        assert await get(store, entry) == entry

    async def test_each_owner_has_an_order_of_its_own(self, store: Store) -> None:
        mine, hers = _episode(), _episode(owner="grace")
        await put(store, hers, now=at(1))
        await put(store, mine, now=at(2))
        assert await _victim(store) == mine
        assert await _victim(store, "grace") == hers

    async def test_many_accesses_in_any_order_leave_the_latest_of_each(self, store: Store) -> None:
        randomness = random.Random(20)
        entries = [_episode(priority=randomness.choice(["low", "high"])) for _ in range(30)]
        await put(store, *entries, now=at(0))
        latest = dict.fromkeys(_ids(entries), 0)
        for _ in range(40):
            accesses = {randomness.choice(entries).id: randomness.randrange(50) for _ in range(5)}
            await _touch(store, **{one: at(second) for one, second in accesses.items()})
            for one, second in accesses.items():
                latest[one] = max(latest[one], second)
        entries.sort(key=lambda one: (PRIORITY_RANK[one.priority], latest[one.id], one.id))
        assert await _order(store) == _ids(entries)
