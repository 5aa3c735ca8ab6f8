"""No callback of the event loop takes long, however long the turns, texts and contexts are.

Each test does on much memory what would hold up all other requests if it took place in one piece on
the event loop. It measures processor time, so a busy machine does not matter. What a process loads
once is loaded before, by the same requests on little memory.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.loop_time import LONGEST, loop_time
from tests.support.service import RunningService, open_service

pytestmark = pytest.mark.anyio

SENTENCE = "We decided that invoice 4711 of Ada Smith must be paid by Monday, 2 March. "
WIDE, NARROW = 1_000_000, 20_000
"""Windows, in tokens: for all turns of a session, and for few."""
QUERY = "the budget and the invoice of Monday " * 52
"""As long as a query may be, without a question."""


@pytest.fixture(params=["sqlite", "postgres"])
async def service(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[RunningService]:
    """A service on either store, whatever the other tests run on."""
    url = request.getfixturevalue("database") if request.param == "postgres" else None
    async with open_service(tmp_path, database_url=url) as opened:
        yield opened


async def post(client: httpx.AsyncClient, path: str, **body: Any) -> dict[str, Any]:
    """The reply of the server."""
    reply = await client.post(f"/api/v1/{path}", json=body)
    assert reply.is_success, reply.text
    return dict(reply.json())


async def new_session(client: httpx.AsyncClient, count: int, text: str) -> str:
    """A new session with so many turns."""
    session = (await post(client, "sessions", token_budget=8_000_000))["id"]
    for start in range(0, count, 100):
        said = [
            {"role": "user", "content": f"{number} {text}"}
            for number in range(start, min(start + 100, count))
        ]
        await post(client, f"sessions/{session}/turns", turns=said)
    return str(session)


async def write(client: httpx.AsyncClient, count: int, text: str, namespace: str) -> None:
    """Writes so many entries."""
    entries = [
        {
            "namespace": namespace,
            "key": f"k{number}",
            "value": {"text": f"{number} {text}"},
            "memory_type": "episodic",
        }
        for number in range(count)
    ]
    await post(client, "memory/batch", entries=entries)


async def longest(client: httpx.AsyncClient, method: str, path: str, **body: Any) -> float:
    """The seconds of the longest callback during a request."""
    async with loop_time() as measured:
        reply = await client.request(
            method, f"/api/v1/{path}", json=None if method == "GET" else body
        )
    assert reply.is_success, reply.text
    return measured.longest


async def use_session(client: httpx.AsyncClient, turns: int, text: str) -> dict[str, float]:
    """The longest callback of each operation on a session with so many turns of a text."""
    session = await new_session(client, turns, text)
    found = {}
    for window in (WIDE, NARROW):
        asked = {"session_id": session, "window": window}
        found[f"context of {window}"] = await longest(client, "POST", "context", **asked)
    stored = (await post(client, "context", session_id=session, window=WIDE))["id"]
    found["context shown"] = await longest(client, "GET", f"context/{stored}")
    found["fork"] = await longest(client, "POST", f"sessions/{session}/fork")
    path = f"sessions/{session}/turns"
    await post(client, path, turns=[{"role": "user", "content": text * 8}] * 100)
    found["checkpoint"] = await longest(client, "POST", f"sessions/{session}/checkpoints")
    said = [{"role": "user", "content": text * (turns // 14)}] * 100
    found["turns"] = await longest(client, "POST", path, turns=said)
    return found


async def search(client: httpx.AsyncClient, count: int, text: str) -> dict[str, float]:
    """The longest callback of each search of so many entries with a text."""
    found = {}
    for name in ("first", "after-changes"):
        await write(client, count, text, name)
        found[name] = await longest(client, "POST", "memory/search", query=QUERY, limit=100)
    return found


async def test_a_long_session_holds_up_no_other_request(service: RunningService) -> None:
    """Turns, checkpoints, contexts and forks of a long session give way on both stores."""
    await use_session(await service.agent("before"), 14, SENTENCE)
    found = await use_session(await service.agent("a"), 1_400, SENTENCE)
    assert {name: took for name, took in found.items() if took > LONGEST} == {}


async def test_a_checkpoint_of_long_turns_holds_up_no_other_request(
    service: RunningService,
) -> None:
    client = await service.agent("a")
    session = await new_session(client, 800, SENTENCE * 50)
    took = await longest(client, "POST", f"sessions/{session}/checkpoints")
    assert took < LONGEST


async def test_long_texts_hold_up_no_other_request(service: RunningService) -> None:
    """Searches read long texts, when they load the index and when they show passages, in a
    thread."""
    await search(await service.agent("before"), 3, SENTENCE)
    found = await search(await service.agent("a"), 100, SENTENCE * 100)
    assert {name: took for name, took in found.items() if took > LONGEST} == {}
