"""Putting conversations in and asking for them, over the public API."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import httpx
from tqdm import tqdm

from benchmarks.recall.chats import Asked, Chat, DataSet
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
"""Gives a client that speaks for an agent."""


async def fill(client: Client, chats: Iterable[Chat]) -> int:
    """Creates every entry of these conversations, in order; returns how many."""
    made = 0
    for chat in chats:
        async with client(chat.agent) as speaking:
            await _close_namespaces(speaking, chat)
            for start in range(0, len(chat.entries), BATCH):
                some = chat.entries[start : start + BATCH]
                await post(speaking, "/api/v1/memory/batch", {"entries": some})
                made += len(some)
    return made


async def _close_namespaces(client: httpx.AsyncClient, chat: Chat) -> None:
    """Takes the shared namespaces of a collection from all other agents, which are asked of their
    own collection alone."""
    shared = {one["namespace"] for one in chat.entries if one["memory_type"] == "semantic"}
    for namespace in shared:
        path = f"/api/v1/memory/namespaces/{namespace}"
        reply = await client.patch(path, json={"permissions": {"default": "none"}})
        if not reply.is_success:
            raise ApiError(f"PATCH {path}: {reply.status_code} {reply.text[:500]}")


async def ask(
    client: Client, data: DataSet, mode: str, title: str, record: Record | None = None
) -> list[Judgement]:
    """Asks every question as it is written, one after the other, and judges each reply.

    record: called with each question and its hits, with every signal; None to ask for no signals
    """
    judgements = []
    with tqdm(total=len(data.questions), desc=title, unit=" questions", leave=False) as progress:
        for chat in data.chats:
            # Several hits may be of one unit.
            limit = MOST_HITS if chat.units else DEEPEST
            async with client(chat.agent) as speaking:
                for asked in chat.questions:
                    body = {"query": asked.text, "mode": mode, "limit": limit}
                    body["explain"] = record is not None
                    reply = await post(speaking, "/api/v1/memory/search", body)
                    found = chat.found(hit["entry"]["key"] for hit in reply["results"])
                    judgements.append(judge(found[:DEEPEST], asked.gold))
                    if record is not None:
                        record(_recorded(data, chat, asked, title, reply["results"]))
                    progress.update()
    return judgements


def _recorded(
    data: DataSet, chat: Chat, asked: Asked, title: str, hits: list[dict[str, Any]]
) -> dict[str, Any]:
    """A question with its hits: the unit, whether it is gold, the score and every signal."""
    units = [chat.units.get(hit["entry"]["key"], hit["entry"]["key"]) for hit in hits]
    return {
        "set": data.name,
        "agent": chat.agent,
        "title": title,
        "question": asked.text,
        "category": asked.category,
        "missed": sorted(asked.gold - set(units)),
        "hits": [
            {
                "key": hit["entry"]["key"],
                "gold": unit in asked.gold,
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
    async with open_memory(settings) as context:
        weights = variant.weights(weights_for(settings))
        index = Index(context, open_embedder(embedder), weights)
        app = build_app(context, LocalAuthenticator(DEFAULT_TENANT, "benchmark"), index=index)

        def client(agent: str) -> httpx.AsyncClient:
            return httpx.AsyncClient(
                base_url="http://memorywall.local",
                headers={"X-Agent-ID": agent},
                transport=httpx.ASGITransport(app),
                timeout=_TIMEOUT,
            )

        # No weight says this, and nobody but a benchmark wants it otherwise.
        changed = "memorywall.recall.query_parser.remove_names"
        left_alone = patch(changed, lambda query, names: query)
        with left_alone if variant.names_stay else nullcontext():
            yield client
