"""Runs background jobs beside requests. A failed job runs again after its interval."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial

from memorywall.jobs.embed import EmbeddingJob
from memorywall.jobs.flush import flush_accesses, flush_key_uses, flush_queries, flush_uses
from memorywall.jobs.job_runner import run_everywhere
from memorywall.jobs.job_table import JOBS
from memorywall.recall.embedding_lag import EMBED
from memorywall.recall.index import Index
from memorywall.service.requests.services import SharedServices

_FLUSH_INTERVAL = 5.0
_USES_INTERVAL = 60.0
"""Seconds. Each flush writes every used entry, and the loss of one minute is acceptable."""
_EMBED_INTERVAL = 0.2
_LONGEST_WAIT = 60.0
"""Seconds between two checks whether a job is due; a process that held it may have ended."""
_log = logging.getLogger("memorywall.scheduler")


@asynccontextmanager
async def run_jobs(service: SharedServices, index: Index | None = None) -> AsyncIterator[None]:
    """Runs the background jobs while the context is open, and flushes at its end.

    index: the search index, None for no embedding
    """
    rounds: list[tuple[float, str, Callable[[], Awaitable[object]]]] = [
        (
            min(spec.interval(service), _LONGEST_WAIT),
            spec.name,
            partial(run_everywhere, service, spec),
        )
        for spec in JOBS
    ]
    rounds.append((_FLUSH_INTERVAL, "flush", lambda: flush_accesses(service)))
    rounds.append((_USES_INTERVAL, "uses", lambda: _flush_uses(service, index)))
    embedding = None
    if index is not None and index.embedder is not None:
        # One process at a time opens a data directory.
        is_alone = service.settings.database_url is None
        embedding = EmbeddingJob(service, index.embedder, index.fields, is_alone=is_alone)
        rounds.append((_EMBED_INTERVAL, EMBED, embedding.embed_some))
    tasks = [asyncio.create_task(_every(*one)) for one in rounds]
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
            await _try(EMBED, embedding.release)
        await _try("flush", lambda: flush_accesses(service))
        await _try("uses", lambda: _flush_uses(service, index))


async def _flush_uses(service: SharedServices, index: Index | None) -> None:
    await flush_key_uses(service)
    await flush_queries(service)
    added = await flush_uses(service)
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
