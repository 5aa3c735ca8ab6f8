"""`memorywall mcp`."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from memorywall.cli.client_command import (
    choose_directory,
    client_options,
    given_connection,
    given_users,
    user_option,
)
from memorywall.records.clock import SystemClock
from memorywall.records.errors import ConfigurationError

if TYPE_CHECKING:
    from memorywall.adapters.hosts.connection import HostConnection
    from memorywall.sdk.client import AsyncClient

_INSTALL = "this command needs the MCP package: pip install 'memorywall[mcp]'"


@click.command()
@client_options
@user_option
@click.option(
    "--profile",
    type=click.Choice(["memory", "graph"]),
    default="memory",
    show_default=True,
    help="The tools: memory, or those of the reference memory server (entities, relations,"
    " observations).",
)
@click.option(
    "--import",
    "imported",
    type=click.File(encoding="utf-8"),
    help="Add a file of the reference memory server to the graph, and end.",
)
def command(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    profile: str,
    imported: TextIO | None,
) -> None:
    """Serve memory to an agent over standard input and output.

    An agent's host starts this command; see docs/mcp.md for its configuration. The memory is that
    of a server, or of a data directory, which several of these processes may have.
    """
    if find_spec("mcp") is None:
        raise ConfigurationError(_INSTALL)
    connection = given_connection()
    if connection is not None and imported is None:
        asyncio.run(_serve_connection(profile, connection))
        return
    client = _open_async(url, key, agent, data) if connection is None else connection.open()
    users = given_users()
    bound = client.for_user(*users) if users else client
    if imported is not None:
        click.echo(asyncio.run(_import(client, bound, imported)))
        return
    asyncio.run(_serve(profile, client, bound))


async def _serve(profile: str, client: AsyncClient, bound: AsyncClient) -> None:
    from memorywall.adapters.mcp.profiles import serve_stdio

    async with client:
        await serve_stdio(profile, bound)


async def _serve_connection(profile: str, connection: HostConnection) -> None:
    """Serves the memory of a connection, to the host and to its hooks."""
    from memorywall.adapters.hosts.hook import log_of
    from memorywall.adapters.hosts.hook_relay import hook_relay
    from memorywall.adapters.hosts.host_memory import HostMemory
    from memorywall.adapters.mcp.profiles import serve_stdio

    client = connection.open()
    memory = HostMemory(connection, client, log_of(connection, SystemClock()))
    bound = client if connection.user is None else client.for_user(connection.user)
    async with client, hook_relay(connection.folder, memory):
        await serve_stdio(profile, bound)


async def _import(client: AsyncClient, bound: AsyncClient, lines: TextIO) -> str:
    from memorywall.adapters.mcp.graph import import_graph, read_lines

    graph = read_lines(lines)
    async with client:
        entities, observations, relations, waiting = await import_graph(bound, graph)
    told = f"added {entities} entities, {observations} observations and {relations} relations"
    return f"{told}; {waiting} wait for the decision of a person" if waiting else told


def _open_async(
    url: str | None, key: str | None, agent: str | None, data: Path | None
) -> AsyncClient:
    """The client for these options. The first call of a tool opens the data directory, which is
    created if it is missing. Raises ConfigurationError."""
    directory = choose_directory(url, key, data)
    if directory is not None:
        from memorywall.in_process.opening import DEFAULT_AGENT
        from memorywall.in_process.shared_directory import open_shared_directory

        return open_shared_directory(directory, agent or DEFAULT_AGENT)
    from memorywall.sdk.client import AsyncClient

    return AsyncClient(url, key, agent=agent)
