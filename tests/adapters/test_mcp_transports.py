"""MCP over stdio, as a host starts it, and over HTTP: who may call, and from which pages."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

import memorywall
from memorywall.records.principal import Permission
from tests.adapters.mcp_clients import Caller, app_of, over_http
from tests.cli.shell import environment, refuse
from tests.support.asgi import AsgiClient, AsgiTransport
from tests.support.process import START_LIMIT, ServerProcess
from tests.support.programs import run_python
from tests.support.service import RunningService, open_service

pytestmark = pytest.mark.anyio

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@asynccontextmanager
async def over_stdio(*arguments: str, era: str = "auto", **variables: str) -> AsyncIterator[Caller]:
    """A connection to `memorywall mcp`, which the client starts as a process."""
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "memorywall", "mcp", *arguments],
        env=environment(*arguments, **variables),
    )
    async with Client(stdio_client(command), mode=era) as client:
        yield Caller(client)


@pytest.mark.sqlite("the command opens the directory itself")
async def test_a_host_starts_it_on_a_directory(tmp_path: Path) -> None:
    """The first call makes the directory; `--user` binds every tool. A directory that another
    process has open is a result, until that process closes it."""
    async with over_stdio("--data", str(tmp_path / "mine"), "--user", "ana") as call:
        with memorywall.open(f"{tmp_path / 'mine'}/"):
            text = await call.refused("recall", question="How does Ana travel?")
            assert text.startswith("memory is unavailable since 20")
            assert "another process" in text
        made = await call("remember", text="Ana travels by train")
        found = await call("recall", question="How does Ana travel?")
        assert [one["id"] for one in found["memories"]] == [made["id"]]
        assert found["memories"][0]["people"] == ["ana"]
        assert "another person" in await call.refused("list_memories", person="bob")
    assert (tmp_path / "mine").is_dir()


async def test_a_host_starts_it_for_a_server(tmp_path: Path) -> None:
    """The key comes from the environment. A server that is killed is a result, not an end."""
    with ServerProcess(tmp_path / "data") as server:
        key = server.create_key("billing")
        async with over_stdio("--url", server.url, era="legacy", MEMORYWALL_API_KEY=key) as call:
            made = await call("remember", text="Ana travels by train")
            async with over_http_of(server, key) as other:
                found = await other("recall", question="How does Ana travel?")
                assert [one["id"] for one in found["memories"]] == [made["id"]]
            server.kill()
            for _ in range(2):
                text = await call.refused("recall", question="How does Ana travel?")
                assert text.startswith("memory is unavailable since 20")


@asynccontextmanager
async def over_http_of(server: ServerProcess, key: str) -> AsyncIterator[Caller]:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=START_LIMIT) as http,
        Client(streamable_http_client(f"{server.url}/mcp", http_client=http)) as client,
    ):
        yield Caller(client)


def test_a_server_imports_the_package_with_the_first_request() -> None:
    program = """
import sys
import memorywall.server.serve
from memorywall.adapters.mcp.endpoint import mcp_endpoints
assert mcp_endpoints()
print(sorted({"jwt", "mcp", "mcp_types", "pydantic"} & sys.modules.keys()))
"""
    assert run_python("-c", program, limit=START_LIMIT).stdout == "[]\n"


def test_the_command_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "--key" in refuse("mcp")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.delitem(sys.modules, "memorywall.cli.mcp_command", raising=False)
    assert "memorywall[mcp]" in refuse("mcp", "--key", "k")


@pytest.fixture
async def app(service: RunningService) -> Any:
    return app_of(service)


async def ask(app: Any, headers: dict[str, str], path: str = "/mcp") -> httpx.Response:
    """The reply to a request without a handshake."""
    client = AsgiClient(app, "http://127.0.0.1", ACCEPT | headers)
    return await client.post(path, json=LIST)


async def test_a_key_is_required(service: RunningService, app: Any) -> None:
    key = await service.key("billing")
    for headers in ({}, {"X-API-Key": "wrong"}, {"Authorization": "Bearer wrong"}):
        reply = await ask(app, headers)
        assert reply.status_code == 401
        assert reply.headers["www-authenticate"] == "Bearer"
        assert reply.json()["error"] == "UNAUTHENTICATED"
    for headers in ({"X-API-Key": key}, {"Authorization": f"Bearer {key}"}):
        assert (await ask(app, headers)).status_code == 200
    reply = await ask(app, {"X-API-Key": key, "X-Agent-ID": "support"})
    assert (reply.status_code, reply.json()["error"]) == (403, "ACCESS_DENIED")
    twice = httpx.Headers([("X-API-Key", key), ("X-API-Key", key), *ACCEPT.items()])
    async with httpx.AsyncClient(transport=AsgiTransport(app), base_url="http://127.0.0.1") as http:
        reply = await http.post("/mcp", json=LIST, headers=twice)
        assert reply.status_code == 400


async def test_a_revoked_key_ends_with_the_next_call(service: RunningService, app: Any) -> None:
    key = await service.key("billing")
    admin = await service.agent("boss", permissions=list(Permission))
    async with over_http(app, {"X-API-Key": key}) as call:
        await call("remember", text="Ana travels by train")
        await admin.delete(f"/api/v1/keys/{key.partition('.')[0]}")
        with pytest.raises(MCPError, match="error response"):
            await call.client.call_tool("list_memories", {})
    assert (await ask(app, {"X-API-Key": key})).status_code == 401


async def test_a_key_without_the_right_is_a_result(service: RunningService, app: Any) -> None:
    key = await service.key("reader", permissions=[Permission.READ])
    async with over_http(app, {"X-API-Key": key}) as call:
        assert "memory.write" in await call.refused("remember", text="Ana travels by train")
        assert (await call("list_memories"))["total"] == 0


async def test_pages_of_other_origins_are_refused(tmp_path: Path) -> None:
    """A name of another site may lead to this machine (DNS rebinding): the host does not help."""
    async with open_service(tmp_path, cors_origins=("https://app.example",)) as service:
        app, key = app_of(service), await service.key("billing")
        for origin, status in (
            ("http://evil.example", 403),
            ("http://127.0.0.1.evil.example", 403),
            ("null", 403),
            ("http://localhost:3000", 200),
            ("http://[::1]", 200),
            ("https://app.example", 200),
        ):
            reply = await ask(app, {"X-API-Key": key, "Origin": origin, "Host": "evil.example"})
            assert reply.status_code == status, origin


async def test_only_requests_are_taken(service: RunningService, app: Any) -> None:
    """The server sends nothing on its own, so that there is no stream and no session to end."""
    key = await service.key("billing")
    client = AsgiClient(app, "http://127.0.0.1", {"X-API-Key": key})
    for method in ("GET", "DELETE"):
        reply = await client.request(method, "/mcp")
        assert (reply.status_code, reply.headers["allow"]) == (405, "POST")
    large = await client.post("/mcp", content=b"x" * 2_000_000, headers=ACCEPT)
    assert large.status_code == 413
    reply = await client.post(
        "/mcp", content=b"{", headers=ACCEPT | {"Content-Type": "application/json"}
    )
    assert reply.status_code == 400


async def test_limits_and_metrics_apply(tmp_path: Path) -> None:
    async with open_service(tmp_path, principal_rate=0.001, rate_burst=4000.0) as service:
        app, key = app_of(service), await service.key("billing")
        codes = [(await ask(app, {"X-API-Key": key})).status_code for _ in range(6)]
        assert (codes[0], codes[-1]) == (200, 429)
        statuses = service.services.requests.of("mcp").statuses
        assert statuses[429] == codes.count(429)
