"""PostgreSQL alone: what requests need of it at the least, sent by asyncpg from the load generator.

The transactions are those of the store, on the same database and as the same role, without HTTP,
without a decision to make, and without what the store reads before it decides. They show what of
a rate is the database's doing.
"""

from __future__ import annotations

import asyncio
import secrets
from array import array
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from random import Random
from time import perf_counter
from typing import Any

from benchmarks.data import agent_name, two_tags
from benchmarks.load import percentile
from benchmarks.plan import BATCH_SIZE, Direct, LoadResult, Operation
from benchmarks.statements import (
    GET_MANY,
    Creation,
    Statement,
    creation_of,
    entries_of,
    searches_of,
)
from benchmarks.workloads import Stock
from memorywall.settings import DEFAULT_TENANT
from memorywall.storage.postgres.connection import begin, make_pool, roll_back
from memorywall.storage.postgres.session import Connection
from memorywall.storage.statements import load

SEARCHES = 128
_HEADS = load("postgres", "heads")
_SNAPSHOT = "REPEATABLE READ READ ONLY"
_LOCKED = "READ COMMITTED"

Turn = Callable[[], Awaitable[None]]


class _Reads:
    """Transactions that read; one ends and the next begins in one round trip, as in the store."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._begin = begin(DEFAULT_TENANT, _SNAPSHOT)
        self._opening = self._begin

    async def run(self, statements: Sequence[Statement]) -> None:
        """One transaction."""
        await self._connection.execute(self._opening)
        for text, bindings in statements:
            await self._connection.fetch(text, *bindings)
        self._opening = f"COMMIT; {self._begin}"


async def _getting(connection: Connection, command: Direct, stock: Stock, place: int) -> Turn:
    """Reads entries by id, a group of them with one statement."""
    chance = Random(place)
    reads = _Reads(connection)

    async def turn() -> None:
        ids = [one.decode() for one in chance.choices(stock.ids, k=command.group)]
        await reads.run([(GET_MANY, (DEFAULT_TENANT, ids))])

    return turn


async def _searching(connection: Connection, command: Direct, stock: Stock, place: int) -> Turn:
    """Searches by two tags, a group of them on one snapshot."""
    chance = Random(place)
    shape = stock.shape
    wanted = []
    for _ in range(SEARCHES):
        tags = [tag.decode() for tag in two_tags(chance.random, shape.vocabulary)]
        wanted.append((agent_name(chance.randrange(shape.agents)).decode(), tags[0], tags[1]))
    await connection.execute(begin(DEFAULT_TENANT, _SNAPSHOT))
    searches = await searches_of(connection, DEFAULT_TENANT, wanted)
    await connection.execute("COMMIT")
    reads = _Reads(connection)

    async def turn() -> None:
        group = chance.choices(searches, k=command.group)
        await reads.run([statement for statements in group for statement in statements])

    return turn


async def _creating(connection: Connection, command: Direct, stock: Stock, place: int) -> Turn:
    """Writes new entries, a group of them in a transaction, to a tenant of this benchmark's own."""
    batch = command.operation is Operation.BATCH
    chance = Random(place)
    ids: list[bytes] = []
    for _ in range(command.group):
        if batch:
            # What was stored with one batch is of one agent.
            first = chance.randrange(len(stock.ids) // BATCH_SIZE) * BATCH_SIZE
            ids += stock.ids[first : first + BATCH_SIZE]
        else:
            ids.append(chance.choice(stock.ids))
    await connection.execute(begin(DEFAULT_TENANT, _SNAPSHOT))
    entries = await entries_of(connection, DEFAULT_TENANT, [one.decode() for one in ids])
    await connection.execute("COMMIT")
    tenant = f"direct-{place % command.tenants}"
    creation = await creation_of(entries, tenant, place)
    await connection.execute(begin(tenant, _LOCKED))
    await connection.execute(_HEADS["found"], tenant)
    await connection.execute("COMMIT")
    return _committing(connection, tenant, creation)


def _committing(connection: Connection, tenant: str, creation: Creation) -> Turn:
    """Transactions of the store's write path."""
    opening = begin(tenant, _LOCKED)
    writer = secrets.token_hex(8)
    commits = 0

    async def turn() -> None:
        nonlocal commits
        commits += 1
        await connection.execute(opening)
        ((last,),) = await connection.fetch(_HEADS["lock"], tenant)
        for text, bindings in creation.statements(last):
            await connection.fetch(text, *bindings)
        end = last + creation.entries
        await connection.execute(_HEADS["seal"], tenant, writer, commits, end, bytes(32))
        await connection.execute("COMMIT")

    return turn


_TURNS: dict[
    Operation,
    Callable[[Connection, Direct, Stock, int], Coroutine[Any, Any, Turn]],
] = {
    Operation.GET: _getting,
    Operation.QUERY: _searching,
    Operation.CREATE: _creating,
    Operation.BATCH: _creating,
}


async def measure_directly(command: Direct, stock: Stock) -> LoadResult:
    """Repeat transactions on every connection; the latencies are those of whole transactions."""
    latencies = array("d")
    pool = await make_pool(command.url, command.connections)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(pool.close)
        connections = [
            await stack.enter_async_context(pool.use()) for _ in range(command.connections)
        ]
        turns = [
            await _TURNS[command.operation](connection, command, stock, place)
            for place, connection in enumerate(connections)
        ]
        for turn in turns:
            # The first one has its statements prepared.
            await turn()
        start = perf_counter()
        deadline = start + command.seconds
        await asyncio.gather(*(_repeat(turn, deadline, latencies) for turn in turns))
        elapsed = perf_counter() - start
        for connection in connections:
            await roll_back(connection)
    return LoadResult(
        requests=len(latencies) * command.group,
        seconds=elapsed,
        p50=percentile(latencies, 0.50) * 1000,
        p99=percentile(latencies, 0.99) * 1000,
    )


async def _repeat(turn: Turn, deadline: float, latencies: array[float]) -> None:
    begun = perf_counter()
    while begun < deadline:
        await turn()
        ended = perf_counter()
        latencies.append(ended - begun)
        begun = ended
