"""A COMMIT whose answer is lost: what was acknowledged is there once, and nobody is told a lie."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import asyncpg
import pytest

from memorywall.records.errors import UnavailableError
from memorywall.storage.port import Store, Transaction
from memorywall.storage.postgres import connection as connections
from memorywall_testing.base import TENANT, log_event, make_event, read_log
from tests.support.postgres_stores import LIMIT, index_problems, open_store, until
from tests.support.postgres_wire import Fault, Wire

pytestmark = pytest.mark.anyio

_IN_DOUBT = "may or may not"
_DROPPED = [Fault.CUT_BEFORE, Fault.CUT_AFTER]
_SILENT = [Fault.SILENT_BEFORE, Fault.SILENT_AFTER]


async def _write(store: Store, name: str) -> int:
    """Appends an event of this name; the number it has."""

    async def script(transaction: Transaction) -> int:
        return (await log_event(transaction, make_event(entry_id=name))).seq

    return await store.write(TENANT, script)


@pytest.mark.parametrize("fault", _DROPPED, ids=lambda fault: fault.name)
async def test_a_write_is_applied_once_and_acknowledged(wire: Wire, fault: Fault) -> None:
    async with open_store(wire.url) as store:
        assert await _write(store, "first") == 1
        wire.faults.append(fault)
        assert await _write(store, "second") == 2
        assert not wire.faults
        assert await _write(store, "third") == 3
        assert [event.entry_id for event in await read_log(store)] == ["first", "second", "third"]


_OF_THE_DRIVER = [
    asyncpg.InternalClientError("got result for unknown protocol state 3"),
    asyncpg.InternalClientError("cannot switch to state 12; another operation (2) is in progress"),
    asyncpg.ProtocolError("unexpected message"),
    RuntimeError("unable to perform operation; the handler is closed"),
    AttributeError("'NoneType' object has no attribute 'write'"),
    AssertionError(),
]


@pytest.mark.parametrize("error", _OF_THE_DRIVER, ids=repr)
@pytest.mark.parametrize("carried_out", [False, True])
async def test_a_commit_that_ends_with_an_error_of_the_driver_is_in_doubt(
    database: str, error: Exception, carried_out: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that dies without a message makes the driver report errors of its own."""
    honest = connections._Connection.execute
    failures = 1

    async def execute(self: Any, query: str, *args: Any) -> str:
        nonlocal failures
        if query == "COMMIT" and failures:
            failures -= 1
            if carried_out:
                await honest(self, query)
            raise error
        return str(await honest(self, query, *args))

    async with open_store(database) as store:
        assert await _write(store, "first") == 1
        monkeypatch.setattr(connections._Connection, "execute", execute)
        assert await _write(store, "second") == 2
        assert not failures
        assert [event.entry_id for event in await read_log(store)] == ["first", "second"]


@pytest.mark.parametrize("error", _OF_THE_DRIVER, ids=repr)
@pytest.mark.parametrize("writes", [True, False])
async def test_connection_that_fails_in_a_transaction_is_lost(
    database: str, error: Exception, writes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = connections._Connection.fetch
    runs, failures = 0, 0

    async def fetch(self: Any, query: str, *args: Any) -> Any:
        nonlocal failures
        if failures:
            failures -= 1
            self.terminate()
            raise error
        return await honest(self, query, *args)

    async def script(transaction: Transaction) -> int:
        nonlocal runs
        runs += 1
        await transaction.events.latest()
        if writes:
            await log_event(transaction, make_event(entry_id="second"))
        return runs

    async with open_store(database) as store:
        assert await _write(store, "first") == 1
        monkeypatch.setattr(connections._Connection, "fetch", fetch)
        failures = 2
        run = store.write(TENANT, script) if writes else store.read(TENANT, script)
        assert await run == 3
        names = ["first", "second"] if writes else ["first"]
        assert [event.entry_id for event in await read_log(store)] == names


async def test_a_connection_that_cannot_be_given_back_changes_no_outcome(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit has been answered; run again, it would be applied twice."""
    honest = asyncpg.Pool.release

    async def release(self: Any, connection: Any, **options: Any) -> None:
        await honest(self, connection, **options)
        raise asyncpg.InterfaceError("the connection is closed")

    async with open_store(database) as store:
        monkeypatch.setattr(asyncpg.Pool, "release", release)
        assert await _write(store, "first") == 1
        assert [event.entry_id for event in await read_log(store)] == ["first"]


async def test_a_commit_that_never_arrives_is_sent_again_and_again(wire: Wire) -> None:
    async with open_store(wire.url) as store:
        wire.faults.extend([Fault.CUT_BEFORE] * 5 + [Fault.CUT_AFTER])
        assert await _write(store, "first") == 1
        assert not wire.faults
        assert [event.entry_id for event in await read_log(store)] == ["first"]


@pytest.mark.parametrize("fault", _DROPPED, ids=lambda fault: fault.name)
async def test_a_whole_group_is_applied_once_and_acknowledged(wire: Wire, fault: Fault) -> None:
    async with open_store(wire.url) as store:
        assert await _write(store, "first") == 1
        before = wire.commits
        wire.faults.append(fault)
        numbers = await asyncio.gather(*(_write(store, f"write {n}") for n in range(60)))
        assert sorted(numbers) == list(range(2, 62))
        assert wire.commits - before < 10, "they did not share their commits"
        assert not wire.faults
        told = {number: f"write {n}" for n, number in enumerate(numbers)}
        assert {event.seq: event.entry_id for event in (await read_log(store))[1:]} == told


async def test_under_a_load_of_two_stores_nothing_is_lost_and_nothing_is_there_twice(
    database: str, wire: Wire
) -> None:
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    wire.faults.extend(chance.choice([Fault.NONE, Fault.NONE, *_DROPPED]) for _ in range(60))
    async with (
        open_store(wire.url, deadline=60.0) as one,
        open_store(wire.url, deadline=60.0) as other,
    ):

        async def writer(number: int) -> list[tuple[int, str]]:
            store, told = (one, other)[number % 2], []
            # On a slow machine more writes share a commit, so it takes more of them.
            while len(told) < 12 or wire.faults:
                name = f"{number}/{len(told)}"
                told.append((await _write(store, name), name))
                await asyncio.sleep(chance.random() * 0.01)
            return told

        async with asyncio.timeout(2 * LIMIT):
            told = [one for each in await asyncio.gather(*map(writer, range(10))) for one in each]
        log = [(event.seq, event.entry_id) for event in await read_log(one)]
    assert log == sorted(told), f"seed {seed}"
    assert [seq for seq, _ in log] == list(range(1, len(told) + 1)), f"seed {seed}"
    assert index_problems(database) == []


@pytest.mark.parametrize("fault", [*_DROPPED, *_SILENT], ids=lambda fault: fault.name)
async def test_unknown_outcome_is_reported(wire: Wire, fault: Fault) -> None:
    """The database stays away beyond the deadline, and what is asked afterwards is answered."""
    async with open_store(wire.url, deadline=1.0) as store:
        assert await _write(store, "first") == 1
        wire.faults.append(fault)
        wire.away_after_fault = True
        begun = asyncio.get_running_loop().time()
        with pytest.raises(UnavailableError, match=_IN_DOUBT):
            await _write(store, "second")
        assert asyncio.get_running_loop().time() - begun < 10
        wire.come_back()
        carried_out = fault in (Fault.CUT_AFTER, Fault.SILENT_AFTER)
        after = 3 if carried_out else 2
        assert await _write_in_time(store, "third") == after
        names = ["first", "second", "third"] if carried_out else ["first", "third"]
        assert [event.entry_id for event in await read_log(store)] == names


@pytest.mark.parametrize("fault", _SILENT, ids=lambda fault: fault.name)
async def test_silence_ends_with_the_deadline(wire: Wire, fault: Fault) -> None:
    """The connection hangs while others could be made: no caller waits for longer than he must."""
    async with open_store(wire.url, deadline=1.0) as store:
        assert await _write(store, "first") == 1
        wire.faults.append(fault)
        begun = asyncio.get_running_loop().time()
        with pytest.raises(UnavailableError, match=_IN_DOUBT):
            await _write(store, "second")
        assert asyncio.get_running_loop().time() - begun < 10
        third = await _write_in_time(store, "third")
        names = [event.entry_id for event in await read_log(store)]
        assert names in (["first", "second", "third"], ["first", "third"])
        assert third == len(names)


async def test_an_answer_that_is_found_late_is_found(wire: Wire) -> None:
    """The database is away for a while, and comes back before the deadline."""
    async with open_store(wire.url, deadline=20.0) as store:
        assert await _write(store, "first") == 1
        for fault in _DROPPED:
            wire.faults.append(fault)
            wire.away_after_fault = True
            writing = asyncio.ensure_future(_write(store, fault.name))
            await until(lambda: wire.away, "the fault")
            done, _ = await asyncio.wait({writing}, timeout=0.5)
            assert not done
            wire.come_back()
            await writing
        names = [event.entry_id for event in await read_log(store)]
        assert names == ["first", "CUT_BEFORE", "CUT_AFTER"]


async def test_refusal_is_reported_when_the_connection_is_lost_with_the_commit(wire: Wire) -> None:
    """Of a group whose commit is in doubt each gets its own answer."""
    async with open_store(wire.url) as store:
        assert await _write(store, "first") == 1

        async def refused(transaction: Transaction) -> None:
            await log_event(transaction, make_event(entry_id="refused"))
            raise LookupError("said by the script")

        for fault in _DROPPED:
            wire.faults.append(fault)
            outcomes = await asyncio.gather(
                _write(store, f"{fault.name} 1"),
                store.write(TENANT, refused),
                _write(store, f"{fault.name} 2"),
                return_exceptions=True,
            )
            assert isinstance(outcomes[1], LookupError)
            assert sorted(map(str, (outcomes[0], outcomes[2]))) == sorted(
                str(event.seq) for event in (await read_log(store))[-2:]
            )
        assert len(await read_log(store)) == 5


async def _write_in_time(store: Store, name: str) -> int:
    """Writes as one does who is told to try again, for as long as nothing is in doubt."""
    async with asyncio.timeout(LIMIT):
        while True:
            try:
                return await _write(store, name)
            except UnavailableError as error:
                if _IN_DOUBT in str(error):
                    raise
