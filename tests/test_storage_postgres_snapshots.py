"""The readers: many scripts on one snapshot, and what interrupts them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import asyncpg
import pytest

from memorywall.records.entry import Entry
from memorywall.records.errors import UnavailableError
from memorywall.storage.port import REGISTRY, Transaction
from memorywall.storage.postgres.connection import ConnectionPool
from memorywall.storage.postgres.snapshot_readers import SnapshotReaders
from memorywall.storage.postgres.transaction import PostgresTransaction
from memorywall.storage.postgres.transaction_queue import QueuedTransaction
from memorywall_testing.base import (
    NOW,
    TENANT,
    UndoError,
    append,
    get,
    log_event,
    make_entry,
    make_event,
    newest_first,
    put,
    search,
)
from memorywall_testing.work import make_intent, make_task
from tests.support.postgres_stores import LIMIT, end_connections, open_store, states, until
from tests.support.postgres_wire import Wire

pytestmark = pytest.mark.anyio


async def _break(transaction: Transaction) -> None:
    assert isinstance(transaction, PostgresTransaction)
    await transaction.session.rows("SELECT 1 / 0")


async def _look(transaction: Transaction, entry: Entry) -> None:
    """Asks in several ways, one after another, and wants the right answers."""
    assert await transaction.entries.get(entry.id, NOW) == entry
    name = (entry.tier, entry.owner, entry.namespace, entry.key)
    assert await transaction.entries.find(*name) == entry
    assert await transaction.tasks.count("int_1") == 1
    assert await transaction.entries.get("mem_of_nobody", NOW) is None
    event = await transaction.events.latest()
    assert event is not None
    assert event.entry_id == "last"
    assert await transaction.entries.get(entry.id, NOW) == entry


@asynccontextmanager
async def _filled(url: str, count: int, **options: Any) -> AsyncIterator[tuple[Any, list[Entry]]]:
    """A store with so many entries, and what `_look` wants."""
    entries = [make_entry() for _ in range(count)]
    async with open_store(url, **options) as store:
        await put(store, *entries)
        await store.write(TENANT, lambda to: to.intents.insert(make_intent(id="int_1")))
        await store.write(TENANT, lambda to: to.tasks.insert(make_task(intent_id="int_1")))
        await store.write(TENANT, lambda to: log_event(to, make_event(entry_id="last")))
        yield store, entries


async def test_a_script_that_breaks_its_transaction_does_not_harm_its_neighbours(
    database: str,
) -> None:
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    async with _filled(database, 20, connections=4, deadline=60.0) as (store, entries):

        async def script(transaction: Transaction, number: int, kind: str) -> int:
            if kind == "early":
                await _break(transaction)
            await _look(transaction, entries[number % 20])
            if kind == "late":
                await _break(transaction)
            if kind == "refused":
                raise UndoError(number)
            return number

        for share in (0.02, 0.3, 0.9):
            kinds = [
                chance.choice(["early", "late", "refused"]) if chance.random() < share else "well"
                for _ in range(300)
            ]
            outcomes = await asyncio.gather(
                *(
                    store.read(TENANT, lambda to, n=n, kind=kinds[n]: script(to, n, kind))
                    for n in range(300)
                ),
                return_exceptions=True,
            )
            for number, outcome in enumerate(outcomes):
                if kinds[number] == "well":
                    assert outcome == number, f"seed {seed}"
                elif kinds[number] == "refused":
                    assert repr(outcome) == repr(UndoError(number)), f"seed {seed}"
                else:
                    assert isinstance(outcome, asyncpg.DivisionByZeroError), f"seed {seed}"
        await until(lambda: set(states(database)) == {"idle"}, "every connection is idle")


async def test_a_broken_read_of_the_registry_harms_no_other(database: str) -> None:
    async with open_store(database) as store:
        assert await store.write(TENANT, lambda to: to.identities.add_tenant(TENANT, NOW))
        outcomes = await asyncio.gather(
            *(
                store.read(REGISTRY, _break if n == 5 else lambda to: to.identities.tenants())
                for n in range(20)
            ),
            return_exceptions=True,
        )
        assert isinstance(outcomes.pop(5), asyncpg.DivisionByZeroError)
        assert outcomes == [[TENANT]] * 19


async def test_a_read_that_writes_is_refused(database: str) -> None:
    """The snapshot is for reading alone, whatever a script may try."""
    async with open_store(database, deadline=2.0) as store:
        with pytest.raises((asyncpg.PostgresError, UnavailableError)):
            await store.read(TENANT, lambda to: to.tasks.insert(make_task()))
        assert await search(store) == []


@pytest.mark.parametrize("loss", ["by the wire", "by the server"])
@pytest.mark.parametrize("many", [1, 40])
async def test_a_read_that_loses_its_connection_is_run_again(
    wire: Wire, database: str, loss: str, many: int
) -> None:
    runs = 0
    async with _filled(wire.url, 10) as (store, entries):

        async def losing(transaction: Transaction) -> str:
            nonlocal runs
            runs += 1
            await _look(transaction, entries[0])
            if runs == 1:
                assert (wire.cut() if loss == "by the wire" else end_connections(database)) > 0
            await _look(transaction, entries[1])
            return "answered"

        looks = [
            store.read(TENANT, lambda to, n=n: _look(to, entries[n % 10])) for n in range(many - 1)
        ]
        outcomes = await asyncio.gather(*looks, store.read(TENANT, losing))
        assert outcomes == [None] * (many - 1) + ["answered"]
        assert runs >= 2


@pytest.mark.parametrize("loss", ["by the wire", "by the server"])
async def test_work_is_done_right_however_often_connections_are_lost(
    wire: Wire, database: str, loss: str
) -> None:
    """No answer is that of a connection that has lost its transaction, and with it its tenant."""
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    async with _filled(wire.url, 20, connections=4, deadline=60.0) as (store, entries):
        told: list[str] = []

        async def lose() -> int:
            count = 0
            for _ in range(30):
                await asyncio.sleep(chance.random() * 0.1)
                if loss == "by the wire":
                    count += wire.cut()
                else:
                    # In a thread, so that the store is in the midst of things meanwhile.
                    count += await asyncio.to_thread(end_connections, database)
            return count

        async def client(number: int) -> None:
            for turn in range(10_000):
                wanted = entries[(number + turn) % 20]
                if number % 2:
                    await store.read(TENANT, lambda to, wanted=wanted: _look(to, wanted))
                else:
                    name = f"{number}/{turn}"
                    await append(store, make_event(tenant="globex", entry_id=name))
                    told.append(name)
                if losing.done():
                    break

        losing = asyncio.ensure_future(lose())
        outcomes = await asyncio.gather(*map(client, range(20)), return_exceptions=True)
        assert outcomes == [None] * 20, f"seed {seed}"
        assert await losing > 0, f"seed {seed}"
        log = await store.read("globex", lambda to: to.events.list("ada", 0, 100_000))
        assert sorted(event.entry_id for event in log) == sorted(told), f"seed {seed}"
        assert len(told) >= 10


@pytest.mark.parametrize("connections", [1, 2, 10])
async def test_a_thousand_readers_at_once(database: str, connections: int) -> None:
    async with _filled(database, 50, connections=connections, deadline=60.0) as (store, entries):
        async with asyncio.timeout(2 * LIMIT):
            await asyncio.gather(
                *(
                    store.read(TENANT, lambda to, n=n: _look(to, entries[n % 50]))
                    for n in range(1_000)
                )
            )
            found = await asyncio.gather(*(search(store) for _ in range(100)))
        assert found == [newest_first(entries)] * 100
        assert len(states(database)) <= connections


async def test_readers_and_writers_share_one_connection(database: str) -> None:
    """Neither keeps it for as long as it has something to do, for there is always more."""
    async with _filled(database, 5, connections=1, deadline=60.0) as (store, entries):
        done = False

        async def read() -> None:
            while not done:
                await store.read(TENANT, lambda to: _look(to, entries[0]))

        readers = [asyncio.ensure_future(read()) for _ in range(20)]
        try:
            for _ in range(20):
                async with asyncio.timeout(LIMIT):
                    await put(store, make_entry())
                    await put(store, make_entry(tenant="globex"))
                    assert await get(store, entries[0]) == entries[0]
                    other = await store.read(
                        "globex", lambda to: to.entries.tasks(entries[0].tier, "ada", NOW)
                    )
                    assert other == []
        finally:
            done = True
            await asyncio.gather(*readers)


async def test_a_read_that_waits_for_a_lock_ends_by_its_deadline(database: str) -> None:
    """And nothing of it goes on, or is complained of, after that."""
    async with _filled(database, 5, deadline=1.0) as (store, entries):
        owner = await asyncpg.connect(database, server_settings={"search_path": "memorywall"})
        try:
            async with owner.transaction():
                await owner.execute("LOCK TABLE tasks IN ACCESS EXCLUSIVE MODE")
                looks = [store.read(TENANT, lambda to: _look(to, entries[0])) for _ in range(5)]
                looks.append(store.write(TENANT, lambda to: to.tasks.count("int_1")))
                begun = asyncio.get_running_loop().time()
                outcomes = await asyncio.gather(*looks, return_exceptions=True)
                assert asyncio.get_running_loop().time() - begun < 10
                assert {type(outcome) for outcome in outcomes} == {UnavailableError}
        finally:
            await owner.close()
        await store.read(TENANT, lambda to: _look(to, entries[0]))
        await until(lambda: set(states(database)) == {"idle"}, "every connection is idle")


# The last moment of a reader


class _Connection:
    """A connection on which everything succeeds at once."""

    async def execute(self, statement: str, *bindings: Any, **options: Any) -> str:
        return ""

    def is_closed(self) -> bool:
        return False

    def is_in_transaction(self) -> bool:
        return False


class _OneConnection:
    """Stands for the connections."""

    are_scarce = False

    @asynccontextmanager
    async def use(self) -> AsyncIterator[_Connection]:
        yield _Connection()


async def test_a_read_that_comes_as_the_last_reader_leaves_is_not_left_behind() -> None:
    """Whenever it comes: in each of the turns of the event loop around the reader's last."""
    loop = asyncio.get_running_loop()

    async def script(transaction: Transaction) -> str:
        return "answered"

    for turns in range(12):
        readers = SnapshotReaders(cast(ConnectionPool, _OneConnection()), TENANT, 1)
        first, second = (QueuedTransaction(script, loop.time() + 60) for _ in range(2))
        readers.submit(first)

        def later(
            left: int, readers: SnapshotReaders = readers, second: QueuedTransaction = second
        ) -> None:
            if left:
                loop.call_soon(later, left - 1)
            else:
                readers.submit(second)

        later(turns)
        done, _ = await asyncio.wait({first.future, second.future}, timeout=2)
        assert len(done) == 2, f"after {turns} turns"
        await readers.close()
