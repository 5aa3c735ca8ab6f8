"""Counts: what an owner uses, what a task holds, from when to when."""

# ruff: noqa: S101 - a case asserts.

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from memorywall.records.entry import Entry, Scope
from memorywall.records.tier import Tier
from memorywall.records.usage import AgentLimits, Usage
from memorywall.storage.port import REGISTRY, Store, Transaction
from memorywall_testing.base import (
    AGENT,
    NOW,
    TENANT,
    StoreCase,
    at,
    make_entry,
    make_shared,
    put,
    remove,
    replace,
    usage_of,
)
from memorywall_testing.names import LOOKALIKES


async def _in_task(store: Store, task: str, tier: Tier = Tier.WORKING, now: str = NOW) -> Usage:
    return await store.read(TENANT, lambda to: to.entries.task_usage(tier, task, now))


async def _of_task(store: Store, task: str, tier: Tier | None = Tier.WORKING) -> list[Entry]:
    return await store.read(TENANT, lambda to: to.entries.of_task(tier, task))


async def _in_tenant(store: Store, now: str = NOW) -> Usage:
    return await store.read(TENANT, lambda to: to.entries.tenant_usage(now))


async def _in_namespace(store: Store, name: str, tier: Tier = Tier.SHARED, now: str = NOW) -> Usage:
    return await store.read(TENANT, lambda to: to.entries.namespace_usage(tier, name, now))


async def _tasks(store: Store, owner: str = AGENT, tier: Tier = Tier.WORKING) -> list[str]:
    return await store.read(TENANT, lambda to: to.entries.tasks(tier, owner, NOW))


async def _span(
    store: Store, owner: str = AGENT, tier: Tier = Tier.WORKING
) -> tuple[str | None, str | None]:
    return await store.read(TENANT, lambda to: to.entries.span(tier, owner, NOW))


class UsageConformance(StoreCase):
    """Returns the usage of a task, and the ids in its list."""

    async def test_nothing_is_zero(self, store: Store) -> None:
        assert await usage_of(store) == Usage(entries=0, bytes=0, pinned=0)
        assert await _in_task(store, "task") == Usage()
        assert await _of_task(store, "task") == []
        assert await _in_namespace(store, "shared/global") == Usage()
        assert await _tasks(store) == []
        assert await _span(store) == (None, None)

    async def test_usage_is_kept_for_each_owner_in_each_tier(self, store: Store) -> None:
        await put(
            store,
            make_entry(value=b"123", pinned=True),
            make_entry(value=b"12345"),
            make_entry(value=b"1", tier=Tier.EPISODIC, pinned=True),
            make_entry(value=b"1234567", owner="grace"),
            make_shared(value=b"12", agent_id=AGENT),
        )
        assert await usage_of(store) == Usage(entries=2, bytes=8, pinned=1)
        assert await usage_of(store, tier=Tier.EPISODIC) == Usage(entries=1, bytes=1, pinned=1)
        assert await usage_of(store, tier=Tier.SESSION) == Usage()
        assert await usage_of(store, "grace") == Usage(entries=1, bytes=7)
        assert await usage_of(store, "Ada") == Usage()
        assert await usage_of(store, tier=Tier.SEMANTIC) == Usage()
        assert await usage_of(store, "", Tier.SEMANTIC) == Usage(entries=1, bytes=2)

    async def test_the_usage_of_a_tenant_is_the_sum_of_its_owners_by_tier(
        self, store: Store
    ) -> None:
        assert await store.read(TENANT, lambda to: to.entries.usage_by_tier()) == {}
        gone = make_entry(value=b"x", tier=Tier.SESSION)
        await put(
            store,
            gone,
            make_entry(value=b"123", pinned=True),
            make_entry(value=b"12345", owner="grace", expires_at=at(1)),
            make_shared(value=b"12", agent_id=AGENT),
        )
        await remove(store, gone)
        assert await store.read(TENANT, lambda to: to.entries.usage_by_tier()) == {
            Tier.WORKING: Usage(entries=2, bytes=8, pinned=1),
            Tier.SEMANTIC: Usage(entries=1, bytes=2),
        }

    async def test_the_fullest_owners_and_those_with_a_capacity_are_found(
        self, store: Store
    ) -> None:
        entries = [
            make_entry(tier=tier, owner=owner)
            for owner, tier, count in (
                ("ada", Tier.EPISODIC, 3),
                ("bob", Tier.EPISODIC, 2),
                ("eve", Tier.EPISODIC, 1),
                ("eve", Tier.WORKING, 5),
                ("zoe", Tier.EPISODIC, 3),
            )
            for _ in range(count)
        ]
        shared = [make_shared(agent_id=AGENT) for _ in range(4)]
        foreign = make_entry(tier=Tier.EPISODIC, owner="ada", tenant="globex")
        await put(store, *entries, *shared, foreign)
        limits = AgentLimits(episodic_capacity=9)
        await store.write(TENANT, lambda to: to.identities.set_limits("eve", limits))

        async def fullest(least: int, limit: int = 9) -> list[tuple[str, int]]:
            return await store.read(
                TENANT, lambda to: to.entries.fullest_owners(Tier.EPISODIC, least, limit)
            )

        assert await fullest(3) == [("ada", 3), ("zoe", 3), ("eve", 1)]
        assert await fullest(2, 3) == [("ada", 3), ("zoe", 3), ("bob", 2)]

    async def test_a_check_of_room_leaves_nothing(self, store: Store) -> None:
        """A store whose disk is full is a test of its own."""
        for _ in range(2):
            await store.check_room()
        assert (await store.read(REGISTRY, lambda to: to.identities.tenants())) == []

    async def test_a_store_describes_itself(self, store: Store) -> None:
        described = await store.describe()
        assert described.engine
        assert described.version[0].isdigit()
        assert described.schema > 0

    async def test_bytes_are_the_size_told_not_what_the_sealed_value_takes(
        self, store: Store
    ) -> None:
        await put(store, make_entry(value=b"x" * 40, size=12, sealing_key="dek_1"))
        assert await usage_of(store) == Usage(entries=1, bytes=12)

    async def test_usage_follows_every_change(self, store: Store) -> None:
        entry = make_entry(value=b"123")
        other = make_entry(value=b"1")
        await put(store, entry, other)
        pinned = msgspec.structs.replace(entry, version=2, pinned=True)
        await replace(store, entry, pinned)
        assert await usage_of(store) == Usage(entries=2, bytes=4, pinned=1)
        larger = msgspec.structs.replace(pinned, version=3, value=b"123456789", size=9)
        await replace(store, pinned, larger)
        assert await usage_of(store) == Usage(entries=2, bytes=10, pinned=1)
        smaller = msgspec.structs.replace(larger, version=4, value=b"", size=0, pinned=False)
        await replace(store, larger, smaller)
        assert await usage_of(store) == Usage(entries=2, bytes=1, pinned=0)
        await remove(store, other, smaller)
        assert await usage_of(store) == Usage()
        await put(store, make_entry(value=b"12"))
        assert await usage_of(store) == Usage(entries=1, bytes=2)

    async def test_tenant_usage_counts_every_owner_and_tier(self, store: Store) -> None:
        assert await _in_tenant(store) == Usage()
        entry = make_entry(value=b"123", pinned=True)
        await put(
            store,
            entry,
            make_entry(value=b"12345", owner="grace", tier=Tier.EPISODIC),
            make_shared(value=b"12", agent_id=AGENT),
            make_entry(value=b"1234", expires_at=at(10)),
        )
        assert await _in_tenant(store) == Usage(entries=4, bytes=14)
        assert await _in_tenant(store, now=at(10)) == Usage(entries=3, bytes=10)
        larger = msgspec.structs.replace(entry, version=2, value=b"1234567", size=7)
        await replace(store, entry, larger)
        assert await _in_tenant(store) == Usage(entries=4, bytes=18)
        await remove(store, larger)
        assert await _in_tenant(store) == Usage(entries=3, bytes=11)
        other = make_entry(tenant="other", value=b"1")
        await store.write("other", lambda to: to.entries.insert(other, NOW))
        assert await _in_tenant(store) == Usage(entries=3, bytes=11)

    async def test_tenant_usage_follows_writes_of_its_own_transaction(self, store: Store) -> None:
        entry, expiring = make_entry(value=b"123"), make_entry(value=b"12", expires_at=at(10))

        async def script(transaction: Transaction) -> list[Usage]:
            entries = transaction.entries
            seen = [await entries.tenant_usage(NOW)]
            for one in (entry, expiring):
                await entries.insert(one, NOW)
                seen.append(await entries.tenant_usage(NOW))
            larger = msgspec.structs.replace(entry, version=2, value=b"1234567", size=7)
            await entries.replace(entry, larger)
            seen.append(await entries.tenant_usage(NOW))
            await entries.remove(expiring)
            return [*seen, await entries.tenant_usage(NOW)]

        assert await store.write(TENANT, script) == [
            Usage(),
            Usage(entries=1, bytes=3),
            Usage(entries=2, bytes=5),
            Usage(entries=2, bytes=9),
            Usage(entries=1, bytes=7),
        ]

    async def test_task_usage_counts_entries_of_all_owners(self, store: Store) -> None:
        scope = Scope(task_id="task", intent_id="other", session_id="other")
        mine = make_entry(scope=scope, value=b"123", pinned=True)
        hers = make_entry(scope=scope, owner="grace", value=b"12345")
        session = make_entry(scope=scope, tier=Tier.SESSION, value=b"1")
        shared = make_shared(scope=scope, value=b"12")
        lookalike = make_entry(scope=Scope(task_id="Task"), value=b"")
        # Put in this order so that neither the order of insertion nor the owner's is that of ids.
        await put(store, hers, lookalike, session, mine, shared)
        await put(store, make_entry(scope=Scope(intent_id="task")), make_entry())
        assert await _in_task(store, "task") == Usage(entries=2, bytes=8)
        assert await _in_task(store, "task", Tier.SESSION) == Usage(entries=1, bytes=1)
        assert await _in_task(store, "task", Tier.SEMANTIC) == Usage(entries=1, bytes=2)
        assert await _in_task(store, "Task") == Usage(entries=1)
        assert await _in_task(store, "other") == Usage()
        assert await _of_task(store, "task") == [mine, hers]
        assert await _of_task(store, "task", Tier.SESSION) == [session]
        assert await _of_task(store, "task", Tier.SEMANTIC) == [shared]
        assert await _of_task(store, "Task") == [lookalike]
        assert await _of_task(store, "other") == []
        assert await _of_task(store, "task", None) == [mine, hers, session, shared]
        assert await _of_task(store, "Task", None) == [lookalike]
        assert await _of_task(store, "other", None) == []

    async def test_a_task_is_listed_with_what_has_expired_and_counted_without(
        self, store: Store
    ) -> None:
        scope = Scope(task_id="task")
        passing = make_entry(scope=scope, value=b"12345", expires_at=at(10))
        lasting = make_entry(scope=scope, value=b"123")
        await put(store, passing, lasting)
        assert await _in_task(store, "task", now=at(9.999)) == Usage(entries=2, bytes=8)
        assert await _in_task(store, "task", now=at(10)) == Usage(entries=1, bytes=3)
        assert await _of_task(store, "task") == [passing, lasting]
        assert await _of_task(store, "task", None) == [passing, lasting]

    async def test_what_a_task_takes_follows_every_change(self, store: Store) -> None:
        entry = make_entry(scope=Scope(task_id="task"), value=b"123")
        await put(store, entry)
        larger = msgspec.structs.replace(entry, version=2, value=b"12345", size=5)
        await replace(store, entry, larger)
        assert await _in_task(store, "task") == Usage(entries=1, bytes=5)
        moved = msgspec.structs.replace(larger, version=3, scope=Scope(task_id="next"))
        await replace(store, larger, moved)
        assert await _in_task(store, "task") == Usage()
        assert await _in_task(store, "next") == Usage(entries=1, bytes=5)
        assert await _of_task(store, "task") == []
        await remove(store, moved)
        assert await _in_task(store, "next") == Usage()
        assert await _of_task(store, "next") == []

    @pytest.mark.parametrize("tier", [Tier.SHARED, Tier.SEMANTIC])
    async def test_a_namespace_is_counted_within_its_own_isolation_only(
        self, store: Store, tier: Tier
    ) -> None:
        other = Tier.SEMANTIC if tier is Tier.SHARED else Tier.SHARED
        place: dict[str, Any] = {"tier": tier, "owner": "", "namespace": "shared/global"}
        entries = [
            make_entry(**place, value=b"123", pinned=True, agent_id="ada"),
            make_entry(**place, value=b"12345", agent_id="grace"),
            make_entry(**place, value=b"1", expires_at=at(10)),
        ]
        await put(
            store,
            *entries,
            make_entry(**{**place, "tier": other}, value=b"1234567"),
            make_entry(**{**place, "namespace": "shared/global/more"}),
            make_entry(namespace="shared/global"),
        )
        assert await _in_namespace(store, "shared/global", tier) == Usage(entries=3, bytes=9)
        assert await _in_namespace(store, "shared/global", tier, at(10)) == Usage(
            entries=2, bytes=8
        )
        assert await _in_namespace(store, "shared/global", other) == Usage(entries=1, bytes=7)
        assert await _in_namespace(store, "Shared/global", tier) == Usage()
        assert await _in_namespace(store, "shared", tier) == Usage()
        larger = msgspec.structs.replace(entries[0], version=2, value=b"1234", size=4)
        await replace(store, entries[0], larger)
        await remove(store, entries[1])
        assert await _in_namespace(store, "shared/global", tier) == Usage(entries=2, bytes=5)

    @pytest.mark.parametrize("tier", [Tier.SHARED, Tier.PROCEDURAL])
    async def test_namespaces_are_counted_by_code_point(self, store: Store, tier: Tier) -> None:
        for size, name in enumerate(LOOKALIKES):
            await put(store, make_entry(tier=tier, owner="", namespace=name, value=b"x" * size))
        for size, name in enumerate(LOOKALIKES):
            assert await _in_namespace(store, name, tier) == Usage(entries=1, bytes=size)

    async def test_tasks_are_listed_once_each_by_code_point(self, store: Store) -> None:
        names = sorted(LOOKALIKES, key=lambda name: [*map(ord, name)])
        for name in LOOKALIKES:
            await put(store, make_entry(scope=Scope(task_id=name)))
        await put(
            store,
            make_entry(scope=Scope(task_id=names[0])),
            make_entry(scope=Scope(task_id="hers"), owner="grace"),
            make_entry(scope=Scope(task_id="session"), tier=Tier.SESSION),
            make_entry(scope=Scope(intent_id="intent")),
        )
        assert await _tasks(store) == names
        assert await _tasks(store, "grace") == ["hers"]
        assert await _tasks(store, tier=Tier.SESSION) == ["session"]

    async def test_the_span_is_from_the_oldest_to_the_newest(self, store: Store) -> None:
        entries = [make_entry(created_at=at(second)) for second in (1, 2, 3)]
        await put(
            store,
            make_entry(created_at=at(0), owner="grace"),
            *entries,
            make_entry(created_at=at(9), tier=Tier.SESSION),
        )
        assert await _span(store) == (at(1), at(3))
        assert await _span(store, tier=Tier.SESSION) == (at(9), at(9))
        changed = msgspec.structs.replace(entries[0], version=2, updated_at=at(20))
        await replace(store, entries[0], changed)
        assert await _span(store) == (at(1), at(3))
        await remove(store, entries[2])
        assert await _span(store) == (at(1), at(2))
        await remove(store, changed)
        assert await _span(store) == (at(2), at(2))
