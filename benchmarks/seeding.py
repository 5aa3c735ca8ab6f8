"""Filling a store through its own API, and remembering what went in."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Never

from tqdm import tqdm

from benchmarks.data import Source
from benchmarks.load import Conversation, drive
from benchmarks.plan import BATCH_SIZE, Dialect, Seed
from benchmarks.workloads import Batching, Stock, Writer, ids_of

CONNECTIONS_FOR_SEEDING = 4
SECONDS_PER_ENTRY_AT_WORST = 0.002


class SeedingError(Exception):
    """A store could not be filled, so nothing can be measured on it."""


class _Filling:
    """Creates the entries of one agent after the other, over several connections."""

    def __init__(
        self, stock: Stock, writer: Writer, portions: Iterator[int], progress: tqdm[Never]
    ) -> None:
        self._stock = stock
        self._writer = writer
        self._portions = portions
        self._progress = progress
        self._batching = Batching(stock, writer, 0)
        self._agent = 0

    def next_request(self) -> bytes | None:
        agent = next(self._portions, None)
        if agent is None:
            return None
        self._agent = agent
        if self._writer.dialect is Dialect.REFERENCE:
            body = self._stock.source.entry(self._writer.owner_field(agent))
            return self._writer.write(b"POST", b"/api/v1/memory", agent, body)
        return self._batching.batch(agent)

    def accept_response(self, status: int, body: bytes) -> bool:
        """Note the ids the server gave."""
        if status not in (200, 201):
            return False
        ids = ids_of(body)
        self._stock.ids.extend(ids)
        self._stock.owners.extend([self._agent] * len(ids))
        self._progress.update(len(ids))
        return True


async def fill(seed: Seed) -> Stock:
    """Create every entry of the shape; raise unless the server acknowledged all of them."""
    shape = seed.shape
    stock = Stock(shape=shape, source=Source(shape))
    writer = Writer(seed.endpoint, shape.agents)
    step = 1 if seed.endpoint.dialect is Dialect.REFERENCE else BATCH_SIZE
    portions = (
        agent for agent in range(shape.agents) for _ in range(0, shape.entries_per_agent, step)
    )
    progress: tqdm[Never] = tqdm(total=shape.entries, desc=f"filling {seed.stock}", unit=" entries")
    with progress:
        fillings: list[Conversation] = [
            _Filling(stock, writer, portions, progress) for _ in range(CONNECTIONS_FOR_SEEDING)
        ]
        result = await drive(
            seed.endpoint.ports,
            fillings,
            inf,
            at_most=60 + shape.entries * SECONDS_PER_ENTRY_AT_WORST,
        )
    if result.errors or len(stock.ids) != shape.entries:
        raise SeedingError(
            f"{seed.stock}: {len(stock.ids):,} of {shape.entries:,} stored, {result.errors} errors,"
            f" the first: {result.first_error}"
        )
    return stock
