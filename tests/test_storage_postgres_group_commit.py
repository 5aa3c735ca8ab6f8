"""The line of writers: what scripts of one transaction owe each other, and what interrupts them."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import asyncpg
import msgspec
import pytest

from memorywall.records.errors import UnavailableError
from memorywall.records.usage import Usage
from memorywall.storage.port import Store, Transaction, TransactionFunction
from memorywall.storage.postgres import connection as connections
from memorywall.storage.postgres.transaction import PostgresTransaction
from memorywall_testing.base import (
    AGENT,
    NOW,
    TENANT,
    UndoError,
    get,
    log_event,
    make_entry,
    make_event,
    newest_first,
    put,
    read_log,
    search,
    usage_of,
)
from memorywall_testing.work import make_intent, make_lease, make_task
from tests.http.checks import MEMORY
from tests.support.backend import choose, give_back, is_on_file
from tests.support.postgres_stores import (
    end_connections,
    index_problems,
    open_store,
    states,
    until,
)
from tests.support.postgres_wire import Wire
from tests.support.service import draft, open_service

pytestmark = pytest.mark.anyio

_MOST_REPETITIONS = 8
_RAISE = "DO $$ BEGIN RAISE EXCEPTION 'in the way' USING ERRCODE = '{}'; END $$"


def _postgres(transaction: Transaction) -> PostgresTransaction:
    assert isinstance(transaction, PostgresTransaction)
    return transaction


# Notes against what is stored


@pytest.mark.parametrize("stores", [1, 2])
async def test_concurrent_creates_of_a_taken_name_are_refused(database: str, stores: int) -> None:
    """Half of the names are stored, and a quarter is asked for twice."""
    stored = [make_entry(key=f"key {n}", tags=("old",), value=b"1") for n in range(0, 64, 2)]
    fresh = [make_entry(key=f"key {n}", tags=("new",), value=b"1") for n in range(64)]
    again = [make_entry(key=f"key {n}", tags=("new",), value=b"1") for n in range(1, 64, 4)]
    async with open_store(database) as one, open_store(database) as other:
        await put(one, *stored)

        async def create(number: int, store: Store) -> int:
            entry = [*fresh, *again][number]

            async def script(transaction: Transaction) -> int:
                if not await transaction.entries.insert(entry, NOW):
                    raise UndoError(entry.key)
                return (await log_event(transaction, make_event(entry_id=entry.id))).seq

            return await store.write(TENANT, script)

        outcomes = await asyncio.gather(
            *(create(n, (one, other)[n % stores]) for n in range(len(fresh) + len(again))),
            return_exceptions=True,
        )
        created = {
            entry.id: outcome
            for entry, outcome in zip([*fresh, *again], outcomes, strict=True)
            if not isinstance(outcome, BaseException)
        }
        for entry, outcome in zip([*fresh, *again], outcomes, strict=True):
            if isinstance(outcome, BaseException):
                assert isinstance(outcome, UndoError), outcome
                assert outcome.args == (entry.key,)
        new = [entry for entry in [*fresh, *again] if entry.id in created]
        assert sorted(entry.key for entry in new) == sorted(f"key {n}" for n in range(1, 64, 2))
        assert await search(other) == newest_first([*stored, *new])
        assert await search(other, tags=("new",)) == newest_first(new)
        assert {event.entry_id: event.seq for event in await read_log(other)} == created
        assert sorted(created.values()) == list(range(1, 33))
        assert await usage_of(other) == Usage(entries=64, bytes=64)
    assert index_problems(database) == []


async def test_a_create_that_replaces_what_it_finds_in_the_way_gets_it(database: str) -> None:
    """It learns of the entry in its way only when its note does not fit."""
    stored = [make_entry(key=f"key {n}", value=b"old") for n in range(20)]
    async with open_store(database) as store:
        await put(store, *stored)

        async def put_down(number: int) -> str:
            entry = make_entry(key=f"key {number}", value=b"new!")

            async def script(transaction: Transaction) -> str:
                if await transaction.entries.insert(entry, NOW):
                    return entry.id
                old = await transaction.entries.find(entry.tier, AGENT, entry.namespace, entry.key)
                assert old is not None
                new = msgspec.structs.replace(
                    old, value=entry.value, size=entry.size, version=old.version + 1
                )
                await transaction.entries.replace(old, new)
                return old.id

            return await store.write(TENANT, script)

        ids = await asyncio.gather(*(put_down(number) for number in range(40)))
        assert ids[:20] == [entry.id for entry in stored]
        found = await search(store)
        assert {entry.id for entry in found} == set(ids)
        assert {entry.value for entry in found} == {b"new!"}
        assert await usage_of(store) == Usage(entries=40, bytes=160)
    assert index_problems(database) == []


# Refusals


async def _does_well(transaction: Transaction, name: str) -> None:
    assert await transaction.entries.insert(make_entry(key=name, value=b"1"), NOW)
    await log_event(transaction, make_event(entry_id=name))


async def _is_refused_before_anything(transaction: Transaction, name: str) -> None:
    raise UndoError(name)


async def _is_refused_after_notes(transaction: Transaction, name: str) -> None:
    await _does_well(transaction, name)
    raise UndoError(name)


async def _is_refused_after_writing(transaction: Transaction, name: str) -> None:
    await _does_well(transaction, name)
    assert await transaction.leases.acquire(make_lease(name=name), NOW)
    raise UndoError(name)


async def _is_refused_after_its_notes_were_written(transaction: Transaction, name: str) -> None:
    await _does_well(transaction, name)
    assert (await transaction.events.latest()) is not None
    raise UndoError(name)


async def _breaks_the_transaction(transaction: Transaction, name: str) -> None:
    await _does_well(transaction, name)
    await transaction.tasks.insert(make_task(id="taken"))


async def _notes_what_breaks_it(transaction: Transaction, name: str) -> None:
    await _does_well(transaction, name)
    await transaction.entries.insert(make_entry(id="mem_taken", key=f"{name} again"), NOW)


_Kind = Callable[[Transaction, str], Awaitable[None]]
_KINDS: list[_Kind] = [
    _does_well,
    _is_refused_before_anything,
    _is_refused_after_notes,
    _is_refused_after_writing,
    _is_refused_after_its_notes_were_written,
    _breaks_the_transaction,
    _notes_what_breaks_it,
]


@pytest.mark.parametrize(
    "kind", [*_KINDS[1:], None], ids=lambda kind: getattr(kind, "__name__", "any")
)
async def test_a_refused_script_undoes_itself_and_no_neighbour(
    database: str, kind: _Kind | None
) -> None:
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    kinds = [
        _does_well if chance.random() < 0.5 else kind or chance.choice(_KINDS[1:])
        for _ in range(100)
    ]
    async with open_store(database) as store:
        await put(store, make_entry(id="mem_taken", key="stored", value=b"1"))
        intent = make_intent()
        await store.write(TENANT, lambda to: to.intents.insert(intent))
        task = make_task(id="taken", intent_id=intent.id)
        await store.write(TENANT, lambda to: to.tasks.insert(task))
        outcomes = await asyncio.gather(
            *(
                store.write(TENANT, _script(kind_of_one, str(number)))
                for number, kind_of_one in enumerate(kinds)
            ),
            return_exceptions=True,
        )
        well = [str(number) for number in range(100) if kinds[number] is _does_well]
        told = [str(number) for number in range(100) if outcomes[number] is None]
        assert told == well, f"seed {seed}"
        for number in range(100):
            if kinds[number].__name__.startswith("_is_refused"):
                assert repr(outcomes[number]) == repr(UndoError(str(number))), f"seed {seed}"
        found = {entry.key for entry in await search(store)}
        assert found == {"stored", *well}, f"seed {seed}"
        log = await read_log(store)
        assert sorted(event.entry_id for event in log) == sorted(well), f"seed {seed}"
        assert [event.seq for event in log] == list(range(1, len(well) + 1)), f"seed {seed}"
        leases = await store.read(TENANT, lambda to: to.leases.list(
            make_lease().kind, make_lease().parent, NOW))  # fmt: skip
        assert leases == [], f"seed {seed}"
        assert await usage_of(store) == Usage(entries=len(well) + 1, bytes=len(well) + 1)
    assert index_problems(database) == []


def _script(kind: _Kind, name: str) -> TransactionFunction[None]:
    async def script(transaction: Transaction) -> None:
        await kind(transaction, name)

    return script


# Connections that are lost


@pytest.mark.parametrize("loss", ["by the wire", "by the server"])
@pytest.mark.parametrize("place", ["before a statement", "between two", "at the end"])
async def test_a_group_that_loses_its_connection_is_run_again(
    wire: Wire, database: str, loss: str, place: str
) -> None:
    runs = 0

    def lose() -> None:
        nonlocal runs
        runs += 1
        if runs <= 3:
            assert (wire.cut() if loss == "by the wire" else end_connections(database)) > 0

    async def losing(transaction: Transaction) -> int:
        if place == "before a statement":
            lose()
        await transaction.leases.acquire(make_lease(name=f"run {runs}"), NOW)
        if place == "between two":
            lose()
        event = await log_event(transaction, make_event(entry_id="losing"))
        assert await transaction.events.latest() == event
        if place == "at the end":
            lose()
        return event.seq

    async def plain(transaction: Transaction) -> int:
        return (await log_event(transaction, make_event(entry_id="plain"))).seq

    async with open_store(wire.url) as store:
        scripts = [plain, plain, losing, plain, plain]
        numbers = await asyncio.gather(*(store.write(TENANT, script) for script in scripts))
        assert sorted(numbers) == [1, 2, 3, 4, 5]
        assert runs >= 4
        log = await read_log(store)
        assert [event.seq for event in log] == [1, 2, 3, 4, 5]
        assert log[numbers[2] - 1].entry_id == "losing"
        lease = make_lease()
        held = await store.read(TENANT, lambda to: to.leases.list(lease.kind, lease.parent, NOW))
        assert len(held) == 1


# Serialization failures and deadlocks


@pytest.mark.parametrize("code", ["40001", "40P01", "40000", "40003", "55P03", "26000"])
@pytest.mark.parametrize("failures", [1, 3])
async def test_conflicting_transaction_runs_again(database: str, code: str, failures: int) -> None:
    runs = 0

    async def script(transaction: Transaction) -> int:
        nonlocal runs
        runs += 1
        event = await log_event(transaction, make_event())
        if runs <= failures:
            await _postgres(transaction).session.change(_RAISE.format(code))
        return event.seq

    async with open_store(database) as store:
        assert await store.write(TENANT, script) == 1
        assert runs == failures + 1
        assert len(await read_log(store)) == 1


@pytest.mark.parametrize("code", ["40001", "40P01"])
@pytest.mark.parametrize("stays", ["alone", "in a group"])
async def test_a_script_is_run_again_whatever_statement_got_in_anothers_way(
    database: str, code: str, stays: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each statement of the transaction in turn, those before and after the scripts included."""
    error = {"40001": asyncpg.SerializationError, "40P01": asyncpg.DeadlockDetectedError}[code]
    countdown = -1

    def failing(method: str) -> Any:
        honest = getattr(connections._Connection, method)

        async def run(self: Any, query: str, *args: Any) -> Any:
            nonlocal countdown
            countdown -= 1
            if countdown == 0 and query != "ROLLBACK":
                await honest(self, "ROLLBACK")
                raise error("in the way")
            return await honest(self, query, *args)

        return run

    for method in ("fetch", "fetchrow", "execute"):
        monkeypatch.setattr(connections._Connection, method, failing(method))
    entry = make_entry(value=b"0", size=1)

    async def script(transaction: Transaction) -> int:
        old = await transaction.entries.get(entry.id, NOW)
        assert old is not None
        new = msgspec.structs.replace(old, value=b"1", version=old.version + 1)
        await transaction.entries.replace(old, new)
        return (await log_event(transaction, make_event(entry_id=entry.id))).seq

    async with open_store(database) as store:
        await put(store, entry)
        together = 1 if stays == "alone" else 3
        for step in range(1, 10):
            countdown = step
            await asyncio.gather(*(store.write(TENANT, script) for _ in range(together)))
            countdown = -1
        stored = await get(store, entry)
        assert stored is not None
        assert stored.version == 1 + 9 * together
        assert len(await read_log(store)) == 9 * together


@pytest.mark.parametrize("code", ["40001", "40P01"])
async def test_permanent_conflict_is_refused_after_retries(database: str, code: str) -> None:
    runs = 0

    async def unlucky(transaction: Transaction) -> None:
        nonlocal runs
        runs += 1
        await log_event(transaction, make_event(entry_id="unlucky"))
        await _postgres(transaction).session.change(_RAISE.format(code))

    async with open_store(database, deadline=60.0) as store:
        with pytest.raises(UnavailableError):
            await store.write(TENANT, unlucky)
        assert 2 <= runs <= 1 + _MOST_REPETITIONS
        assert await read_log(store) == []
        await store.write(TENANT, lambda to: log_event(to, make_event()))
        assert [event.seq for event in await read_log(store)] == [1]


async def test_permanent_conflict_does_not_affect_other_transactions(database: str) -> None:
    async def unlucky(transaction: Transaction) -> None:
        await log_event(transaction, make_event(entry_id="unlucky"))
        await _postgres(transaction).session.change(_RAISE.format("40001"))

    async def plain(transaction: Transaction) -> None:
        await log_event(transaction, make_event(entry_id="plain"))

    async with open_store(database, deadline=60.0) as store:
        outcomes = await asyncio.gather(
            *(store.write(TENANT, unlucky if n == 3 else plain) for n in range(8)),
            return_exceptions=True,
        )
        assert isinstance(outcomes.pop(3), UnavailableError)
        assert outcomes == [None] * 7
        assert [event.entry_id for event in await read_log(store)] == ["plain"] * 7


async def test_thirty_two_writers_get_only_successes_and_conflicts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They change a few entries over HTTP, and now and then a statement gets in another's way."""
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    honest = connections._Connection.fetch
    raised = 0

    async def fetch(self: Any, query: str, *args: Any) -> Any:
        nonlocal raised
        # The first statement always, so that the test never depends on chance alone.
        if self.is_in_transaction() and (not raised or chance.random() < 0.005):
            raised += 1
            await self.execute(_RAISE.format(chance.choice(["40001", "40P01"])))
        return await honest(self, query, *args)

    before = "sqlite" if is_on_file() else "postgres"
    choose("postgres")
    try:
        async with open_service(tmp_path) as service:
            client = await service.agent("ana")
            entries = [
                (await client.post(MEMORY, json=draft(key=f"key {number}"))).json()
                for number in range(4)
            ]
            monkeypatch.setattr(connections._Connection, "fetch", fetch)
            versions = dict.fromkeys((entry["id"] for entry in entries), 1)
            statuses: Counter[int] = Counter()

            async def writer(number: int) -> None:
                for turn in range(12):
                    entry = entries[chance.randrange(len(entries))]["id"]
                    headers = {"If-Match": str(versions[entry])}
                    change = {"value": {"writer": number, "turn": turn}}
                    reply = await client.patch(f"{MEMORY}/{entry}", json=change, headers=headers)
                    statuses[reply.status_code] += 1
                    assert reply.status_code in (200, 409), (seed, reply.text)
                    name = "version" if reply.status_code == 200 else "current_version"
                    versions[entry] = max(versions[entry], reply.json()[name])

            await asyncio.gather(*map(writer, range(32)))
            assert statuses.total() == 32 * 12
            assert statuses[200] == sum(versions.values()) - len(entries), f"seed {seed}"
            assert raised, f"seed {seed}"
    finally:
        give_back(tmp_path)
        choose(before)


# What is left behind


async def test_no_connection_is_left_in_a_transaction(database: str) -> None:
    async def broken(transaction: Transaction) -> Any:
        return await _postgres(transaction).session.rows("SELECT 1 / 0")

    async def refused(transaction: Transaction) -> None:
        await transaction.leases.acquire(make_lease(), NOW)
        raise UndoError

    async def nothing(transaction: Transaction) -> None:
        assert await transaction.events.latest() is None

    async with open_store(database, connections=3) as store:
        for _ in range(10):
            outcomes = await asyncio.gather(
                *(store.write(TENANT, script) for script in (broken, refused, nothing) * 3),
                *(store.read(TENANT, script) for script in (broken, nothing) * 3),
                return_exceptions=True,
            )
            assert sum(outcome is None for outcome in outcomes) == 6
        await until(lambda: set(states(database)) == {"idle"}, "every connection is idle")
        assert len(states(database)) <= 3
        assert await read_log(store) == []
