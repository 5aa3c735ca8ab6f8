"""Two stores on one database: one after another writes for a tenant, and what hangs is cut off."""

from __future__ import annotations

import asyncio

import asyncpg
import msgspec
import pytest

from memorywall.storage.port import Store, Transaction
from memorywall.storage.postgres import connection as connections
from memorywall.storage.postgres.connection import begin, make_pool
from memorywall.storage.statements import load
from memorywall_testing.base import (
    NOW,
    TENANT,
    append,
    get,
    log_event,
    make_entry,
    make_event,
    put,
    read_log,
)
from tests.support.postgres_stores import LIMIT, open_store

pytestmark = pytest.mark.anyio


async def test_two_stores_write_for_a_tenant_one_after_another(database: str) -> None:
    """What a script has read nobody changes before it is committed, whatever process he is in."""
    inside, others = 0, 0
    counter = make_entry(value=b"0", size=1)

    async def add_one(transaction: Transaction) -> int:
        nonlocal inside, others
        others += inside
        inside += 1
        try:
            old = await transaction.entries.get(counter.id, NOW)
            assert old is not None
            value = str(int(old.value) + 1).encode()
            await transaction.entries.replace(
                old,
                msgspec.structs.replace(old, value=value, size=len(value), version=old.version + 1),
            )
            # Written now, and seen by no other before the commit.
            assert (await transaction.entries.get(counter.id, NOW)) != old
            return (await log_event(transaction, make_event())).seq
        finally:
            inside -= 1

    async with open_store(database) as one, open_store(database) as other:
        await put(one, counter)
        numbers: list[int] = []

        async def client(store: Store) -> None:
            for _ in range(16):
                numbers.append(await store.write(TENANT, add_one))

        await asyncio.gather(*(client(store) for store in [one, other] * 8))
        counted = await get(one, counter)
        assert counted is not None
        assert (counted.value, counted.version) == (b"256", 257)
        assert others == 0
        assert sorted(numbers) == list(range(1, 257))
        assert [event.seq for event in await read_log(other)] == list(range(1, 257))


async def test_the_tenants_of_two_stores_do_not_wait_for_each_other(database: str) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def waiting(transaction: Transaction) -> None:
        begun.set()
        await go_on.wait()

    async with open_store(database) as one, open_store(database) as other:
        held = asyncio.ensure_future(one.write(TENANT, waiting))
        await begun.wait()
        for store in (one, other):
            async with asyncio.timeout(LIMIT):
                await append(store, make_event(tenant="globex"))
        assert not held.done()
        go_on.set()
        await held


async def test_a_server_that_hangs_within_a_transaction_is_cut_off(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody can tell it from one that was stopped: its hold on the tenant ends by itself."""
    name = "idle_in_transaction_session_timeout"
    set_limit = connections._SETTINGS[name]
    assert set_limit.removesuffix("s").isdigit()
    assert 0 < int(set_limit.removesuffix("s")) <= 30
    monkeypatch.setitem(connections._SETTINGS, name, "700ms")
    pool = await make_pool(database, 1)
    async with open_store(database) as store, pool.use() as hanging:
        await store.write(TENANT, lambda to: log_event(to, make_event(entry_id="first")))
        await hanging.execute(begin(TENANT, "READ COMMITTED"))
        await hanging.fetchrow(load("postgres", "heads")["lock"], TENANT)
        await hanging.execute("UPDATE heads SET seq = 100 WHERE tenant = $1", TENANT)
        async with asyncio.timeout(LIMIT):
            await store.write(TENANT, lambda to: log_event(to, make_event(entry_id="second")))
        ended = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
        with pytest.raises(ended):
            await hanging.execute("COMMIT")
        assert [(event.seq, event.entry_id) for event in await read_log(store)] == [
            (1, "first"),
            (2, "second"),
        ]
    await pool.close()


async def test_a_script_that_hangs_is_run_again_by_its_own_store(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connections._SETTINGS, "idle_in_transaction_session_timeout", "700ms")
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def hanging(transaction: Transaction) -> int:
        event = await log_event(transaction, make_event(entry_id="hung"))
        assert await transaction.events.latest() == event
        begun.set()
        await go_on.wait()
        return event.seq

    async with open_store(database, deadline=60.0) as one, open_store(database) as other:
        hung = asyncio.ensure_future(one.write(TENANT, hanging))
        await begun.wait()
        async with asyncio.timeout(LIMIT):
            await other.write(TENANT, lambda to: log_event(to, make_event(entry_id="other")))
        go_on.set()
        assert await hung == 2
        assert [event.entry_id for event in await read_log(other)] == ["other", "hung"]
