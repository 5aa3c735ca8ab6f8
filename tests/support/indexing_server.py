"""A server that indexes a few entries at a time and kills itself at a point of that.

`python -m` with the point, the number of the arrival there, a file, and the arguments of
`memorywall`. Nothing is indexed before the file exists. Only the jobs are told where they are: what
they do is the server's own work.
"""

from __future__ import annotations

import asyncio
import os
import runpy
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memorywall import assembly
from memorywall.jobs import embed, job_runner, write_segments
from memorywall.jobs.embed import EmbeddingJob
from memorywall.records.principal import Maintenance
from memorywall.storage.sql.recall import SqlRecallRepository
from tests.support.embedder import WordEmbedder

EMBEDDING = (
    "vectors are computed",
    "vectors are in the transaction",
    "vectors are committed",
)
SEGMENTS = (
    "a segment is computed",
    "a segment is in the transaction",
    "a segment is committed",
)
POINTS = (*EMBEDDING, *SEGMENTS)
NOWHERE = "nowhere"
AT_ONCE = 5
"""The entries of a batch of embedding and of a segment."""


def _serve(point: str, arrival: int, permission: Path) -> None:
    left = arrival

    def come(to: str) -> None:
        nonlocal left
        left -= to == point
        if left == 0 and to == point:
            os.kill(os.getpid(), signal.SIGKILL)

    def after(function: Callable[..., Any], to: str) -> Callable[..., Any]:
        async def watched(*arguments: Any, **options: Any) -> Any:
            result = await function(*arguments, **options)
            come(to)
            return result

        return watched

    computed, in_transaction, committed = EMBEDDING
    patch(embed, "compute_vectors", after(embed.compute_vectors, computed))
    patch(EmbeddingJob, "_embed_batch", after(EmbeddingJob._embed_batch, committed))
    run = EmbeddingJob.embed_some

    async def embed_some(job: EmbeddingJob) -> int:
        while not permission.exists():
            await asyncio.sleep(0.01)
        return await run(job)

    patch(EmbeddingJob, "embed_some", embed_some)
    kind = SqlRecallRepository
    patch(kind, "put_vectors", after(kind.put_vectors, in_transaction))
    patch(kind, "put_segment", after(kind.put_segment, SEGMENTS[1]))
    build = write_segments.build

    def built(*arguments: Any) -> bytes:
        content = build(*arguments)
        come(SEGMENTS[0])
        return content

    patch(write_segments, "build", built)
    maintain = job_runner.maintain

    async def maintained(*arguments: Any, **options: Any) -> Any:
        result = await maintain(*arguments, **options)
        # The job begins and ends with a transaction that stores no segment.
        come(SEGMENTS[2] if arguments[2] is Maintenance.INDEX else NOWHERE)
        return result

    patch(job_runner, "maintain", maintained)
    patch(assembly, "open_embedder", lambda *_, **__: WordEmbedder())
    patch(embed, "_CHANGES", AT_ONCE)
    patch(write_segments, "SEGMENT_SIZE", AT_ONCE)
    patch(write_segments, "_LEAST", 2)
    patch(write_segments, "_SETTLED_MILLISECONDS", 0)
    # A server that follows need not wait for the leases of the killed one.
    patch(embed, "_LEASE_MILLISECONDS", 100)
    patch(job_runner, "LEASE_MILLISECONDS", 100)


def patch(owner: object, name: str, value: object) -> None:
    """Replaces what exists by this name."""
    assert hasattr(owner, name)
    setattr(owner, name, value)


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
    del sys.argv[1:4]
    runpy.run_module("memorywall", run_name="__main__", alter_sys=True)
