"""Waiting for the database: who is told what by when, and that all goes on afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from memorywall.records.errors import UnavailableError
from memorywall.records.event import Event
from memorywall.service.encryption.keyed_store import KeyedStore
from memorywall.storage.port import REGISTRY, Store, Transaction
from memorywall.storage.postgres.store import PostgresStore
from memorywall_testing.base import AGENT, TENANT, append, log_event, make_event
from tests.http.checks import MEMORY
from tests.support.postgres_stores import LIMIT, open_store, states, until
from tests.support.postgres_wire import Wire
from tests.support.service import draft, open_service

pytestmark = pytest.mark.anyio

_DEADLINE = 1.0
_LATE = 8.0
"""Seconds that a caller never waits whose deadline is a second, however busy the machine is."""


async def _log(store: Store, tenant: str = TENANT) -> list[str]:
    async def script(transaction: Transaction) -> list[Event]:
        return await transaction.events.list(AGENT, 0, 100_000)

    return [event.entry_id for event in await store.read(tenant, script)]


async def _write(store: Store, name: str, tenant: str = TENANT) -> None:
    async def script(transaction: Transaction) -> None:
        await log_event(transaction, make_event(entry_id=name, tenant=tenant))

    await store.write(tenant, script)


class _HeldTransaction:
    """A script that waits within its transaction until it is let go."""

    def __init__(self) -> None:
        self.runs = 0
        self.entered = asyncio.Event()
        self._opened = asyncio.Event()

    def open(self) -> None:
        self._opened.set()

    async def script(self, transaction: Transaction) -> None:
        self.runs += 1
        self.entered.set()
        await self._opened.wait()


@asynccontextmanager
async def _taken(store: Store, connections: int) -> AsyncIterator[_HeldTransaction]:
    """While all connections of a store are taken by scripts that wait."""
    gate = _HeldTransaction()
    held = [
        asyncio.ensure_future(store.write(f"holder {number}", gate.script))
        for number in range(connections)
    ]
    await until(lambda: gate.runs == connections, "all connections are taken")
    try:
        yield gate
    finally:
        gate.open()
        for outcome in await asyncio.gather(*held, return_exceptions=True):
            assert outcome is None or isinstance(outcome, UnavailableError)


@asynccontextmanager
async def _no_connection(store: PostgresStore, connections: int) -> AsyncIterator[None]:
    """While all connections of a store are in use, without a transaction, which the server would
    end after the deadline."""
    async with AsyncExitStack() as stack:
        for _ in range(connections):
            await stack.enter_async_context(store._connections.use())
        yield


async def _refused_in_time(work: Awaitable[object]) -> str:
    begun = asyncio.get_running_loop().time()
    with pytest.raises(UnavailableError) as caught:
        await work
    assert asyncio.get_running_loop().time() - begun < _LATE
    return str(caught.value)


# Deadlines


async def test_every_caller_gets_an_answer_by_the_deadline_when_the_pool_is_exhausted(
    database: str,
) -> None:
    async with open_store(database, connections=2, deadline=_DEADLINE) as store:
        await _write(store, "before")
        async with _no_connection(store, 2):
            told = await asyncio.gather(
                _refused_in_time(_write(store, "lost")),
                _refused_in_time(_log(store)),
                _refused_in_time(store.read(REGISTRY, lambda to: to.identities.tenants())),
                _refused_in_time(_write(store, "lost", "globex")),
            )
            assert all("nothing was stored" in text for text in told)
        await _write(store, "after")
        assert await _log(store) == ["before", "after"]
        assert await _log(store, "globex") == []


async def test_over_http_it_is_503_and_says_when_to_come_again(
    database: str, tmp_path: Path
) -> None:
    async with open_service(
        tmp_path, database_url=database, pool_size=2, query_timeout=_DEADLINE
    ) as service:
        agent = await service.agent("ada")
        assert (await agent.post(MEMORY, json=draft("before"))).status_code == 201
        store = service.services.store
        assert isinstance(store, KeyedStore)
        assert isinstance(store.unkeyed, PostgresStore)
        async with _no_connection(store.unkeyed, 2):
            begun = asyncio.get_running_loop().time()
            replies = await asyncio.gather(
                agent.post(MEMORY, json=draft("lost")), agent.get(MEMORY), agent.get("/ready")
            )
            assert asyncio.get_running_loop().time() - begun < _LATE
            for reply in replies[:2]:
                assert reply.status_code == 503, reply.text
                assert int(reply.headers["retry-after"]) >= 1
                assert reply.headers["content-type"] == "application/problem+json"
            assert replies[2].status_code == 503
        assert (await agent.post(MEMORY, json=draft("after"))).status_code == 201
        page = await agent.get(MEMORY)
        assert page.status_code == 200
        assert {entry["key"] for entry in page.json()["entries"]} == {"before", "after"}


async def test_refused_write_is_not_stored(database: str) -> None:
    """His script waits with a younger one for a connection, which comes between their deadlines."""
    async with open_store(database, connections=1, deadline=_DEADLINE) as store:
        first, other = _HeldTransaction(), _HeldTransaction()
        held = [asyncio.ensure_future(store.write(TENANT, first.script))]
        await first.entered.wait()
        held.append(asyncio.ensure_future(store.write("globex", other.script)))
        elder = asyncio.ensure_future(_write(store, "elder"))
        await asyncio.sleep(_DEADLINE * 0.6)
        younger = asyncio.ensure_future(_write(store, "younger"))
        await asyncio.sleep(0)
        # Both are next now, behind the other tenant, which has the only connection.
        first.open()
        await other.entered.wait()
        told = await _refused_in_time(elder)
        assert not younger.done()
        other.open()
        await asyncio.gather(*held, younger, return_exceptions=True)
        assert ("elder" not in await _log(store)) or "may or may not" in told
        assert "younger" in await _log(store)


async def test_a_script_that_never_ends_ends_by_its_deadline_and_takes_nobody_along(
    database: str,
) -> None:
    async with open_store(database, connections=2, deadline=_DEADLINE) as store:
        never = _HeldTransaction()
        stuck = asyncio.ensure_future(store.write(TENANT, never.script))
        stuck_reader = asyncio.ensure_future(store.read("globex", never.script))
        await until(lambda: never.runs == 2, "both wait")
        assert "may or may not" in await _refused_in_time(stuck)
        await _refused_in_time(stuck_reader)
        await _write(store, "after")
        await _write(store, "after", "globex")
        assert await _log(store) == await _log(store, "globex") == ["after"]
        assert never.runs == 2


async def test_a_long_wait_within_the_deadline_is_waited_for(database: str) -> None:
    async with open_store(database, connections=2, deadline=30.0) as store:
        async with _taken(store, 2) as gate:
            works = [
                asyncio.ensure_future(_write(store, "first")),
                asyncio.ensure_future(_log(store, "globex")),
            ]
            done, _ = await asyncio.wait(works, timeout=0.5)
            assert not done
            gate.open()
            assert await asyncio.gather(*works) == [None, []]
        assert await _log(store) == ["first"]


async def test_every_caller_gets_an_answer_by_the_deadline_when_the_database_is_down(
    database: str,
) -> None:
    async with Wire.to(database) as wire, open_store(wire.url, deadline=_DEADLINE) as store:
        await _write(store, "before")
        wire.go_away()
        for _ in range(2):
            await asyncio.gather(
                *(_refused_in_time(_write(store, f"lost {n}")) for n in range(20)),
                *(_refused_in_time(_log(store)) for _ in range(20)),
                _refused_in_time(store.generation()),
            )
        wire.come_back()
        await _write(store, "after")
        assert await _log(store) == ["before", "after"]


async def test_a_store_can_be_closed_while_the_database_is_away(database: str) -> None:
    async with Wire.to(database) as wire, open_store(wire.url, deadline=_DEADLINE) as store:
        await _write(store, "before")
        watch = store.watch(TENANT)
        wire.go_away()
        await asyncio.gather(
            *(_refused_in_time(_write(store, f"lost {n}")) for n in range(3)),
            *(_refused_in_time(_log(store)) for _ in range(3)),
        )
        async with asyncio.timeout(_LATE):
            await store.close()
        watch.close()


async def test_function_of_a_cancelled_caller_is_not_stored(database: str) -> None:
    """However long the database is away, what was asked meanwhile is forgotten with its answer."""
    async with Wire.to(database) as wire, open_store(wire.url, deadline=0.2) as store:
        await _write(store, "before")
        wire.go_away()
        for _ in range(3):
            outcomes = await asyncio.gather(
                *(_log(store) for _ in range(50)),
                *(_write(store, "lost") for _ in range(50)),
                return_exceptions=True,
            )
            assert {type(outcome) for outcome in outcomes} == {UnavailableError}
        lines = [one._waiting for one in store._readers.values()]
        lines += [one._waiting for one in store._writers.values()]
        await until(lambda: sum(map(len, lines)) < 100, "they are forgotten", 5)
        wire.come_back()
        assert await _log_in_time(store) == ["before"]


async def _log_in_time(store: Store) -> list[str]:
    async with asyncio.timeout(LIMIT):
        while True:
            try:
                return await _log(store)
            except UnavailableError:
                await asyncio.sleep(0.01)


# Callers that go away


@pytest.mark.parametrize("when", ["before it begins", "while it runs"])
async def test_a_caller_that_goes_away_does_not_undo_its_write(database: str, when: str) -> None:
    gate = _HeldTransaction()

    async def script(transaction: Transaction) -> None:
        await log_event(transaction, make_event(entry_id="left"))
        await gate.script(transaction)

    async with open_store(database) as store:
        writing = asyncio.ensure_future(store.write(TENANT, script))
        await asyncio.sleep(0)
        if when == "while it runs":
            await gate.entered.wait()
        writing.cancel()
        assert isinstance(
            (await asyncio.gather(writing, return_exceptions=True))[0], asyncio.CancelledError
        )
        gate.open()
        await _write(store, "next")
        assert await _log(store) == ["left", "next"]


async def test_callers_that_go_away_leave_the_others_their_answers(database: str) -> None:
    async with open_store(database, connections=3) as store:
        works = [
            asyncio.ensure_future(_write(store, f"write {number}") if number % 2 else _log(store))
            for number in range(200)
        ]
        for number, work in enumerate(works):
            if number % 3 == 0:
                await asyncio.sleep(0)
                work.cancel()
        outcomes = await asyncio.gather(*works, return_exceptions=True)
        for number, outcome in enumerate(outcomes):
            if number % 3:
                assert not isinstance(outcome, BaseException), outcome
        written = {f"write {number}" for number in range(1, 200, 2)}
        told = {name for name in written if int(name.split()[1]) % 3}
        await _write(store, "last")
        log = await _log(store)
        assert len(set(log)) == len(log)
        assert told | {"last"} <= set(log) <= written | {"last"}
        await until(lambda: set(states(database)) == {"idle"}, "every connection is idle")


async def test_the_failure_of_a_write_whose_caller_is_gone_is_no_complaint(database: str) -> None:
    gate = _HeldTransaction()

    async def script(transaction: Transaction) -> None:
        await gate.script(transaction)
        raise LookupError("said to nobody")

    async with open_store(database) as store:
        for work in (store.write(TENANT, script), store.read(TENANT, script)):
            asked = asyncio.ensure_future(work)
            await gate.entered.wait()
            gate.entered.clear()
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)
        gate.open()
        await _write(store, "next")
        assert await _log(store) == ["next"]


# Too many, and the end


async def test_too_many_are_refused_at_once(database: str) -> None:
    async with open_store(database, connections=2, deadline=60.0) as store:
        waiting: list[asyncio.Task[None]] = []
        async with _taken(store, 2) as gate:
            for number in range(20_000):
                waiting.append(asyncio.create_task(_write(store, f"write {number}")))
                await asyncio.sleep(0)
                if waiting[-1].done():
                    break
            refused = waiting.pop()
            assert refused.done(), "nobody was refused"
            assert isinstance(refused.exception(), UnavailableError)
            assert len(waiting) > 500
            with pytest.raises(UnavailableError, match="too many"):
                await _log(store)
            gate.open()
            async with asyncio.timeout(2 * LIMIT):
                await asyncio.gather(*waiting)
        await _write(store, "last")
        assert await _log(store) == [*(f"write {n}" for n in range(len(waiting))), "last"]


async def test_close_completes_queued_work_and_refuses_new_work(database: str) -> None:
    gate = _HeldTransaction()
    async with open_store(database, connections=2) as store:
        first = asyncio.ensure_future(store.write("t0", gate.script))
        writes = [asyncio.ensure_future(_write(store, f"{n}", f"t{n % 2}")) for n in range(300)]
        reads = [asyncio.ensure_future(_log(store, f"t{n % 2}")) for n in range(300)]
        await asyncio.sleep(0)
        closing = asyncio.ensure_future(store.close())
        await asyncio.sleep(0)
        for late in (_write(store, "late", "t0"), _log(store, "t0")):
            with pytest.raises(UnavailableError):
                await late
        async with asyncio.timeout(LIMIT):
            await asyncio.gather(*reads)
            assert not closing.done()
            gate.open()
            await asyncio.gather(closing, first, *writes)
        await until(lambda: states(database) == [], "its connections are closed")
        await store.close()
    async with open_store(database) as again:
        for number in range(2):
            assert list(map(int, await _log(again, f"t{number}"))) == list(range(number, 300, 2))


async def test_closing_waits_for_a_script_no_longer_than_its_deadline(database: str) -> None:
    async with open_store(database, deadline=_DEADLINE) as store:
        never = _HeldTransaction()
        stuck = asyncio.ensure_future(store.write(TENANT, never.script))
        await never.entered.wait()
        async with asyncio.timeout(_LATE):
            await store.close()
        with pytest.raises(UnavailableError):
            await stuck


async def test_many_tenants_share_a_few_connections(database: str) -> None:
    async with open_store(database, connections=2) as store:
        tenants = [f"tenant {number}" for number in range(40)]
        async with asyncio.timeout(2 * LIMIT):
            await asyncio.gather(
                *(append(store, make_event(tenant=one)) for one in tenants for _ in range(5)),
                *(_log(store, one) for one in tenants for _ in range(5)),
            )
        for one in tenants:
            assert len(await _log(store, one)) == 5
        assert len(states(database)) <= 2
