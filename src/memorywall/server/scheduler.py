"""Runs housekeeping beside the requests. Each job may fail, and is then tried again in its turn."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from memorywall.pipelines.embed import Embedding
from memorywall.pipelines.expire import sweep
from memorywall.pipelines.fold import fold_accesses, fold_uses
from memorywall.pipelines.lapse import end_lapsed
from memorywall.recall.index import Index
from memorywall.wall.door import Door

_FOLD_INTERVAL = 5.0
_USES_INTERVAL = 60.0
"""Long, for each entry that was read is written then, and a minute's uses are no great loss."""
_EMBED_INTERVAL = 0.2
_LAPSE_INTERVAL = 1.0
"""How long the log may be silent about a lease that is over; nobody holds it meanwhile."""
_log = logging.getLogger("memorywall.scheduler")


@asynccontextmanager
async def housekeeping(door: Door, index: Index | None = None) -> AsyncIterator[None]:
    """Housekeeping for as long as the context is open, and a last fold at its end."""
    tasks = [
        asyncio.create_task(_every(door.settings.sweep_interval, "sweep", lambda: sweep(door))),
        asyncio.create_task(_every(_LAPSE_INTERVAL, "lapse", lambda: end_lapsed(door))),
        asyncio.create_task(_every(_FOLD_INTERVAL, "fold", lambda: fold_accesses(door))),
        asyncio.create_task(_every(_USES_INTERVAL, "uses", lambda: _fold_uses(door, index))),
    ]
    embedding = None
    if index is not None and index.embedder is not None:
        embedding = Embedding(door, index.embedder, index.fields)
        tasks.append(asyncio.create_task(_every(_EMBED_INTERVAL, "embed", embedding.embed_some)))
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
        if embedding is not None:
            embedding.close()
        await _try("fold", lambda: fold_accesses(door))
        await _try("uses", lambda: _fold_uses(door, index))


async def _fold_uses(door: Door, index: Index | None) -> None:
    added = await fold_uses(door)
    if index is not None:
        await index.used(added)


async def _every(interval: float, name: str, job: Callable[[], Awaitable[object]]) -> None:
    while True:
        await asyncio.sleep(interval)
        await _try(name, job)


async def _try(name: str, job: Callable[[], Awaitable[object]]) -> None:
    try:
        await job()
    except Exception as error:
        _log.warning("job failed", extra={"job": name, "error": type(error).__name__})
