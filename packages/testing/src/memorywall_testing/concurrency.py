"""Many at once: nothing lost, nothing half seen, no commit missed."""

# ruff: noqa: S101 - a case asserts.

from __future__ import annotations

import asyncio
import threading

import msgspec
import pytest

from memorywall.records.entry import Entry
from memorywall.records.errors import UnavailableError
from memorywall.records.filter import EntryFilter
from memorywall.records.tier import Tier
from memorywall.records.usage import Usage
from memorywall.storage.event_log import Watch
from memorywall.storage.port import Store, Transaction
from memorywall_testing.base import (
    AGENT,
    DEADLINE,
    NOW,
    TENANT,
    StoreCase,
    UndoError,
    append,
    get,
    insert,
    log_event,
    make_entry,
    make_event,
    newest_first,
    put,
    read_log,
    search,
    usage_of,
    visibility,
)


class ConcurrencyConformance(StoreCase):
    """`port.Store` with many callers, and `port.Watch`."""

    async def test_a_failure_undoes_its_own_script_and_no_neighbour(self, store: Store) -> None:
        entries = [make_entry(tags=("tag",), value=b"1") for _ in range(200)]

        async def write(number: int) -> int:
            async def script(transaction: Transaction) -> int:
                assert await transaction.entries.insert(entries[number], NOW)
                event = await log_event(transaction, make_event(entry_id=entries[number].id))
                if number % 3 == 0:
                    raise UndoError(number)
                return event.seq

            return await store.write(TENANT, script)

        outcomes = await asyncio.gather(*map(write, range(200)), return_exceptions=True)
        for number, outcome in enumerate(outcomes):
            if number % 3 == 0:
                assert isinstance(outcome, UndoError)
                assert outcome.args == (number,)
        kept = [entry for number, entry in enumerate(entries) if number % 3]
        assert {entry.id for entry in await search(store)} == {entry.id for entry in kept}
        assert len(await search(store, tags=("tag",))) == len(kept)
        usage = await usage_of(store)
        assert usage == Usage(entries=len(kept), bytes=len(kept))
        log = await read_log(store)
        assert [event.seq for event in log] == list(range(1, len(kept) + 1))
        by_entry = {event.entry_id: event.seq for event in log}
        told = [outcome for number, outcome in enumerate(outcomes) if number % 3]
        assert told == [by_entry[entry.id] for entry in kept]

    async def test_a_failing_statement_undoes_its_own_script_and_no_neighbour(
        self, store: Store
    ) -> None:
        first = make_entry()
        await put(store, first)
        entries = [make_entry() for _ in range(60)]

        async def write(number: int) -> None:
            async def script(transaction: Transaction) -> None:
                assert await transaction.entries.insert(entries[number], NOW)
                if number % 2:
                    # An id that is taken is an error of the store's own, not a taken name.
                    await transaction.entries.insert(make_entry(id=first.id), NOW)

            await store.write(TENANT, script)

        outcomes = await asyncio.gather(*map(write, range(60)), return_exceptions=True)
        assert [outcome is None for outcome in outcomes] == [True, False] * 30
        assert await search(store) == newest_first([first, *entries[::2]])

    async def test_concurrent_inserts_of_a_name_succeed_once(self, store: Store) -> None:
        entries = [make_entry(key="same", tags=(str(n),)) for n in range(64)]
        won = await asyncio.gather(*(insert(store, one) for one in entries))
        assert won.count(True) == 1
        winner = entries[won.index(True)]
        assert await search(store) == [winner]
        assert await search(store, tags_any=tuple(str(n) for n in range(64))) == [winner]

    async def test_read_and_replace_in_one_script_loses_no_change(self, store: Store) -> None:
        entry = make_entry(value=b"", size=0)
        await put(store, entry)

        async def add_one(transaction: Transaction) -> None:
            old = await transaction.entries.get(entry.id, NOW)
            assert old is not None
            new = msgspec.structs.replace(
                old, version=old.version + 1, value=old.value + b"x", size=old.size + 1
            )
            await transaction.entries.replace(old, new)

        await asyncio.gather(*(store.write(TENANT, add_one) for _ in range(64)))
        read = await get(store, entry)
        assert read is not None
        assert (read.version, read.value, read.size) == (65, b"x" * 64, 64)
        usage = await usage_of(store)
        assert usage == Usage(entries=1, bytes=64)

    async def test_every_tenants_log_is_dense_under_many_writers(self, store: Store) -> None:
        tenants = [f"tenant-{number}" for number in range(4)]
        appended = await asyncio.gather(
            *(append(store, make_event(tenant=tenants[n % 4])) for n in range(200))
        )
        for tenant in tenants:
            seqs = sorted(event.seq for event in appended if event.tenant == tenant)
            assert seqs == list(range(1, 51))

    async def test_a_read_sees_one_moment(self, store: Store) -> None:
        """Each write puts one entry in the place of another and tells of it; a read that saw two
        moments would see none or two, or a log that does not fit."""
        current = make_entry()
        done = asyncio.Event()

        async def start(transaction: Transaction) -> None:
            await transaction.entries.insert(current, NOW)
            await log_event(transaction, make_event(entry_id=current.id))

        async def write() -> None:
            nonlocal current
            for _ in range(150):
                old, new = current, make_entry()

                async def script(
                    transaction: Transaction, old: Entry = old, new: Entry = new
                ) -> None:
                    await transaction.entries.remove(old)
                    await transaction.entries.insert(new, NOW)
                    await log_event(transaction, make_event(entry_id=new.id))

                await store.write(TENANT, script)
                current = new
            done.set()

        async def look(transaction: Transaction) -> None:
            first, total = await transaction.entries.search(
                EntryFilter(tenant=TENANT), visibility(AGENT), NOW
            )
            latest = await transaction.events.latest()
            usage = await transaction.entries.usage(Tier.WORKING, AGENT, NOW)
            again, _ = await transaction.entries.search(
                EntryFilter(tenant=TENANT), visibility(AGENT), NOW
            )
            assert (len(first), total, usage.entries) == (1, 1, 1)
            assert first == again
            assert latest is not None
            assert latest.entry_id == first[0].id

        async def read() -> int:
            reads = 0
            while not done.is_set():
                await store.read(TENANT, look)
                reads += 1
                await asyncio.sleep(0)
            return reads

        await store.write(TENANT, start)
        async with asyncio.timeout(DEADLINE):
            reads, _ = await asyncio.gather(read(), write())
        assert reads > 0

    @pytest.mark.parametrize("kind", ["read", "write"])
    async def test_a_long_function_delays_no_other(self, store: Store, kind: str) -> None:
        """The computation of a long function ends only after another function has ended."""
        is_over = threading.Event()

        async def compute(transaction: Transaction) -> bool:
            return await transaction.compute(2**20, lambda: is_over.wait(DEADLINE))

        async def look(transaction: Transaction) -> int:
            return (await transaction.entries.usage(Tier.WORKING, AGENT, NOW)).entries

        run = store.read if kind == "read" else store.write
        long = asyncio.ensure_future(run(TENANT, compute, long=True))
        for _ in range(10):
            await asyncio.sleep(0)
        for tenant in (TENANT, "another"):
            assert await store.read(tenant, look) == 0
        is_over.set()
        assert await long

    async def test_write_is_acknowledged_or_refused_under_overload(self, store: Store) -> None:
        entries = [make_entry() for _ in range(6_000)]
        outcomes = await asyncio.gather(
            *(put(store, entry) for entry in entries), return_exceptions=True
        )
        told = [e for e, outcome in zip(entries, outcomes, strict=True) if outcome is None]
        refused = [outcome for outcome in outcomes if outcome is not None]
        assert all(isinstance(outcome, UnavailableError) for outcome in refused)
        assert told
        found = await search(store)
        assert {entry.id for entry in found} == {entry.id for entry in told}

    async def test_a_watch_wakes_after_a_commit(self, store: Store) -> None:
        watches = [store.watch(TENANT) for _ in range(3)]

        async def follow(watch: Watch) -> int:
            # It may wake for nothing before there is anything, but must wake once there is.
            latest = None
            while latest is None:
                await watch.changed(DEADLINE)
                latest = await store.read(TENANT, lambda to: to.events.latest())
            return latest.seq

        followers = [asyncio.ensure_future(follow(watch)) for watch in watches]
        await asyncio.sleep(0)
        await append(store)
        async with asyncio.timeout(DEADLINE / 2):
            assert await asyncio.gather(*followers) == [1, 1, 1]
        for watch in watches:
            watch.close()

    async def test_a_commit_before_the_call_is_not_missed(self, store: Store) -> None:
        watch = store.watch(TENANT)
        for _ in range(3):
            await append(store)
            async with asyncio.timeout(DEADLINE / 2):
                await watch.changed(DEADLINE)
        watch.close()

    async def test_a_watch_gives_up_after_its_timeout(self, store: Store) -> None:
        watch = store.watch(TENANT)
        async with asyncio.timeout(DEADLINE):
            for timeout in (0.0, 0.01, 0.05):
                await watch.changed(timeout)
        watch.close()
        await append(store)

    @pytest.mark.parametrize("writers", [1, 8])
    async def test_follower_sees_every_commit(self, store: Store, writers: int) -> None:
        """The follower waits far longer than the test may take, so one missed commit stalls it."""
        each = 100
        watch = store.watch(TENANT)
        seen: list[int] = []

        async def follow() -> None:
            while len(seen) < writers * each:
                events = await read_log(store, after=seen[-1] if seen else 0)
                seen.extend(event.seq for event in events)
                if not events:
                    await watch.changed(10 * DEADLINE)

        async def write() -> None:
            for _ in range(each):
                await append(store)

        async with asyncio.timeout(DEADLINE):
            await asyncio.gather(follow(), *(write() for _ in range(writers)))
        assert seen == list(range(1, writers * each + 1))
        watch.close()
