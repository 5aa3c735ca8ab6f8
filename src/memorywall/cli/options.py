"""Options that several commands share, and what they open."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import click

from memorywall.assembly import open_memory, settings_for
from memorywall.records.errors import ConfigurationError, StoreLockedError
from memorywall.records.tier import Tier
from memorywall.sdk.client import Client
from memorywall.sdk.local import open_local
from memorywall.wall.door import Door
from memorywall.wall.limits import check_agent

Command = TypeVar("Command", bound=Callable[..., Any])
Result = TypeVar("Result")

DATA = click.Path(path_type=Path, file_okay=False)

data_option = click.option("--data", type=DATA, required=True, help="The data directory.")
tenant_option = click.option("--tenant", default="default", show_default=True, help="The tenant.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def administer(
    data: Path, work: Callable[[Door], Coroutine[Any, Any, Result]], *, may_create: bool = False
) -> Result:
    """Runs administrative work on a data directory, beside a running server too.

    may_create: whether the work makes sense in a directory that holds no database yet
    """
    if not may_create:
        require_database(data)

    async def run() -> Result:
        async with open_memory(settings_for(data), exclusive=False) as door:
            return await work(door)

    return asyncio.run(run())


def require_database(data: Path) -> None:
    """Raises ConfigurationError when a data directory is not one, a mistyped one above all."""
    if not settings_for(data).database.exists():
        raise ConfigurationError(f"there is no database in {data}")


def client_options(command: Command) -> Command:
    """Where the memory is and whose: a server with a key, or a data directory without one."""
    for option in reversed(
        (
            click.option("--url", envvar="MEMORYWALL_URL", help="The server."),
            click.option("--key", envvar="MEMORYWALL_API_KEY", help="The API key."),
            click.option("--agent", envvar="MEMORYWALL_AGENT", help="The agent to speak for."),
            click.option("--data", type=DATA, help="Open this data directory; needs no server."),
        )
    ):
        command = option(command)
    return command


def open_client(url: str | None, key: str | None, agent: str | None, data: Path | None) -> Client:
    """The client these options describe. Raises ConfigurationError."""
    if data is None:
        if key is None:
            raise ConfigurationError(
                "give --key (or MEMORYWALL_API_KEY) for a server, or --data for a directory"
            )
        return Client(url, key, agent=agent)
    require_database(data)
    if agent is None:
        raise ConfigurationError("give --agent: whose memory in this directory is meant")
    try:
        return open_local(settings_for(data).database, agent=check_agent("--agent", agent))
    except StoreLockedError:
        raise StoreLockedError(
            "a server has this directory open; ask it with --url and --key instead of --data"
        ) from None


def filter_options(command: Command) -> Command:
    """The filters of RFC-0015 section 4.1."""
    for option in reversed(
        (
            click.option("--namespace", help="A namespace, or a prefix that ends in *."),
            click.option(
                "--type",
                "memory_type",
                type=click.Choice([tier.value for tier in Tier]),
                help="The tier.",
            ),
            click.option("--key-name", help="The entry's key."),
            click.option("--tag", "tags", multiple=True, help="All of these tags."),
            click.option("--any-tag", "tags_any", multiple=True, help="Any of these tags."),
            click.option("--task", "task_id", help="The task it is bound to."),
            click.option("--intent", "intent_id", help="The intent it is bound to."),
            click.option("--pinned/--not-pinned", default=None, help="Pinned entries or others."),
            click.option("--updated-after", help="An RFC 3339 instant."),
            click.option("--updated-before", help="An RFC 3339 instant."),
        )
    ):
        command = option(command)
    return command


def filter_arguments(options: dict[str, Any]) -> dict[str, Any]:
    """The options of `filter_options` as arguments of the client, without what is not given."""
    arguments = dict(options)
    arguments["key"] = arguments.pop("key_name", None)
    return {name: value for name, value in arguments.items() if value not in (None, ())}
