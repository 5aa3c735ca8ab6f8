"""Connections of the official MCP client to memorywall."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import jsonschema_rs
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from memorywall.adapters.mcp.endpoint import mcp_endpoints
from memorywall.adapters.mcp.profiles import make_profile
from memorywall.records.clock import Clock
from memorywall.sdk.client import AsyncClient
from memorywall.server.app import build_app
from memorywall.service.access.api_keys import ApiKeyAuthenticator
from tests.support.process import START_LIMIT
from tests.support.service import RunningService

ERAS = ("legacy", "auto")
"""The handshake of 2025-11-25, and what the client finds out: 2026-07-28."""


class Caller:
    """Calls tools, and compares arguments and results with the schemas that the server lists."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._schemas: dict[str, Any] = {}

    async def __call__(self, tool: str, /, **arguments: Any) -> Any:
        """Returns the structured result of a call that succeeds."""
        described = (await self._tools())[tool]
        jsonschema_rs.validate(described.input_schema, arguments)
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, result.content
        jsonschema_rs.validate(described.output_schema, result.structured_content)
        return result.structured_content

    async def refused(self, tool: str, /, **arguments: Any) -> str:
        """Returns the text of a call that is refused."""
        result = await self.client.call_tool(tool, arguments)
        assert result.is_error, result.structured_content
        assert result.structured_content is None
        (content,) = result.content
        return str(content.text)

    async def _tools(self) -> dict[str, Any]:
        if not self._schemas:
            found = await self.client.list_tools()
            self._schemas = {one.name: one for one in found.tools}
        return self._schemas


Connect = Callable[..., Awaitable[Any]]


@asynccontextmanager
async def in_process(
    memory: AsyncClient, clock: Clock, *, era: str = "auto", profile: str = "memory"
) -> AsyncIterator[Caller]:
    """A connection to a server around a client."""
    server = make_profile(profile, lambda _: memory, clock)
    async with Client(server, mode=era, raise_exceptions=True) as client:
        yield Caller(client)


def app_of(service: RunningService) -> Any:
    """The application of a service, with the endpoints of MCP."""
    authenticator = ApiKeyAuthenticator(service.services)
    return build_app(service.services, authenticator, endpoints=mcp_endpoints())


@asynccontextmanager
async def over_http(
    app: Any, headers: dict[str, str], *, era: str = "auto", path: str = "/mcp"
) -> AsyncIterator[Caller]:
    """A connection to an application, without sockets."""
    transport = httpx2.ASGITransport(app)
    async with (
        httpx2.AsyncClient(transport=transport, headers=headers, timeout=START_LIMIT) as http,
        Client(
            streamable_http_client(f"http://127.0.0.1{path}", http_client=http), mode=era
        ) as client,
    ):
        yield Caller(client)
