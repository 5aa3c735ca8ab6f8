"""`wait_for=indexed`: a write answers when a search finds its entry by meaning too."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from typing import Any

import httpx
import numpy as np
import numpy.typing as npt
import pytest

from memorywall.jobs.embed import EmbeddingJob
from memorywall.recall import findable
from memorywall.recall.index import Index
from memorywall.records.errors import UnavailableError
from memorywall.server.app import build_app
from memorywall.service.access.api_keys import ApiKeyAuthenticator
from tests.http.checks import MEMORY, assert_problem
from tests.http.test_search import LetterEmbedder, found
from tests.support.service import RunningService

pytestmark = pytest.mark.anyio

_INDEXED = {"wait_for": "indexed"}


class FailingEmbedder(LetterEmbedder):
    """Embeds until it is told to fail."""

    fails = False

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        if self.fails:
            raise UnavailableError("the embedder is down")
        return super().embed(texts)


@pytest.fixture
def embedder() -> FailingEmbedder:
    return FailingEmbedder()


@pytest.fixture
async def agent(
    service: RunningService, embedder: FailingEmbedder
) -> AsyncIterator[httpx.AsyncClient]:
    """An agent of a service that embeds queries, and entries only if a write waits."""
    with closing(Index(service.services, embedder)) as index:
        service.app = build_app(
            service.services, ApiKeyAuthenticator(service.services), index=index
        )
        yield await service.agent("ada")


def _draft(key: str, text: str) -> dict[str, Any]:
    return {"namespace": "n", "key": key, "memory_type": "episodic", "value": {"text": text}}


async def _by_meaning(client: httpx.AsyncClient, query: str) -> list[str]:
    reply = await found(client, query, mode="dense")
    return [hit["entry"]["key"] for hit in reply["results"]]


async def test_created_entry_is_found_by_meaning(agent: httpx.AsyncClient) -> None:
    # The shard is in memory and has missed the vector of the first entry.
    assert (await agent.post(MEMORY, json=_draft("before", "zzz"))).status_code == 201
    assert await _by_meaning(agent, "lecrap") == []
    made = await agent.post(MEMORY, json=_draft("a", "parcel"), params=_INDEXED)
    assert made.status_code == 201
    assert await _by_meaning(agent, "lecrap") == ["a"]
    reply = await found(agent, "parcel")
    assert (reply["searched"], reply["pending"]) == (2, 1)


async def test_every_write_may_wait(agent: httpx.AsyncClient) -> None:
    made = await agent.post(MEMORY, json=_draft("a", "soup"))
    changed = await agent.patch(
        f"{MEMORY}/{made.json()['id']}",
        json={"value": {"text": "parcel"}},
        headers={"If-Match": "1"},
        params=_INDEXED,
    )
    assert changed.status_code == 200
    assert await _by_meaning(agent, "lecrap") == ["a"]
    put = await agent.put(MEMORY, json=_draft("b", "parcel"), params=_INDEXED)
    assert put.status_code == 201
    assert sorted(await _by_meaning(agent, "lecrap")) == ["a", "b"]
    body = {"entries": [_draft("c", "parcel"), _draft("d", "parcel")]}
    assert (await agent.post(f"{MEMORY}/batch", json=body, params=_INDEXED)).status_code == 200
    assert sorted(await _by_meaning(agent, "lecrap")) == ["a", "b", "c", "d"]


async def test_write_is_stored_when_the_embedder_fails(
    agent: httpx.AsyncClient, embedder: FailingEmbedder, service: RunningService
) -> None:
    embedder.fails = True
    headers = {"Idempotency-Key": "one"}
    refused = await agent.post(MEMORY, json=_draft("a", "parcel"), params=_INDEXED, headers=headers)
    assert_problem(refused, 503, "ENTRY_NOT_INDEXED")
    assert refused.json()["backlog"] == 1
    assert "1 changes are waiting" in refused.json()["message"]
    assert "retry-after" in refused.headers
    assert (await found(agent, "parcel"))["results"][0]["entry"]["key"] == "a"
    embedder.fails = False
    service.clock.advance(60)
    again = await agent.post(MEMORY, json=_draft("a", "parcel"), params=_INDEXED, headers=headers)
    assert (again.status_code, again.json()["version"]) == (201, 1)
    assert await _by_meaning(agent, "lecrap") == ["a"]


async def test_waiting_ends_in_time(
    agent: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findable, "FINDABLE_SECONDS", 0.0)
    refused = await agent.post(MEMORY, json=_draft("a", "parcel"), params=_INDEXED)
    assert_problem(refused, 503, "ENTRY_NOT_INDEXED")


async def test_embedding_job_skips_what_a_write_has_embedded(
    agent: httpx.AsyncClient, service: RunningService
) -> None:
    await agent.post(MEMORY, json=_draft("a", "parcel"), params=_INDEXED)
    await agent.post(MEMORY, json=_draft("b", "parcel"))
    with closing(Index(service.services, LetterEmbedder())) as index:
        job = EmbeddingJob(service.services, LetterEmbedder(), index.fields)
        with closing(job):
            assert await job.embed_some() == 1


async def test_without_an_embedder_there_is_nothing_to_wait_for(service: RunningService) -> None:
    agent = await service.agent("ada")
    made = await agent.post(MEMORY, json=_draft("a", "parcel"), params=_INDEXED)
    assert made.status_code == 201
    reply = await found(agent, "parcel")
    assert (reply["model"], reply["searched"], reply["pending"]) == (None, 1, 0)


async def test_unknown_wait_is_refused_and_nothing_is_stored(service: RunningService) -> None:
    agent = await service.agent("ada")
    refused = await agent.post(MEMORY, json=_draft("a", "x"), params={"wait_for": "ever"})
    assert_problem(refused, 400, "VALIDATION_ERROR")
    assert "wait_for" in refused.json()["message"]
    assert (await agent.get(MEMORY, params={"agent_id": "ada"})).json()["total"] == 0
