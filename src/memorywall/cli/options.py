"""Options that several commands share, and what they open."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from memorywall.assembly import open_memory, settings_for
from memorywall.cli.store_option import store_option
from memorywall.records.errors import ConfigurationError, StoreLockedError
from memorywall.records.tier import Tier
from memorywall.sdk.client import Client
from memorywall.sdk.local import open_settings
from memorywall.settings import DEFAULT_DATA, Settings
from memorywall.wall.door import Door
from memorywall.wall.limits import check_agent

Command = TypeVar("Command", bound=Callable[..., Any])
Result = TypeVar("Result")

DATA = click.Path(path_type=Path, file_okay=False)

_data_option = click.option("--data", type=DATA, help="The data directory.")
tenant_option = click.option("--tenant", default="default", show_default=True, help="The tenant.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def place_options(command: Command) -> Command:
    """Where the memory lies, for a command that opens it itself and takes it as `place`."""

    @store_option
    @_data_option
    @functools.wraps(command)
    def placed(*arguments: Any, data: Path | None, store: str | None, **options: Any) -> Any:
        return command(*arguments, place=place_of(data, store), **options)

    return cast(Command, placed)


def place_of(data: Path | None, store: str | None) -> Settings:
    """The settings for a data directory or a database. Raises ConfigurationError for neither."""
    if data is None and not store:
        raise ConfigurationError("give --data for a directory, or --store for PostgreSQL")
    return settings_for(Path(DEFAULT_DATA) if data is None else data, store=store or None)


def administer(
    place: Settings,
    work: Callable[[Door], Coroutine[Any, Any, Result]],
    *,
    may_create: bool = False,
    erases: bool = False,
) -> Result:
    """Runs administrative work on a store, beside a running server too.

    may_create: whether the work makes sense in a directory that holds no database yet
    erases: take the place of the server where none runs, whose business it is to erase
    """
    if not may_create:
        require_database(place)

    async def run(*, exclusive: bool) -> Result:
        async with open_memory(place, exclusive=exclusive) as door:
            return await work(door)

    if erases:
        with suppress(StoreLockedError):
            return asyncio.run(run(exclusive=True))
    return asyncio.run(run(exclusive=False))


def require_database(place: Settings) -> None:
    """Raises ConfigurationError when a data directory is not one, a mistyped one above all."""
    if place.store is None and not place.database.exists():
        raise ConfigurationError(f"there is no database in {place.database.parent}")


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
    place = settings_for(data)
    require_database(place)
    if agent is None:
        raise ConfigurationError("give --agent: whose memory in this directory is meant")
    try:
        return open_settings(place, check_agent("--agent", agent))
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
