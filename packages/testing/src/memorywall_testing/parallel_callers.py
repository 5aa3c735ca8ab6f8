"""Many callers side by side: each has its own answer, and nobody is in another's way."""

# ruff: noqa: S101 - a case asserts.

from __future__ import annotations

import asyncio
from contextlib import suppress

import msgspec
import pytest

from memorywall.records.entry import Entry
from memorywall.records.filter import EntryFilter
from memorywall.records.principal import ApiKey, Permission, PrincipalKind
from memorywall.records.tier import Tier
from memorywall.records.usage import Usage
from memorywall.storage.port import REGISTRY, Store, Transaction
from memorywall_testing.base import (
    AGENT,
    DEADLINE,
    NOW,
    TENANT,
    StoreCase,
    Stores,
    UndoError,
    append,
    at,
    find,
    get,
    log_event,
    make_entry,
    make_event,
    newest_first,
    put,
    read_log,
    replace,
    search,
    undone,
    usage_of,
    visibility,
)

_MANY = 64


class ParallelCallersConformance(StoreCase):
    """`port.Store` with callers that have nothing to do with one another."""

    async def test_tenants_side_by_side_stay_apart(self, store: Store) -> None:
        """Both use the same ids and names, and each looks before, within and after its writes."""

        async def live(tenant: str, number: int) -> None:
            name = f"name-{number}"
            entry = make_entry(
                tenant=tenant, id=f"mem_{number}", key=name, tags=(name,), value=tenant.encode()
            )

            async def script(to: Transaction) -> Entry | None:
                assert await to.entries.get(entry.id, NOW) is None
                assert await to.entries.insert(entry, NOW)
                return await to.entries.get(entry.id, NOW)

            assert await get(store, entry) is None
            assert await store.write(tenant, script) == entry
            assert await get(store, entry) == await find(store, entry) == entry
            assert await search(store, tenant=tenant, tags=(name,)) == [entry]

        tenants = ("acme", "globex", "initech")
        await asyncio.gather(*(live(tenants[n % 3], n // 3) for n in range(3 * _MANY // 2)))
        for tenant in tenants:
            found = await search(store, tenant=tenant)
            assert [entry.value for entry in found] == [tenant.encode()] * (_MANY // 2)

    async def test_acknowledged_write_is_readable(self, store: Store) -> None:
        """However many others' reads and writes are under way at the time."""

        async def live() -> None:
            for _ in range(5):
                entry = make_entry()
                await put(store, entry)
                assert await get(store, entry) == entry
                changed = msgspec.structs.replace(entry, version=2, value=b"2", size=1)
                await replace(store, entry, changed)
                assert await find(store, entry) == changed
                event = await append(store)
                assert (await read_log(store, after=event.seq - 1))[0] == event

        async with asyncio.timeout(DEADLINE):
            await asyncio.gather(*(live() for _ in range(_MANY)))

    async def test_acknowledged_key_is_found(self, store: Store) -> None:
        async def live(number: int) -> None:
            tenant, prefix = f"tenant-{number % 5}", f"key-{number}"
            key = ApiKey(
                prefix=prefix,
                digest=b"digest",
                tenant=tenant,
                principal=AGENT,
                kind=PrincipalKind.AGENT,
                permissions=frozenset({Permission.READ}),
                created_at=NOW,
            )
            seen = await store.generation()
            await store.write(tenant, lambda to: to.identities.add_key(key))
            assert await store.generation() != seen
            assert await store.read(REGISTRY, lambda to: to.identities.find_key(prefix)) == key
            seen = await store.generation()
            assert await store.write(tenant, lambda to: to.identities.revoke_key(prefix, at(1)))
            assert await store.generation() != seen
            found = await store.read(REGISTRY, lambda to: to.identities.find_key(prefix))
            assert found is not None
            assert found.revoked_at == at(1)

        await asyncio.gather(*map(live, range(_MANY // 2)))

    async def test_each_of_many_reads_has_its_own_answer(self, store: Store) -> None:
        entries = [make_entry(tags=(f"tag-{n}",), value=b"x" * n) for n in range(_MANY)]
        await put(store, *entries)

        async def read(number: int) -> list[object]:
            entry = entries[number]

            async def script(to: Transaction) -> list[object]:
                found = [await to.entries.get(entry.id, NOW) for _ in range(number % 4)]
                if number % 5 == 0:
                    raise UndoError
                usage = await to.entries.usage(Tier.WORKING, AGENT, NOW)
                return [*found, usage.entries]

            return await store.read(TENANT, script)

        outcomes = await asyncio.gather(*map(read, range(_MANY)), return_exceptions=True)
        assert undone(outcomes) == [number % 5 == 0 for number in range(_MANY)]
        for number, outcome in enumerate(outcomes):
            if number % 5:
                assert outcome == [entries[number]] * (number % 4) + [_MANY]
        found = await asyncio.gather(*(search(store, tags=entry.tags) for entry in entries))
        assert found == [[entry] for entry in entries]

    async def test_a_reading_script_keeps_nothing_it_does(self, store: Store) -> None:
        async def wrong(to: Transaction) -> None:
            await log_event(to, make_event())
            await to.entries.insert(make_entry(), NOW)

        for _ in range(3):
            # Whether it is refused is the backend's own affair.
            with suppress(Exception):
                await store.read(TENANT, wrong)
        assert await search(store) == []
        assert await read_log(store) == []
        assert (await append(store)).seq == 1

    @pytest.mark.parametrize("reading", [False, True], ids=["writers", "readers"])
    async def test_cancelled_caller_does_not_affect_others(
        self, store: Store, reading: bool
    ) -> None:
        """Every fourth caller is cancelled at one time or another on the way."""
        entries = [make_entry() for _ in range(_MANY)]
        if reading:
            await put(store, *entries)

        async def script_of(to: Transaction, entry: Entry) -> Entry | None:
            if not reading:
                assert await to.entries.insert(entry, NOW)
                await log_event(to, make_event(entry_id=entry.id))
            return await to.entries.get(entry.id, NOW)

        async def call(entry: Entry) -> Entry | None:
            if reading:
                return await store.read(TENANT, lambda to: script_of(to, entry))
            return await store.write(TENANT, lambda to: script_of(to, entry))

        calls = [asyncio.ensure_future(call(entry)) for entry in entries]
        for number in range(0, _MANY, 4):
            await asyncio.sleep(0)
            calls[number].cancel()
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        for number, outcome in enumerate(outcomes):
            gone = number % 4 == 0 and isinstance(outcome, asyncio.CancelledError)
            assert gone or outcome == entries[number]

        async def look(to: Transaction) -> tuple[set[str], list[str]]:
            wanted = EntryFilter(tenant=TENANT, limit=None)
            found, _ = await to.entries.search(wanted, visibility(AGENT), NOW)
            log = await to.events.list(AGENT, 0, 10_000)
            return {entry.id for entry in found}, [event.entry_id for event in log]

        # A write of a cancelled caller is stored completely or not at all.
        kept, told = await store.read(TENANT, look)
        assert {entry.id for number, entry in enumerate(entries) if number % 4} <= kept
        assert sorted(told) == ([] if reading else sorted(kept))
        await append(store)

    async def test_long_and_short_scripts_go_side_by_side(self, store: Store) -> None:
        many = [make_entry(owner="grace") for _ in range(200)]
        few = [make_entry() for _ in range(_MANY)]

        async def fill(to: Transaction) -> None:
            for entry in many:
                assert await to.entries.insert(entry, NOW)

        await asyncio.gather(
            *(put(store, entry) for entry in few[::2]),
            store.write(TENANT, fill, long=True),
            *(put(store, entry) for entry in few[1::2]),
        )
        assert await search(store) == newest_first(few)
        assert await usage_of(store, "grace") == Usage(
            entries=len(many), bytes=sum(entry.size for entry in many)
        )

    async def test_follower_sees_every_commit_of_another_process(self, stores: Stores) -> None:
        """Both write and both follow; nobody sees a place of the log before the one ahead of it."""
        opened = [await stores.open(), await stores.open(beside=True)]
        each, writers = 10, 8

        async def follow(store: Store) -> list[int]:
            watch, seen = store.watch(TENANT), [0]
            while len(seen) <= each * writers:
                seen.extend(event.seq for event in await read_log(store, after=seen[-1]))
                await watch.changed(0.1)
            watch.close()
            return seen[1:]

        async def write(number: int) -> None:
            for _ in range(each):
                await append(opened[number % 2])

        async with asyncio.timeout(DEADLINE):
            followed = await asyncio.gather(
                *map(follow, opened), *map(write, range(writers)), return_exceptions=False
            )
        assert followed[:2] == [list(range(1, each * writers + 1))] * 2
