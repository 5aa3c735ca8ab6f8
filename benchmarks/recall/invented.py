"""The later content of a store, made without the wait: vectors in place of those of a model, and
index segments."""

from __future__ import annotations

import time
from collections.abc import Iterable

import numpy as np

from benchmarks.recall.directories import DataDirectory
from benchmarks.recall.variants import NONE
from memorywall.assembly import open_memory
from memorywall.jobs.job_runner import run_everywhere
from memorywall.jobs.write_segments import SEGMENTS_JOB
from memorywall.recall.embedders import open_embedder
from memorywall.recall.stored_vectors import encode
from memorywall.records.clock import SystemClock, format_instant
from memorywall.records.recall import EntryVector
from memorywall.records.tier import Tier
from memorywall.service.requests.services import SharedServices
from memorywall.settings import DEFAULT_TENANT
from memorywall.storage.port import Transaction

_PAGE = 1_000
_HOLDER = "benchmark"
_TURN_MILLISECONDS = 3_600_000
_LATER_NANOSECONDS = 3_600 * 10**9
_SEED = 15


async def write_segments(place: DataDirectory) -> None:
    """Writes the index segments of a store, as a server does some minutes after the last write.
    Nobody may have the store open."""
    later = SystemClock(lambda: time.time_ns() + _LATER_NANOSECONDS)
    async with open_memory(place.settings(NONE), clock=later) as services:
        await run_everywhere(services, SEGMENTS_JOB, early=True)


async def put_invented_vectors(place: DataDirectory, embedder: str, owners: Iterable[str]) -> None:
    """Gives the session memory of these owners random vectors of length one under the embedder's
    model, and notes that everything is embedded. Nobody may have the store open."""
    opened = open_embedder(embedder)
    assert opened is not None
    model, dimensions = opened.model, opened.dimensions
    opened.close()
    chance = np.random.default_rng(_SEED)
    async with open_memory(place.settings(embedder)) as services:
        for owner in owners:
            after: str | None = ""
            while after is not None:
                drawn = chance.standard_normal((_PAGE, dimensions), np.float32)
                drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
                after = await _put_page(services, model, owner, after, encode(drawn))
        await _note_all_embedded(services, model)


async def _put_page(
    service: SharedServices, model: str, owner: str, after: str, rows: list[bytes]
) -> str | None:
    """Gives the next entries these vectors; returns the last one's id, None where none is left."""

    async def script(transaction: Transaction) -> str | None:
        entries = await transaction.entries.of_owner(Tier.SESSION, owner, len(rows), after)
        vectors = [
            EntryVector(entry.id, entry.version, row)
            for entry, row in zip(entries, rows, strict=False)
        ]
        await transaction.recall.put_vectors(model, vectors)
        return entries[-1].id if entries else None

    return await service.store.write(DEFAULT_TENANT, script, long=True)


async def _note_all_embedded(service: SharedServices, model: str) -> None:
    now = service.clock.now()
    at, until = format_instant(now), format_instant(now + _TURN_MILLISECONDS)

    async def script(transaction: Transaction) -> None:
        await transaction.recall.acquire_lease(model, _HOLDER, at, until)
        latest = await transaction.events.latest()
        assert latest is not None
        assert await transaction.recall.advance(model, _HOLDER, latest.seq)

    await service.store.write(DEFAULT_TENANT, script)
