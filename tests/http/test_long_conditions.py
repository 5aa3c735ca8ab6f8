"""A request with a long condition delays no other request, and reads a limited amount."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from memorywall.records.condition import Condition
from memorywall.records.entry import Entry
from memorywall.service.entries import conditions
from tests.http.checks import MEMORY, assert_problem, make
from tests.support.service import RunningService

pytestmark = pytest.mark.anyio
DEADLINE = 20.0
WHERE = 'value.l contains 1 and value.t = "wanted"'
Send = Callable[[httpx.AsyncClient], Awaitable[httpx.Response]]
LONG: dict[str, tuple[str, str, dict[str, Any]]] = {
    "query": ("GET", MEMORY, {}),
    "ordered": ("GET", MEMORY, {"order_by": "key"}),
    "count": ("GET", MEMORY, {"count_only": "true"}),
    "as_of": ("GET", MEMORY, {"as_of": "2026-02-02T02:40:00Z"}),
    "export": ("GET", f"{MEMORY}/export", {}),
    "delete": ("DELETE", f"{MEMORY}/batch", {}),
}


@pytest.fixture
async def ada(service: RunningService) -> httpx.AsyncClient:
    """An agent with two sealed entries, of which one meets `WHERE`; too large to be evaluated on
    the event loop of a server with PostgreSQL."""
    client = await service.agent("ada")
    for text in ("wanted", "other"):
        value = {"l": [1, 2, 3], "t": text, "padding": "x" * 6_000}
        await make(client, text, memory_type="episodic", sensitivity="restricted", value=value)
    return client


@pytest.mark.parametrize("surface", LONG)
async def test_other_requests_are_answered_during_an_evaluation(
    service: RunningService, ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, surface: str
) -> None:
    begun, is_over = threading.Event(), threading.Event()
    evaluate = conditions.is_met_by

    def wait(condition: Condition, entry: Entry) -> bool:
        begun.set()
        assert is_over.wait(DEADLINE), "no other request was answered"
        return evaluate(condition, entry)

    monkeypatch.setattr(conditions, "is_met_by", wait)
    other = await service.agent("bob", tenant="other")
    method, path, query = LONG[surface]
    params = {"agent_id": "ada", "where": WHERE, **query}
    long = asyncio.ensure_future(ada.request(method, path, params=params))
    assert await asyncio.to_thread(begun.wait, DEADLINE)
    assert (await other.get("/health")).is_success
    assert (await other.get(MEMORY, params={"agent_id": "bob"})).json()["total"] == 0
    # Another request of the same agent may be answered as well.
    assert (await ada.get("/api/v1/agents/me")).is_success
    assert not long.done()
    is_over.set()
    reply = await long
    assert reply.is_success, reply.text
    if surface == "delete":
        assert reply.json() == {"deleted": 1}
    elif surface == "export":
        assert len(reply.text.splitlines()) == 1
    else:
        assert reply.json()["total"] == 1


@pytest.mark.parametrize("surface", LONG)
async def test_a_condition_has_one_budget(
    ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, surface: str
) -> None:
    method, path, query = LONG[surface]

    async def ask(where: str) -> httpx.Response:
        params = {"agent_id": "ada", "where": where, **query}
        return await ada.request(method, path, params=params)

    # Two entries with about six thousand bytes each.
    monkeypatch.setattr(conditions, "MOST_STEPS", 150_000)
    many = " or ".join(f"value.l contains {number}" for number in range(10))
    problem = assert_problem(await ask(many), 400, "SCAN_LIMIT")
    assert "fewer" in problem["detail"]
    assert "namespace" in problem["detail"]
    long_text = f'value.t contains "{"x" * 3_900}"'
    assert_problem(await ask(long_text), 400, "SCAN_LIMIT")
    assert (await ask(f'value.t contains "{"x" * 100}" or value.n in [1, 2, 3]')).is_success
    monkeypatch.setattr(conditions, "MOST_STEPS", 3_000)
    fields = " or ".join(f'tags contains "t{number}"' for number in range(20))
    assert_problem(await ask(fields), 400, "SCAN_LIMIT")


async def test_pages_of_an_export_share_the_budget(
    service: RunningService, ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first page would be within the budget, and all of them are not."""
    monkeypatch.setattr("memorywall.operations.queries._EXPORT_PAGE", 1)
    scanned: list[str] = []
    evaluate = conditions.is_met_by

    def count(condition: Condition, entry: Entry) -> bool:
        scanned.append(entry.key)
        return evaluate(condition, entry)

    monkeypatch.setattr(conditions, "is_met_by", count)
    params = {"agent_id": "ada", "where": "value.l contains 1"}
    reply = await ada.get(f"{MEMORY}/export", params=params)
    assert len(reply.text.splitlines()) == 2
    assert sorted(scanned) == ["other", "wanted"]


async def test_calls_of_one_request_give_way(service: RunningService) -> None:
    client = await service.agent("ada")
    calls = [{"jsonrpc": "2.0", "method": "whoami", "id": number} for number in range(100)]
    running = asyncio.ensure_future(client.post("/rpc", json=calls))
    iterations = 0
    while not running.done():
        await asyncio.sleep(0)
        iterations += 1
    assert len((await running).json()) == 100
    assert iterations >= 100
