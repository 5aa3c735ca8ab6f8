"""Options that several commands share, and the stores and clients they open."""

from __future__ import annotations

import asyncio
import functools
import os
import shlex
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from memorywall.assembly import open_memory, settings_for
from memorywall.cli.messages import named_by_options
from memorywall.cli.setting_options import DATA, located
from memorywall.cli.table_options import table_options
from memorywall.configuration.reader import FLAG, Configuration
from memorywall.expressions.entry_fields import ENTRY_FIELDS
from memorywall.expressions.parser import parse
from memorywall.expressions.printer import show_position
from memorywall.in_process.opening import open_settings
from memorywall.records.errors import ConfigurationError, StoreLockedError
from memorywall.records.feature_errors import ExpressionError
from memorywall.records.recall import DEFAULT_HITS, MOST_HITS
from memorywall.records.tier import Tier
from memorywall.sdk.client import Client
from memorywall.service.requests.services import ServiceContext
from memorywall.service.requests.validation import check_agent
from memorywall.settings import Settings
from memorywall.wire.entries import Conditions

Command = TypeVar("Command", bound=Callable[..., Any])
Result = TypeVar("Result")

_OWN_CONDITIONS = ("session_id", "kind", "status", "state", "subject", "origin", "source")
_LOCATIONS = ("data", "database_url")
_SESSION = "memorywall.session"
_USERS = "memorywall.users"
"""The session of `--in-session` in the data of a command."""

tenant_option = click.option("--tenant", default="default", show_default=True, help="The tenant.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
hits_option = click.option(
    "--limit",
    default=DEFAULT_HITS,
    show_default=True,
    type=click.IntRange(1, MOST_HITS),
    help="The most results.",
)


def storage_options(command: Command) -> Command:
    """Adds the options of a store for a command that opens it, which gets it as `storage`."""

    @located
    @functools.wraps(command)
    def with_options(*arguments: Any, configuration: Configuration, **options: Any) -> Any:
        if not (configuration.is_given("data") or configuration.is_given("database_url")):
            raise ConfigurationError("give --data for a directory, or --store for PostgreSQL")
        return command(*arguments, storage=configuration.settings, **options)

    return cast(Command, with_options)


def place_options(command: Command) -> Command:
    """Adds the options of a server and those of a store, for a command that asks the one or opens
    the other. The command gets it as `place`: the client of the server, or the settings of the
    store."""

    @click.option("--url", envvar="MEMORYWALL_URL", help="The server; without --data and --store.")
    @click.option("--key", envvar="MEMORYWALL_API_KEY", help="The API key of an administrator.")
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
        with Client(url, key) as client:
            return command(*arguments, place=client, **options)

    return cast(Command, placed)


def administer(
    storage: Settings,
    work: Callable[[ServiceContext], Coroutine[Any, Any, Result]],
    *,
    may_create: bool = False,
    erases: bool = False,
) -> Result:
    """Runs administrative work on a store, also beside a running server.

    may_create: whether the work may create a database in the directory; default: false
    erases: whether the command erases deleted bytes if no server runs; default: false
    """
    if not may_create:
        require_database(storage)

    async def run(*, exclusive: bool) -> Result:
        async with open_memory(storage, exclusive=exclusive) as context:
            return await work(context)

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


def client_options(command: Command) -> Command:
    """Adds the options of a client: a server with a key, or a data directory with an agent."""
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


def memory_options(command: Command) -> Command:
    """Adds the options of a client, and `--user` and `--in-session` for a command that reads or
    writes memory; `open_client` opens the client for these people, inside that session."""
    inside = click.option(
        "--in-session",
        metavar="ID",
        expose_value=False,
        callback=_keep(_SESSION),
        help="Act inside this session (X-Session-ID).",
    )
    return client_options(user_option(inside(command)))


def _keep(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        context.meta[name] = value

    return keep


user_option = click.option(
    "--user",
    "bound_to",
    metavar="ID",
    multiple=True,
    expose_value=False,
    callback=_keep(_USERS),
    help="Bind the command to this person (X-Subject): it reads memory about the person and"
    " about nobody, and writes memory about the person. May be given several times.",
)


@contextmanager
def open_client(
    url: str | None, key: str | None, agent: str | None, data: Path | None
) -> Iterator[Client]:
    """Opens the client for these options, bound to the people that `--user` names, inside the
    session that `--in-session` names. Raises ConfigurationError."""
    meta = click.get_current_context().meta
    session, users = meta.get(_SESSION), meta.get(_USERS)
    with named_by_options(), _open_outside(url, key, agent, data) as client:
        bound = client.for_user(*users) if users else client
        yield bound if session is None else _inside(bound, session, is_bound=bool(users))


def _inside(client: Client, session: str, *, is_bound: bool) -> Client:
    """The client inside a session, which knows the names of entries about the session's subject."""
    subject = None if is_bound else client.sessions.get(session).info.subject
    named = client if subject is None else client.for_user(subject)
    return named.in_session(session)


def _open_outside(url: str | None, key: str | None, agent: str | None, data: Path | None) -> Client:
    # Servers use the variable as well, so that it decides only where no server is named.
    if data is None and key is None and url is None:
        named = os.environ.get("MEMORYWALL_DATA")
        data = Path(named) if named else None
    if data is None:
        if key is None:
            raise ConfigurationError(
                "give --key (or MEMORYWALL_API_KEY) for a server,"
                " or --data (or MEMORYWALL_DATA) for a directory"
            )
        return Client(url, key, agent=agent)
    storage = settings_for(data)
    require_database(storage)
    if agent is None:
        raise ConfigurationError(
            "give --agent (or MEMORYWALL_AGENT): the agent to act for in this directory"
        )
    try:
        return open_settings(storage, check_agent("--agent", agent))
    except StoreLockedError:
        raise StoreLockedError(
            "another process (a server or memorywall.open) has this directory open; ask a server"
            " with --url and --key instead of --data"
        ) from None


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


def filter_options(command: Command) -> Command:
    """The filters of RFC-0015 section 4.1, and the conditions of memorywall's own."""
    command = table_options(Conditions, *_OWN_CONDITIONS)(command)
    for option in reversed(
        (
            click.option("--namespace", help="A namespace, or a prefix followed by *."),
            click.option(
                "--type",
                "memory_type",
                type=click.Choice([tier.value for tier in Tier]),
                help="The tier.",
            ),
            click.option("--key-name", help="The entry's key."),
            click.option("--key-prefix", help="The beginning of the key."),
            click.option("--tag", "tags", multiple=True, help="All of these tags."),
            click.option("--any-tag", "tags_any", multiple=True, help="Any of these tags."),
            click.option("--task", "task_id", help="The task that the entry is bound to."),
            click.option("--intent", "intent_id", help="The intent that the entry is bound to."),
            click.option(
                "--pinned/--not-pinned",
                default=None,
                help="Pinned entries only, or other entries only.",
            ),
            click.option("--created-after", help="An RFC 3339 instant."),
            click.option("--created-before", help="An RFC 3339 instant."),
            click.option("--updated-after", help="An RFC 3339 instant."),
            click.option("--updated-before", help="An RFC 3339 instant."),
            click.option(
                "--where", callback=_check_where, help='A condition: value.tier = "gold".'
            ),
        )
    ):
        command = option(command)
    return command


def filter_arguments(options: dict[str, Any]) -> dict[str, Any]:
    """The given options of `filter_options` as arguments of the client."""
    arguments = dict(options)
    arguments["key"] = arguments.pop("key_name", None)
    return {name: value for name, value in arguments.items() if value not in (None, ())}
