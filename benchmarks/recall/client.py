"""Stores conversations and searches them over the public API."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import httpx
from tqdm import tqdm

from benchmarks.recall.chats import Chat, DataSet, EvidenceQuestion
from benchmarks.recall.directories import ApiError, DataDirectory, Running
from benchmarks.recall.judging import DEEPEST, Judgement, judge
from benchmarks.recall.variants import Variant
from memorywall.assembly import LocalAuthenticator, open_memory, weights_for
from memorywall.recall.embedders import open_embedder
from memorywall.recall.index import Index
from memorywall.records.recall import MOST_HITS
from memorywall.server.app import build_app
from memorywall.settings import DEFAULT_TENANT

BATCH = 100
_TIMEOUT = 60.0

Record = Callable[[dict[str, Any]], None]
Client = Callable[[str], httpx.AsyncClient]
"""Returns a client for an agent."""


async def fill(client: Client, chats: Iterable[Chat]) -> int:
    """Creates every entry of these conversations, in order, and returns their number."""
    made = 0
    for chat in chats:
        async with client(chat.agent) as agent_client:
            await _close_namespaces(agent_client, chat)
            for start in range(0, len(chat.entries), BATCH):
                some = chat.entries[start : start + BATCH]
                await post(agent_client, "/api/v1/memory/batch", {"entries": some})
                made += len(some)
    return made


async def _close_namespaces(client: httpx.AsyncClient, chat: Chat) -> None:
    """Denies all other agents the shared namespaces of a collection, so that a search of another
    agent finds only its own collection."""
    shared = {one["namespace"] for one in chat.entries if one["memory_type"] == "semantic"}
    for namespace in shared:
        path = f"/api/v1/memory/namespaces/{namespace}"
        reply = await client.patch(path, json={"permissions": {"default": "none"}})
        if not reply.is_success:
            raise ApiError(f"PATCH {path}: {reply.status_code} {reply.text[:500]}")


async def ask(
    client: Client, data: DataSet, mode: str, title: str, record: Record | None = None
) -> list[Judgement]:
    """Searches for every question, one after the other, and judges each response.

    record: called with each question and its hits, with every signal; None to ask for no signals
    """
    judgements = []
    with tqdm(total=len(data.questions), desc=title, unit=" questions", leave=False) as progress:
        for chat in data.chats:
            # Several hits may be of one unit.
            limit = MOST_HITS if chat.units else DEEPEST
            async with client(chat.agent) as agent_client:
                for question in chat.questions:
                    body = {"query": question.text, "mode": mode, "limit": limit}
                    body["explain"] = record is not None
                    reply = await post(agent_client, "/api/v1/memory/search", body)
                    found = chat.found(hit["entry"]["key"] for hit in reply["results"])
                    judgements.append(judge(found[:DEEPEST], question.gold))
                    if record is not None:
                        record(_recorded(data, chat, question, title, reply["results"]))
                    progress.update()
    return judgements


def _recorded(
    data: DataSet, chat: Chat, question: EvidenceQuestion, title: str, hits: list[dict[str, Any]]
) -> dict[str, Any]:
    """A question with its hits: the unit, whether it is gold, the score and every signal."""
    units = [chat.units.get(hit["entry"]["key"], hit["entry"]["key"]) for hit in hits]
    return {
        "set": data.name,
        "agent": chat.agent,
        "title": title,
        "question": question.text,
        "category": question.category,
        "missed": sorted(question.gold - set(units)),
        "hits": [
            {
                "key": hit["entry"]["key"],
                "gold": unit in question.gold,
                "score": hit["score"],
                **hit["explain"],
            }
            for hit, unit in zip(hits, units, strict=True)
        ],
    }


async def post(client: httpx.AsyncClient, path: str, body: Mapping[str, Any]) -> Any:
    """The reply to a request. Raises ApiError."""
    reply = await client.post(path, json=body)
    if not reply.is_success:
        raise ApiError(f"POST {path}: {reply.status_code} {reply.text[:500]}")
    return reply.json()


def over_http(server: Running) -> Client:
    """Clients of a server."""

    def client(agent: str) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            base_url=server.url, headers=server.headers(agent), timeout=_TIMEOUT
        )

    return client


@asynccontextmanager
async def in_process(
    place: DataDirectory, embedder: str, variant: Variant
) -> AsyncIterator[Client]:
    """Clients of the application itself, in this process, which ranks in a way of its own."""
    settings = place.settings(embedder)
    async with open_memory(settings) as services:
        weights = variant.weights(weights_for(settings))
        index = Index(services, open_embedder(embedder), weights)
        app = build_app(services, LocalAuthenticator(DEFAULT_TENANT, "benchmark"), index=index)

        def client(agent: str) -> httpx.AsyncClient:
            return httpx.AsyncClient(
                base_url="http://memorywall.local",
                headers={"X-Agent-ID": agent},
                transport=httpx.ASGITransport(app),
                timeout=_TIMEOUT,
            )

        # This variant is no setting, because only the benchmark needs it.
        unchanged = patch("memorywall.recall.query_parser.remove_names", lambda query, names: query)
        with unchanged if variant.names_stay else nullcontext():
            yield client
