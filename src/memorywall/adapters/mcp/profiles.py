"""The MCP servers that memorywall offers, by the names of their profiles, and over stdio."""

from __future__ import annotations

from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from memorywall.adapters.mcp.graph_tools import GRAPH_INSTRUCTIONS, GRAPH_TOOLS
from memorywall.adapters.mcp.memory_tools import INSTRUCTIONS, MEMORY_TOOLS
from memorywall.adapters.mcp.resources import resource_handlers
from memorywall.adapters.mcp.tool import FindClient, Outage, make_server
from memorywall.records.clock import Clock, SystemClock
from memorywall.sdk.client import AsyncClient

_PROFILES = {
    "memory": (MEMORY_TOOLS, INSTRUCTIONS),
    "graph": (GRAPH_TOOLS, GRAPH_INSTRUCTIONS),
}


def make_profile(profile: str, client: FindClient, clock: Clock) -> Server[Any]:
    """The MCP server of a profile; see `make_server`.

    profile: `memory` or `graph`
    clock: tells since when memory is unavailable
    """
    (tools, instructions), outage = _PROFILES[profile], Outage(clock)
    handlers = resource_handlers(client, outage) if profile == "memory" else {}
    return make_server("memorywall", tools, instructions, client, outage, **handlers)


async def serve_stdio(profile: str, client: AsyncClient) -> None:
    """Serves a profile over standard input and output until the input ends.

    client: of the tools; the first call opens a directory, so that it can say why that fails
    """
    server = make_profile(profile, lambda _: client, SystemClock())
    async with stdio_server() as (received, sent):
        await server.run(received, sent, server.create_initialization_options())
