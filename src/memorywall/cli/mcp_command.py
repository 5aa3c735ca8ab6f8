"""`memorywall mcp`."""

from __future__ import annotations

import asyncio
import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from memorywall.cli.client_command import (
    choose_directory,
    client_options,
    given_users,
    user_option,
)
from memorywall.records.errors import ConfigurationError

if TYPE_CHECKING:
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
    of a server, or of a data directory that no other process has open.
    """
    if find_spec("mcp") is None:
        raise ConfigurationError(_INSTALL)
    client = _open_async(url, key, agent, data)
    users = given_users()
    bound = client.for_user(*users) if users else client
    if imported is not None:
        click.echo(asyncio.run(_import(client, bound, imported)))
        return
    from memorywall.adapters.mcp.profiles import serve_stdio

    asyncio.run(serve_stdio(profile, client, bound))


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
        from memorywall.in_process.opening import DEFAULT_AGENT, open_local_async

        return open_local_async(f"{directory}{os.sep}", agent=agent or DEFAULT_AGENT)
    from memorywall.sdk.client import AsyncClient

    return AsyncClient(url, key, agent=agent)
