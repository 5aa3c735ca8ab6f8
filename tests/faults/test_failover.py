"""The database fails over, is gone for a while, or is held up by a server that hangs."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvloop

from memorywall.records.principal import Permission
from memorywall.storage.postgres.hosts import each_host
from tests.faults.failover_load import AGENTS, ONCE, Exchange, FailoverLoad
from tests.faults.failover_pair import (
    Pair,
    assert_dense,
    processes_of,
    stored_in,
)
from tests.faults.support import wait_until
from tests.history.arena import Arena
from tests.history.entry_scene import open_namespace
from tests.history.writers import MEMORY
from tests.support.backend import own_database
from tests.support.extent import CHAOS, chosen_seed, extent
from tests.support.postgres import DatabaseServer, PostgresServer, database_of, shared_server
from tests.support.process import ServerProcess, run_cli
from tests.support.service import draft

_RETURNS_WITHIN = 3.0
_SLACK = extent(60.0, long=3.0)
"""Seconds beyond a deadline until what must happen then has happened. How long it takes is measured
in the long version, which has the machine to itself."""
_PATIENCE = extent(60.0, long=0.0)
"""Seconds beyond the time in which all is well again after a promotion; see `_SLACK`."""
_ENOUGH_WRITES = 200
_IDLE_LIMIT = 10.0
"""Seconds after which PostgreSQL ends a transaction whose server says nothing more."""
_SERVERS = 2
_PERMISSIONS = (Permission.READ, Permission.WRITE)


@dataclass(frozen=True)
class Round:
    """One failover.

    deadline: the seconds the servers give a request
    pause: seconds between the end of the primary and the promotion of the replica
    hangs: the primary does not stop, it says nothing more
    """

    deadline: float
    pause: float
    hangs: bool = False

    @property
    def returns_within(self) -> float:
        """Seconds after the promotion for which there may be errors. A connection that has ended
        tells so; of one that is silent nothing is known before the time of a request is over, and
        who stood in line behind that one may wait for as long again."""
        return _RETURNS_WITHIN + (2 * self.deadline if self.hangs else 0)


# One that nobody is to notice, and one that lasts longer than any request can wait.
_ROUNDS = [Round(10, 0.3)]
if CHAOS:
    _ROUNDS += [Round(3, 5), Round(3, 0.3, hangs=True)]
    _ROUNDS += [Round(10, pause) for pause in (0, 0.1, 0.5, 1, 2, 4, 8, 9.5, 12, 15)]


@pytest.mark.parametrize("played", _ROUNDS, ids=str)
@pytest.mark.sampled(0)
def test_a_failover_loses_nothing_and_repeats_nothing(tmp_path: Path, played: Round) -> None:
    seed = chosen_seed()
    print(played)
    with Pair() as pair:
        load, times = uvloop.run(_play(tmp_path, seed, pair, played))
        print(load.judge(seed))
        times.report(load.exchanges)
        times.judge(load.exchanges, played)
        _assert_sound(pair.replica, pair.database, load)
        _assert_verified(tmp_path, pair.store)


@dataclass(frozen=True)
class Times:
    """When the primary was stopped, when the replica was told to take over, and when it had."""

    stopped: float
    told: float
    promoted: float

    def report(self, exchanges: Sequence[Exchange]) -> None:
        """Prints the figures."""
        failed = [exchange.ended for exchange in exchanges if exchange.status == 503]
        parts = [
            f"{len(exchanges)} requests, {len(failed)} answered 503",
            f"told to take over {self.told - self.stopped:.2f} s after the stop,"
            f" done in {self.promoted - self.told:.2f} s",
            f"the longest request took {max(exchange.took for exchange in exchanges):.2f} s",
        ]
        if failed:
            parts.append(
                f"errors from {min(failed) - self.stopped:+.2f} s to"
                f" {max(failed) - self.stopped:+.2f} s of the stop,"
                f" the last {max(failed) - self.told:+.2f} s of the promotion"
            )
        for server in range(_SERVERS):
            for is_read, what in ((False, "writes"), (True, "reads")):
                back = self._back(exchanges, server, is_read=is_read)
                parts.append(
                    f"server {server}: {what} {back - self.stopped:.2f} s after the stop,"
                    f" {back - self.told:.2f} s after the promotion"
                )
        print("\n  ".join(parts))

    def judge(self, exchanges: Sequence[Exchange], played: Round) -> None:
        """No request outlasts its deadline, and soon after the promotion there are no errors and
        every server reads and writes again."""
        longest = max(exchange.took for exchange in exchanges)
        limit = self.told + played.returns_within + _PATIENCE
        assert longest < played.deadline + _SLACK, f"a request took {longest:.1f} s"
        for exchange in exchanges:
            if exchange.status == 503:
                assert self.stopped < exchange.ended < limit, exchange
        for server in range(_SERVERS):
            for is_read in (False, True):
                back = self._back(exchanges, server, is_read=is_read)
                assert back < limit, f"server {server}, reads: {is_read}"
        noticed = any(exchange.status == 503 for exchange in exchanges)
        assert noticed or played.pause < played.deadline, "nobody noticed"

    def _back(self, exchanges: Sequence[Exchange], server: int, *, is_read: bool) -> float:
        """When a server first answered as it should again."""
        return min(
            exchange.ended for exchange in _answers(exchanges, self.told, server, is_read=is_read)
        )


def _answers(
    exchanges: Sequence[Exchange], since: float, server: int, *, is_read: bool
) -> Iterator[Exchange]:
    """What a server has answered as it should after an instant."""
    for exchange in exchanges:
        is_asked_for = exchange.server == server and exchange.is_read == is_read
        if is_asked_for and exchange.ended > since and exchange.status < 300:
            yield exchange


async def _until_all_answer(load: FailoverLoad, since: float) -> None:
    """Waits until every server has answered a read and a write after an instant, and until so many
    writes are answered that a lost one would show."""

    def written() -> int:
        return sum(not one.is_read and one.status < 300 for one in load.exchanges)

    async with asyncio.timeout(_PATIENCE):
        while written() < _ENOUGH_WRITES or not all(
            any(_answers(load.exchanges, since, server, is_read=is_read))
            for server in range(_SERVERS)
            for is_read in (False, True)
        ):
            await asyncio.sleep(0.1)


async def _play(data: Path, seed: int, pair: Pair, played: Round) -> tuple[FailoverLoad, Times]:
    chance = random.Random(seed)
    arguments = ["--store-deadline", str(played.deadline), "--log-level", "error"]
    async with _open_servers(data, seed, pair.store, arguments) as (arenas, keys):
        load = FailoverLoad(arenas, keys, seed)
        async with asyncio.TaskGroup() as group:
            group.create_task(load.play())
            await asyncio.sleep(extent(1.0, long=chance.uniform(2.0, 3.0)))
            stopped = time.monotonic()
            if played.hangs:
                await asyncio.to_thread(pair.freeze)
            else:
                await asyncio.to_thread(pair.primary.stop, "immediate")
            await asyncio.sleep(played.pause)
            told = time.monotonic()
            await asyncio.to_thread(pair.replica.promote)
            promoted = time.monotonic()
            await asyncio.sleep(extent(0.0, long=played.returns_within + 1.0))
            if _PATIENCE:
                await _until_all_answer(load, told)
            load.end()
        await load.finish()
    return load, Times(stopped, told, promoted)


@asynccontextmanager
async def _open_servers(
    data: Path, seed: int, store: str, arguments: Sequence[str]
) -> AsyncIterator[tuple[list[Arena], list[str]]]:
    """Two servers of a store, and a key for each agent of the load."""
    with ExitStack() as stack:
        arenas = [Arena(data, seed + number, store, arguments) for number in range(_SERVERS)]
        for arena in arenas:
            stack.callback(arena.close)
        keys = await arenas[0].create_keys(AGENTS, *_PERMISSIONS)
        [curator] = await arenas[0].create_keys(["curator"], Permission.WRITE, Permission.ADMIN)
        await asyncio.gather(*(arena.start() for arena in arenas))
        await asyncio.to_thread(open_namespace, arenas[0].port, curator)
        yield arenas, keys


@pytest.mark.parametrize(
    ("url", "each"),
    [
        ("postgresql://h/d", ["postgresql://h/d"]),
        ("postgresql://u:p%2C@h/d?a=1,2", ["postgresql://u:p%2C@h/d?a=1,2"]),
        (
            "postgresql://u:p@h:1,[::1]:2/d",
            [
                "postgresql://u:p@h:1/d?target_session_attrs=read-write",
                "postgresql://u:p@[::1]:2/d?target_session_attrs=read-write",
            ],
        ),
        (
            "postgresql://h,i/d?sslmode=require",
            [
                "postgresql://h/d?sslmode=require&target_session_attrs=read-write",
                "postgresql://i/d?sslmode=require&target_session_attrs=read-write",
            ],
        ),
        (
            "postgresql://h,i/d?target_session_attrs=any",
            [
                "postgresql://h/d?target_session_attrs=any",
                "postgresql://i/d?target_session_attrs=any",
            ],
        ),
    ],
)
def test_each_host_of_a_url_is_asked_for_the_one_that_writes(url: str, each: list[str]) -> None:
    assert each_host(url) == each


@pytest.mark.parametrize("how", ["stopped", "frozen"])
@pytest.mark.sampled(1)
def test_every_request_ends_by_its_deadline_when_the_database_is_down(
    tmp_path: Path, how: str
) -> None:
    deadline = 2.0
    with PostgresServer() as postgres, ExitStack() as stack:
        store = postgres.create_database()
        server = stack.enter_context(
            ServerProcess(
                tmp_path, "--store", store,
                "--store-deadline", str(deadline), "--log-level", "error",
            )
        )  # fmt: skip
        client = stack.enter_context(server.client())
        entry = client.post(MEMORY, json=draft("before"))
        assert entry.status_code == 201, entry.text
        outage = Outage(server.url, server.dev_key, entry.headers["location"], deadline + _SLACK)
        processes = processes_of(postgres)
        if how == "stopped":
            postgres.stop("immediate")
        else:
            for process in processes:
                os.kill(process, signal.SIGSTOP)
        try:
            # The second round begins when everything there was has been noticed to be gone.
            for _ in range(2):
                outage.ask_everything()
            assert client.get("/health").status_code == 200
        finally:
            if how == "frozen":
                for process in processes:
                    os.kill(process, signal.SIGCONT)
        if how == "stopped":
            postgres.start()
        wait_until(lambda: client.get("/ready").status_code == 200, _SLACK, "the server is back")
        assert client.get(entry.headers["location"]).status_code == 200
        for number, body in enumerate(outage.sent):
            made = client.post(MEMORY, json=body, headers={"Idempotency-Key": f"{number}"})
            assert made.status_code == 201, made.text
            assert made.json()["version"] == 1
        assert not server.read_errors()
        _assert_verified(tmp_path, store)


class Outage:
    """Asks a server whose database is gone."""

    def __init__(self, url: str, key: str, path: str, limit: float) -> None:
        self.sent: list[dict[str, Any]] = []
        self._url = url
        self._key = key
        self._path = path
        self._limit = limit

    def ask_everything(self) -> None:
        """Many requests of every kind at once; each is refused in time and in form."""
        asyncio.run(self._ask_everything())

    async def _ask_everything(self) -> None:
        headers = {"X-API-Key": self._key}
        async with httpx.AsyncClient(base_url=self._url, headers=headers, timeout=60) as client:
            requests = [
                client.build_request("GET", "/ready"),
                client.build_request("GET", "/api/v1/agents/dev/events"),
            ]
            for _ in range(5):
                requests += [
                    client.build_request("GET", self._path),
                    client.build_request("GET", MEMORY, params={"namespace": "invoices"}),
                    client.build_request(
                        "PATCH", self._path, json={"value": {}}, headers={"If-Match": "7"}
                    ),
                    self._create(client),
                ]
            async with asyncio.TaskGroup() as group:
                for request in requests:
                    group.create_task(self._ask(client, request))

    def _create(self, client: httpx.AsyncClient) -> httpx.Request:
        number = len(self.sent)
        self.sent.append(draft(f"sent-{number}"))
        headers = {"Idempotency-Key": f"{number}"}
        return client.build_request("POST", MEMORY, json=self.sent[-1], headers=headers)

    async def _ask(self, client: httpx.AsyncClient, request: httpx.Request) -> None:
        begun = time.monotonic()
        reply = await client.send(request)
        took = time.monotonic() - begun
        what = f"{request.method} {request.url.path} after {took:.1f} s: {reply.text[:300]}"
        assert reply.status_code == 503, what
        assert int(reply.headers["retry-after"]) >= 1, what
        assert reply.json()["error"] == "UNAVAILABLE", what
        assert took < self._limit, what


@pytest.mark.sampled(0)
def test_a_server_that_hangs_lets_the_others_go_on(tmp_path: Path) -> None:
    seed = chosen_seed()
    postgres = shared_server()
    with own_database() as store:
        database = database_of(store)
        load, hung, resumed = uvloop.run(_play_hanging(tmp_path, seed, store, database))
        print(load.judge(seed))
        back = [
            min(
                exchange.ended
                for exchange in load.exchanges
                if exchange.ended > since
                and exchange.server == server
                and exchange.status < 300
                and not exchange.is_read
            )
            for server, since in ((1, hung + 0.5), (0, resumed))
        ]
        print(
            f"the other wrote again after {back[0] - hung:.1f} s, the one that hung"
            f" {back[1] - resumed:.1f} s after it was resumed"
        )
        assert back[0] - hung < _IDLE_LIMIT + _SLACK
        assert back[1] - resumed < _SLACK
        assert not [exchange for exchange in load.exchanges if exchange.status >= 500]
        _assert_sound(postgres, database, load)
        _assert_verified(tmp_path, store)


async def _play_hanging(
    data: Path, seed: int, store: str, database: str
) -> tuple[FailoverLoad, float, float]:
    """The first of two servers is stopped while it stands at the head of the line, until the other
    has gone on. Returns when it was stopped and when it was resumed."""
    arguments = ["--store-deadline", "25", "--log-level", "error"]
    async with _open_servers(data, seed, store, arguments) as (arenas, keys):
        load = FailoverLoad(arenas, keys, seed, moves=0)
        async with asyncio.TaskGroup() as group:
            group.create_task(load.play())
            await asyncio.sleep(1.0)
            hung = await _stop_at_the_head(arenas[0], database, random.Random(seed))
            async with asyncio.timeout(_IDLE_LIMIT + _SLACK):
                while not any(
                    exchange.begun > hung + 0.5 and not exchange.is_read and exchange.server == 1
                    for exchange in load.exchanges
                ):
                    await asyncio.sleep(0.05)
            await asyncio.sleep(1.0)
            arenas[0].signal(signal.SIGCONT)
            resumed = time.monotonic()
            await asyncio.sleep(2.0)
            load.end()
        await load.finish()
    return load, hung, resumed


async def _stop_at_the_head(arena: Arena, database: str, chance: random.Random) -> float:
    """Stops a server while its transaction holds the lock of the tenant."""
    idle = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND backend_xid IS NOT NULL"
        " AND state = 'idle in transaction' AND clock_timestamp() - state_change > '0.3 s'"
    )
    for _ in range(200):
        await asyncio.sleep(chance.uniform(0.0, 0.1))
        stopped = time.monotonic()
        arena.signal(signal.SIGSTOP)
        await asyncio.sleep(0.5)
        if await asyncio.to_thread(shared_server().value, idle, database):
            return stopped
        arena.signal(signal.SIGCONT)
    raise AssertionError("the server was never stopped within a transaction")


def _assert_sound(server: DatabaseServer, database: str, load: FailoverLoad) -> None:
    """Every create that was repeated until it was acknowledged is there, once, as acknowledged; and
    no log and no entry has a gap."""
    stored = stored_in(server, database, ONCE)
    made = {name: entry for creator in load.creators for name, entry in creator.made.items()}
    print(f"{len(made)} creates, {sum(one.repeated for one in load.creators)} repetitions")
    assert stored == {name: (entry, 1) for name, entry in made.items()}
    assert_dense(server, database)


def _assert_verified(data: Path, store: str) -> None:
    printed = run_cli("verify", "--data", str(data), "--store", store, check=False)
    assert printed.returncode == 0, printed.stdout + printed.stderr
