"""Runs background jobs beside requests. A failed job runs again after its interval."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from memorywall.jobs.embed import EmbeddingJob
from memorywall.jobs.end_sessions import END_SESSIONS_JOB
from memorywall.jobs.expire_entries import sweep
from memorywall.jobs.expire_leases import END_LEASES_INTERVAL, expire_leases
from memorywall.jobs.flush import flush_accesses, flush_key_uses, flush_queries, flush_uses
from memorywall.jobs.job_runner import run_everywhere
from memorywall.jobs.judge_items import JUDGE_INTERVAL, judge_items
from memorywall.jobs.reseal import RESEAL_JOB
from memorywall.jobs.seal import seal_records
from memorywall.jobs.write_segments import SEGMENTS_INTERVAL, SEGMENTS_JOB
from memorywall.recall.index import Index
from memorywall.service.context import ServiceContext

_FLUSH_INTERVAL = 5.0
_USES_INTERVAL = 60.0
"""Seconds. Each flush writes every used entry, and the loss of one minute is acceptable."""
_EMBED_INTERVAL = 0.2
_SEAL_INTERVAL = 60.0
_log = logging.getLogger("memorywall.scheduler")


@asynccontextmanager
async def run_jobs(service: ServiceContext, index: Index | None = None) -> AsyncIterator[None]:
    """Runs the background jobs while the context is open, and flushes at its end.

    index: the search index, None for no embedding
    """
    tasks = [
        asyncio.create_task(
            _every(service.settings.expiry_interval, "expire", lambda: sweep(service, early=False))
        ),
        asyncio.create_task(
            _every(
                service.settings.expiry_interval,
                END_SESSIONS_JOB.name,
                lambda: run_everywhere(service, END_SESSIONS_JOB),
            )
        ),
        asyncio.create_task(_every(_SEAL_INTERVAL, "seal", lambda: seal_records(service))),
        asyncio.create_task(
            _every(_SEAL_INTERVAL, "reseal", lambda: run_everywhere(service, RESEAL_JOB))
        ),
        asyncio.create_task(
            _every(END_LEASES_INTERVAL, "end_leases", lambda: expire_leases(service, early=False))
        ),
        asyncio.create_task(
            _every(JUDGE_INTERVAL, "judge", lambda: judge_items(service, early=False))
        ),
        asyncio.create_task(
            _every(
                SEGMENTS_INTERVAL,
                SEGMENTS_JOB.name,
                lambda: run_everywhere(service, SEGMENTS_JOB),
            )
        ),
        asyncio.create_task(_every(_FLUSH_INTERVAL, "flush", lambda: flush_accesses(service))),
        asyncio.create_task(_every(_USES_INTERVAL, "uses", lambda: _flush_uses(service, index))),
    ]
    embedding = None
    if index is not None and index.embedder is not None:
        embedding = EmbeddingJob(service, index.embedder, index.fields)
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
        await _try("flush", lambda: flush_accesses(service))
        await _try("uses", lambda: _flush_uses(service, index))


async def _flush_uses(service: ServiceContext, index: Index | None) -> None:
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
