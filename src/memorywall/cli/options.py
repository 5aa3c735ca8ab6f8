"""Options that several commands share, and the stores that they open."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable, Coroutine
from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
from click.core import ParameterSource

from memorywall.cli.output import print_json
from memorywall.cli.setting_options import located
from memorywall.cli.table_options import given_options, table_options
from memorywall.configuration.reader import FLAG, Configuration
from memorywall.expressions.entry_fields import ENTRY_FIELDS
from memorywall.expressions.parser import parse
from memorywall.expressions.printer import show_position
from memorywall.records.errors import ConfigurationError, StoreLockedError
from memorywall.records.feature_errors import ExpressionError
from memorywall.records.recall import DEFAULT_HITS, MOST_HITS
from memorywall.records.tier import Tier
from memorywall.settings import Settings
from memorywall.wire.entries import Conditions

if TYPE_CHECKING:
    from memorywall.sdk.client import Client
    from memorywall.service.requests.services import SharedServices

Command = TypeVar("Command", bound=Callable[..., Any])
Result = TypeVar("Result")

_OWN_CONDITIONS = ("session_id", "kind", "status", "state", "about", "origin", "source")
_LOCATIONS = ("data", "database_url")

tenant_option = click.option("--tenant", default="default", show_default=True, help="The tenant.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
type_option = click.option(
    "--type", "memory_type", type=click.Choice([tier.value for tier in Tier]), help="The tier."
)
hits_option = click.option(
    "--limit",
    default=DEFAULT_HITS,
    show_default=True,
    type=click.IntRange(1, MOST_HITS),
    help="The most results.",
)


def limit_option(default: int, most: int = 1000) -> Callable[[Command], Command]:
    """Returns the option for the most items of a list."""
    return click.option("--limit", default=default, show_default=True, type=click.IntRange(1, most))


def status_option(statuses: type[StrEnum]) -> Callable[[Command], Command]:
    """Returns the option for the status of the items of a list."""
    return click.option(
        "--status",
        type=click.Choice([status.value for status in statuses]),
        metavar="STATUS",
        help=f"Only those that are {', '.join(statuses)}.",
    )


def all_options(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Returns a decorator that adds options, in this order."""

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def print_result(
    show: Callable[[Any], None], show_json: Callable[[Any], None] = print_json
) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Adds `--json` to a command, and prints what it returns.

    show: prints the result for people
    show_json: prints the result with `--json`; default: one JSON document
    """

    def add(command: Callable[..., Any]) -> Callable[..., None]:
        @json_option
        @functools.wraps(command)
        def run(*arguments: Any, as_json: bool, **options: Any) -> None:
            (show_json if as_json else show)(command(*arguments, **options))

        return run

    return add


def storage_options(command: Command) -> Command:
    """Adds the options of a store for a command that opens it, which gets it as `storage`."""

    @located
    @functools.wraps(command)
    def with_options(*arguments: Any, configuration: Configuration, **options: Any) -> Any:
        if not (configuration.is_given("data") or configuration.is_given("database_url")):
            raise ConfigurationError("give --data for a directory, or --store for PostgreSQL")
        return command(*arguments, storage=configuration.settings, **options)

    return cast(Command, with_options)


server_options = all_options(
    click.option("--url", envvar="MEMORYWALL_URL", help="The server; without --data and --store."),
    click.option("--key", envvar="MEMORYWALL_API_KEY", help="The API key of an administrator."),
)


def place_options(command: Command) -> Command:
    """Adds the options of a server and those of a store, for a command that asks the one or opens
    the other. The command gets it as `place`: the client of the server, or the settings of the
    store."""

    @server_options
    @located
    @functools.wraps(command)
    def placed(
        *arguments: Any,
        configuration: Configuration,
        url: str | None,
        key: str | None,
        **options: Any,
    ) -> Any:
        if names_store(configuration, url):
            return command(*arguments, place=configuration.settings, **options)
        if key is None:
            raise ConfigurationError(
                "give --data for a directory, --store for PostgreSQL, or --url and --key for a"
                " server"
            )
        from memorywall.sdk.client import Client

        with Client(url, key) as client:
            return command(*arguments, place=client, **options)

    return cast(Command, placed)


def tenant_of_key(client: Client, wanted: str | None = None) -> str:
    """Returns the tenant of the key of a server's client.

    wanted: the tenant that the command is about; default: that of `--tenant`
    Raises UsageError for another tenant, which only the store reaches.
    """
    context = click.get_current_context()
    source = context.get_parameter_source("tenant")
    if wanted is None and source not in (None, ParameterSource.DEFAULT):
        wanted = context.params["tenant"]
    own = client.whoami().tenant
    if wanted not in (None, own):
        raise click.UsageError(
            "this is not the tenant of the API key; other tenants need --data or --store"
        )
    return own


def administer(
    storage: Settings,
    work: Callable[[SharedServices], Coroutine[Any, Any, Result]],
    *,
    may_create: bool = False,
    erases: bool = False,
) -> Result:
    """Runs administrative work on a store, also beside a running server.

    may_create: whether the work may create a database in the directory; default: false
    erases: whether the command erases deleted bytes if no server runs; default: false
    """
    # Imported here, as the client is, because help and errors of a command need neither.
    import asyncio

    from memorywall.assembly import open_memory

    if not may_create:
        require_database(storage)

    async def run(*, exclusive: bool) -> Result:
        async with open_memory(storage, exclusive=exclusive) as services:
            return await work(services)

    if erases:
        with suppress(StoreLockedError):
            return asyncio.run(run(exclusive=True))
    return asyncio.run(run(exclusive=False))


def require_database(storage: Settings) -> None:
    """Raises ConfigurationError for a directory without a database, such as a mistyped one."""
    if storage.database_url is None and not storage.sqlite_path.exists():
        directory = storage.sqlite_path.parent
        raise ConfigurationError(
            f"there is no database in {directory};"
            f" `memorywall init --data {shlex.quote(str(directory))}` creates one"
        )


def names_store(configuration: Configuration, url: str | None) -> bool:
    """Returns whether a command that asks a server or opens a store has to open the store: where an
    option names the store, or where it is set and no server is named."""
    is_named = any(configuration.origins[one] == FLAG for one in _LOCATIONS)
    is_set = any(configuration.is_given(one) for one in _LOCATIONS)
    return is_named or (is_set and not url)


def _check_where(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> str | None:
    """Parses the condition before it is sent, to show the position of an error."""
    if text is not None:
        try:
            parse(text, ENTRY_FIELDS)
        except ExpressionError as error:
            raise click.BadParameter(f"{error.detail}\n{show_position(text, error)}") from None
    return text


filter_options = all_options(
    click.option("--namespace", help="A namespace, or a prefix followed by *."),
    type_option,
    click.option("--key-name", help="The entry's key."),
    click.option("--key-prefix", help="The beginning of the key."),
    click.option("--tag", "tags", multiple=True, help="All of these tags."),
    click.option("--any-tag", "tags_any", multiple=True, help="Any of these tags."),
    click.option("--task", "task_id", help="The task that the entry is bound to."),
    click.option("--intent", "intent_id", help="The intent that the entry is bound to."),
    click.option(
        "--pinned/--not-pinned", default=None, help="Pinned entries only, or other entries only."
    ),
    click.option("--created-after", help="An RFC 3339 instant or a date."),
    click.option("--created-before", help="An RFC 3339 instant or a date."),
    click.option("--updated-after", help="An RFC 3339 instant or a date."),
    click.option("--updated-before", help="An RFC 3339 instant or a date."),
    click.option("--where", callback=_check_where, help='A condition: value.tier = "gold".'),
    table_options(Conditions, *_OWN_CONDITIONS),
)
"""The filters of RFC-0015 section 4.1, and the conditions of memorywall's own."""


def filter_arguments(options: dict[str, Any]) -> dict[str, Any]:
    """The given options of `filter_options` as arguments of the client."""
    named = {"key" if name == "key_name" else name: value for name, value in options.items()}
    return given_options(named)
