"""A model that is new walks the entries by id, and does not need the log from its start."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from memorywall.jobs import embed
from memorywall.jobs.embed import EmbeddingJob
from memorywall.recall.document import AuthorDateFields
from memorywall.recall.embedding_lag import EMBED
from memorywall.recall.index import Index
from memorywall.storage.port import Transaction
from tests.support import stored
from tests.support.service import RunningService, draft, open_service

pytestmark = pytest.mark.anyio


class _Embedder:
    """Gives every text the same vector, remembers the texts, and may fail after some batches."""

    dimensions = 2
    is_local = False

    def __init__(self, model: str, batches: int = 1_000) -> None:
        self.model = model
        self.texts: list[str] = []
        self._left = batches

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        if self._left == 0:
            raise OSError
        self._left -= 1
        self.texts += texts
        return np.ones((len(texts), 2), np.float32)

    def close(self) -> None:
        """Holds nothing."""


def _fields(service: RunningService) -> AuthorDateFields:
    with closing(Index(service.services)) as index:
        return index.fields


async def _write(service: RunningService, *keys: str) -> None:
    agent = await service.agent("ada")
    for key in keys:
        made = await agent.post("/api/v1/memory", json=draft(key, value={"text": f"about {key}"}))
        assert made.status_code == 201, made.text


async def _missing(service: RunningService, model: str) -> int:
    """How many entries have no vector under a model."""

    async def look(to: Transaction) -> int:
        entries = await to.entries.walk("", 1_000)
        return len(entries) - len(await to.recall.vectors(model, [one.id for one in entries]))

    return await service.services.store.read("default", look)


async def _embed(service: RunningService, embedder: _Embedder) -> int:
    with closing(EmbeddingJob(service.services, embedder, _fields(service))) as embedding:
        return await embedding.embed_some()


async def test_a_new_model_embeds_entries_that_the_log_no_longer_tells_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embed, "_CHANGES", 2)
    async with open_service(tmp_path) as service:
        await _write(service, "a", "b", "c", "d", "e")
        assert await _embed(service, _Embedder("one")) == 5
        # As if all but the end of the log had been cut off.
        stored.change(tmp_path, "UPDATE events SET entry_id = 'mem_gone' WHERE seq < 5")
        await _write(service, "f")
        assert await _embed(service, _Embedder("two")) == 6
        assert await _missing(service, "two") == 0
        await _write(service, "g")
        assert await _embed(service, _Embedder("two")) == 1


async def test_interrupted_walk_resumes_at_its_cursor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embed, "_CHANGES", 2)
    async with open_service(tmp_path) as service:
        await _write(service, "a", "b", "c", "d", "e")
        first, second = _Embedder("one", batches=1), _Embedder("one")
        with pytest.raises(OSError):
            await _embed(service, first)
        await _write(service, "f")
        service.clock.advance(200)
        await _embed(service, second)
        assert (len(first.texts), len(second.texts)) == (2, 4)
        assert await _missing(service, "one") == 0
        job = await service.services.store.read("default", lambda to: to.jobs.get(EMBED))
        assert job is not None
        assert job.cursor == ""


async def test_a_paused_embedding_waits(tmp_path: Path) -> None:
    async with open_service(tmp_path) as service:
        await _write(service, "a")
        await service.services.store.write("default", lambda to: to.jobs.pause(EMBED, True))
        assert await _embed(service, _Embedder("one")) == 0
        await service.services.store.write("default", lambda to: to.jobs.pause(EMBED, False))
        assert await _embed(service, _Embedder("one")) == 1
