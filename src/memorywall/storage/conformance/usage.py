"""Counts: what an owner uses, what a task holds, from when to when."""

# ruff: noqa: S101 - a case asserts.

from __future__ import annotations

import msgspec

from memorywall.records.entry import Scope
from memorywall.records.tier import Tier
from memorywall.records.usage import Usage
from memorywall.storage.conformance.base import (
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
from memorywall.storage.conformance.names import LOOKALIKES
from memorywall.storage.port import Store


async def _count(store: Store, task: str, tier: Tier = Tier.WORKING) -> int:
    return await store.read(lambda to: to.entries.count_task(TENANT, tier, task, NOW))


async def _tasks(store: Store, owner: str = AGENT, tier: Tier = Tier.WORKING) -> list[str]:
    return await store.read(lambda to: to.entries.tasks(TENANT, tier, owner, NOW))


async def _span(
    store: Store, owner: str = AGENT, tier: Tier = Tier.WORKING
) -> tuple[str | None, str | None]:
    return await store.read(lambda to: to.entries.span(TENANT, tier, owner, NOW))


class UsageConformance(StoreCase):
    """`usage`, `count_task`, `tasks` and `span`."""

    async def test_nothing_is_zero(self, store: Store) -> None:
        assert await usage_of(store) == Usage(entries=0, bytes=0, pinned=0)
        assert await _count(store, "task") == 0
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

    async def test_a_task_is_counted_whoever_owns_its_entries(self, store: Store) -> None:
        scope = Scope(task_id="task", intent_id="other", session_id="other")
        await put(
            store,
            make_entry(scope=scope),
            make_entry(scope=scope, owner="grace"),
            make_entry(scope=scope, tier=Tier.SESSION),
            make_shared(scope=scope),
            make_entry(scope=Scope(task_id="Task")),
            make_entry(scope=Scope(intent_id="task")),
            make_entry(),
        )
        assert await _count(store, "task") == 2
        assert await _count(store, "task", Tier.SESSION) == 1
        assert await _count(store, "task", Tier.SEMANTIC) == 1
        assert await _count(store, "Task") == 1
        assert await _count(store, "other") == 0

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
