"""Whose memory a call means: the client's own agent, given or learned."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from memorywall import AsyncClient, Client
from memorywall.exceptions import RequestError
from tests.support.process import ServerProcess
from tests.test_sdk_support import Either, Faults, FaultyTransport, fresh, server

pytestmark = pytest.mark.anyio
__all__ = ["server"]


@pytest.fixture(params=["blocking", "async"])
async def nameless(
    request: pytest.FixtureRequest, server: ServerProcess
) -> AsyncIterator[tuple[Either, str]]:
    """A client that was told nothing but its key, and the key's agent."""
    agent = fresh("billing")
    key = server.create_key(agent)
    if request.param == "blocking":
        with Client(server.url, key) as client:
            yield Either(client), agent
    else:
        async with AsyncClient(server.url, key) as twin:
            yield Either(twin), agent


async def test_a_query_means_the_own_agent(nameless: tuple[Either, str]) -> None:
    client, agent = nameless
    assert (await client.memory.query(memory_type="working")).total == 0
    made = await client.memory.set("invoices", "progress", {"n": 1})
    assert made.agent_id == agent
    assert (await client.memory.query(memory_type="working")) == [made]
    assert (await client.memory.query(memory_type="episodic")).total == 0


async def test_summary_and_events_mean_the_own_agent(nameless: tuple[Either, str]) -> None:
    client, agent = nameless
    assert (await client.memory.summary()).agent_id == agent
    assert await client.events.list() == []


async def test_own_write_reveals_the_agent_of_the_client(server: ServerProcess) -> None:
    faults = Faults()
    key = server.create_key(fresh("billing"))
    with Client(server.url, key, transport=FaultyTransport(faults)) as client:
        client.memory.set("invoices", "progress", {"n": 1})
        client.memory.query(memory_type="working")
        client.memory.get("invoices", "progress")
        client.memory.set("invoices", "progress", {"n": 2})
    assert [request.method for request in faults.requests] == ["POST", "GET", "GET", "PATCH"]
    assert faults.requests[-1].headers["If-Match"] == "1"


def test_a_server_that_does_not_tell_is_asked_once() -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        if request.url.path == "/api/v1/memory":
            page = {"entries": [_entry("someone", "working")], "total": 1, "limit": 9, "offset": 0}
            return httpx.Response(200, json=page)
        return httpx.Response(404, json={"error": "NOT_FOUND", "detail": "no such path"})

    with Client("http://x", "k", transport=httpx.MockTransport(answer)) as client:
        assert client.memory.get("ns", "key") is not None
        assert client.memory.get("ns", "key") is not None
        with pytest.raises(RequestError, match="agent_id"):
            client.memory.summary()
    assert asked.count("/api/v1/agents/me") == 1


def test_set_does_not_change_another_agents_entry() -> None:
    """A coordinator or a replacement may be shown working memory that it cannot write."""
    sent: list[tuple[str, str]] = []
    shown = [_entry("other", "working"), _entry("me", "episodic")]

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append((request.method, request.url.path))
        if request.method == "POST":
            return httpx.Response(201, json=_entry("me", "working"))
        return httpx.Response(
            200, json={"entries": shown, "total": len(shown), "limit": 100, "offset": 0}
        )

    transport = httpx.MockTransport(answer)
    with Client("http://x", "k", agent="me", transport=transport) as client:
        own = client.memory.get("ns", "key")
        assert own is not None
        assert own.agent_id == "me"
        assert {entry.agent_id for entry in client.memory.query(task_id="t1")} == {"me", "other"}
        client.memory.set("ns", "key", {"n": 1}, memory_type="working")
    assert sent[-1] == ("POST", "/api/v1/memory")
    with Client("http://x", "k", agent="me", task_id="t1", transport=transport) as successor:
        inherited = successor.memory.get("ns", "key")
        assert inherited is not None
        assert inherited.agent_id == "other"


def _entry(agent: str, tier: str) -> dict[str, object]:
    return {
        "id": f"mem_{agent}_{tier}",
        "agent_id": agent,
        "namespace": "ns",
        "key": "key",
        "value": {"n": 1},
        "memory_type": tier,
        "scope": {"task_id": "t1"},
        "version": 3,
    }
