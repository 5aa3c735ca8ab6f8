"""Several servers on one database: background work is done once, and every log reads the same."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing
from pathlib import Path

import pytest

from memorywall.jobs.flush import flush_accesses
from memorywall.records.event import Event, EventType
from memorywall.records.lease import Lease, LeaseKind
from memorywall.records.tier import Tier
from memorywall.service.administration.tenants import create_tenant
from memorywall.service.requests.services import SharedServices
from memorywall.storage.port import Store
from memorywall_testing.base import (
    NOW,
    TENANT,
    append,
    at,
    log_event,
    make_entry,
    make_event,
    put,
    read_log,
    search,
    usage_of,
    write_each,
)
from memorywall_testing.work import make_lease
from tests.http.checks import MEMORY
from tests.http.test_changes import Frames, next_event
from tests.support.postgres_stores import LIMIT, index_problems, open_store
from tests.support.postgres_wire import Fault, Wire
from tests.support.rounds import expire_leases, sweep
from tests.support.service import RunningService, draft, open_service

pytestmark = pytest.mark.anyio

_SERVERS = 3


@pytest.fixture
async def services(database: str, tmp_path: Path) -> AsyncIterator[list[RunningService]]:
    """Several servers on it, whose clocks agree, with the tenant of the tests."""
    async with AsyncExitStack() as stack:
        services = [
            await stack.enter_async_context(open_service(tmp_path, database_url=database))
            for _ in range(_SERVERS)
        ]
        await create_tenant(services[0].services, TENANT)
        await create_tenant(services[0].services, "globex")
        yield services


async def _last(store: Store, tenant: str) -> int:
    event = await store.read(tenant, lambda to: to.events.latest())
    return 0 if event is None else event.seq


async def _claims(store: Store, tenant: str) -> list[Lease]:
    place = make_lease().parent
    return await store.read(tenant, lambda to: to.leases.list(LeaseKind.CLAIM, place, NOW))


async def _all_at_once(
    services: list[RunningService], job: Callable[[SharedServices], Awaitable[int]], rounds: int = 3
) -> int:
    """What several rounds of a job in all servers, at once, say they have done together."""
    contexts = [service.services for service in services] * rounds
    return sum(await asyncio.gather(*map(job, contexts)))


async def test_sweeps_at_once_expire_everything_once(
    services: list[RunningService], database: str
) -> None:
    store = services[0].services.store
    expiring = [
        make_entry(tenant=tenant, expires_at=at(5), tags=("tag",), value=b"1", tier=tier)
        for tenant in (TENANT, "globex")
        for tier in (Tier.WORKING, Tier.EPISODIC)
        for _ in range(180)
    ]
    staying = [make_entry(value=b"1", tags=("tag",)), make_entry(expires_at=at(60), value=b"1")]
    await put(store, *expiring, *staying)
    assert await _all_at_once(services, sweep) == 0
    for service in services:
        service.clock.advance(5)
    assert await _all_at_once(services, sweep) == len(expiring)
    for tenant in (TENANT, "globex"):
        expired = [
            event for event in await read_log(store, tenant) if event.type == EventType.EXPIRED
        ]
        of_tenant = {entry.id for entry in expiring if entry.tenant == tenant}
        assert Counter(event.entry_id for event in expired) == Counter(of_tenant)
        seqs = [event.seq for event in await read_log(store, tenant)]
        assert seqs == sorted(set(seqs))
    assert {entry.id for entry in await search(store)} == {entry.id for entry in staying}
    usage = await usage_of(store, now=at(5))
    assert (usage.entries, usage.bytes) == (2, 2)
    assert await _all_at_once(services, sweep) == 0
    assert index_problems(database) == []


async def test_concurrent_rounds_end_every_expired_lease_once(
    services: list[RunningService],
) -> None:
    store = services[0].services.store
    leases = [
        make_lease(tenant=tenant, name=f"report {number}", expires_at=at(5 if number % 4 else 60))
        for tenant in (TENANT, "globex")
        for number in range(240)
    ]
    await write_each(store, leases, lambda to, lease: to.leases.acquire(lease, NOW))
    assert await _all_at_once(services, expire_leases) == 0
    for service in services:
        service.clock.advance(6)
    assert await _all_at_once(services, expire_leases) == 360
    for tenant in (TENANT, "globex"):
        left = await _claims(store, tenant)
        assert sorted(lease.name for lease in left) == sorted(
            f"report {number}" for number in range(0, 240, 4)
        )
        assert await _last(store, tenant) == 180
    assert await _all_at_once(services, expire_leases) == 0


async def test_background_work_beside_writers_loses_nothing(
    services: list[RunningService], database: str
) -> None:
    """Sweeps, lapses and folds of all servers while all of them write."""
    stores = [service.services.store for service in services]

    async def write(number: int) -> None:
        for turn in range(30):
            soon = at(turn % 7) if turn % 2 and turn % 7 else None
            await put(stores[number % _SERVERS], make_entry(expires_at=soon, value=b"1"))

    async def do_background_work(service: RunningService) -> int:
        swept = 0
        for _ in range(10):
            service.clock.advance(0.7)
            swept += await sweep(service.services)
            await expire_leases(service.services)
            await flush_accesses(service.services)
        return swept

    writing = [asyncio.ensure_future(write(number)) for number in range(9)]
    swept = sum(await asyncio.gather(*map(do_background_work, services)))
    await asyncio.gather(*writing)
    for service in services:
        service.clock.advance(10)
    swept += await _all_at_once(services, sweep)
    expired = [
        event for event in await read_log(stores[0], TENANT) if event.type == EventType.EXPIRED
    ]
    assert len({event.entry_id for event in expired}) == len(expired) == swept
    kept = await search(stores[0], now=at(60))
    assert len(kept) + len(expired) == 9 * 30
    assert index_problems(database) == []


# Following a log from another server


async def test_a_stream_of_one_server_tells_the_changes_of_another(
    services: list[RunningService],
) -> None:
    one, other = services[:2]
    key = await other.key("grace")
    async with await one.agent("ada") as writer, aclosing(Frames(other, key).read()) as frames:
        async with asyncio.timeout(LIMIT):
            await anext(frames)
        shared = {"memory_type": "shared", "namespace": "shared/global"}
        for number in range(3):
            made = await writer.post(MEMORY, json=draft(f"plan {number}", **shared))
            assert made.status_code == 201
            event = await next_event(frames)
            assert (event["actor"], event["data"]["key"]) == ("ada", f"plan {number}")


async def _follow(store: Store, count: int) -> list[Event]:
    """What one sees of a log who reads on after the last event whenever he is told to look."""
    watch = store.watch(TENANT)
    seen: list[Event] = []
    try:
        while len(seen) < count:
            events = await read_log(store, TENANT, after=seen[-1].seq if seen else 0)
            seen.extend(events)
            if not events:
                await watch.changed(LIMIT)
    finally:
        watch.close()
    return seen


@pytest.mark.parametrize("faults", [False, True], ids=["in peace", "with lost commits"])
async def test_followers_see_every_commit_of_all_servers_in_order(
    database: str, faults: bool
) -> None:
    """A later number never shows before an earlier one, or the follower would have passed it by."""
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    each, writers = 25, 8
    async with (
        Wire.to(database) as wire,
        open_store(wire.url, deadline=60.0) as one,
        open_store(wire.url, deadline=60.0) as other,
    ):
        if faults:
            wire.faults.extend(
                chance.choice([Fault.NONE, Fault.NONE, Fault.CUT_AFTER, Fault.CUT_BEFORE])
                for _ in range(40)
            )

        async def write(number: int) -> list[tuple[int, str]]:
            told = []
            for turn in range(each):
                name = f"{number}/{turn}"
                appended = await append(chance.choice([one, other]), make_event(entry_id=name))
                told.append((appended.seq, name))
                await asyncio.sleep(chance.choice([0, 0, chance.random() * 0.01]))
            return told

        async with asyncio.timeout(3 * LIMIT):
            following = [
                asyncio.ensure_future(_follow(store, each * writers))
                for store in (one, other, other)
            ]
            told = await asyncio.gather(*map(write, range(writers)))
            seen_by_each = await asyncio.gather(*following)
    log = sorted(pair for pairs in told for pair in pairs)
    assert [seq for seq, _ in log] == list(range(1, each * writers + 1)), f"seed {seed}"
    for seen in seen_by_each:
        assert [(event.seq, event.entry_id) for event in seen] == log, f"seed {seed}"


async def test_follower_is_woken_by_a_commit_of_another_server(database: str) -> None:
    async with open_store(database) as one, open_store(database) as other:
        watch = other.watch(TENANT)
        try:
            for number in range(5):
                waiting = asyncio.ensure_future(_changed(other, watch.changed, number))
                await asyncio.sleep(0)
                await one.write(TENANT, lambda to: log_event(to, make_event()))
                async with asyncio.timeout(LIMIT / 2):
                    await waiting
        finally:
            watch.close()


async def _changed(store: Store, changed: Callable[[float], Awaitable[None]], known: int) -> None:
    """Returns when the log is longer than that; waits for as long as the test may never take."""
    while len(await read_log(store, TENANT)) <= known:
        await changed(10 * LIMIT)
