"""Commands that open a client, run one function with it and print what the function returns."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from memorywall.cli.messages import named_by_options
from memorywall.cli.options import all_options, json_option, require_database
from memorywall.cli.output import print_json
from memorywall.cli.setting_options import DATA
from memorywall.records.errors import ConfigurationError, StoreLockedError

if TYPE_CHECKING:
    from memorywall.adapters.hosts.connection import HostConnection
    from memorywall.sdk.client import Client as Client
else:
    # The modules of the client take most of the time of a start; help and errors need none of them.
    Client = Any

Prepare = Callable[[dict[str, Any]], None]
Show = Callable[[Any], None]

PLACE = ("url", "key", "agent", "data")
"""The options that say where the memory is, and who speaks."""
_NO_PLACE = (
    "give --key (or MEMORYWALL_API_KEY) for a server,"
    " or --data (or MEMORYWALL_DATA) for a directory"
)
_SESSION = "memorywall.session"
_USERS = "memorywall.users"
_CONNECTION = "memorywall.connection"
"""The session of `--in-session`, the people of `--user` and the connection in the data of a
command."""


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
    help="Bind the command to this person (X-User): it reads memory about the person and"
    " about nobody, and writes, counts, exports and deletes memory about the person. May be given"
    " several times.",
)
_session_option = click.option(
    "--in-session",
    metavar="ID",
    expose_value=False,
    callback=_keep(_SESSION),
    help="Act inside this session (X-Session-ID).",
)
_connection_option = click.option(
    "--connection",
    metavar="NAME",
    expose_value=False,
    callback=_keep(_CONNECTION),
    help="Use the memory of a coding agent, see `memorywall connect`.",
)
client_options = all_options(
    click.option("--url", envvar="MEMORYWALL_URL", help="The server."),
    click.option("--key", envvar="MEMORYWALL_API_KEY", help="The API key."),
    click.option("--agent", envvar="MEMORYWALL_AGENT", help="The agent to speak for."),
    click.option("--data", type=DATA, help="Open this data directory; needs no server."),
    _connection_option,
)
"""The options of a client: a server with a key, a data directory with an agent, or the name of a
connection that has either."""
memory_options = all_options(client_options, user_option, _session_option)
"""The options of a client, and `--user` and `--in-session` for a command that reads or writes
memory; `open_client` opens the client for these people, inside that session."""


def client_command(
    group: click.Group | None = None,
    show: Show | None = None,
    *,
    show_json: Show = print_json,
    prepare: Prepare | None = None,
    name: str | None = None,
    short_help: str | None = None,
    options: Callable[[Any], Any] = client_options,
    cls: type[click.Command] = click.Command,
) -> Callable[[Callable[..., Any]], click.Command]:
    """Makes a command of a function, which gets an open client and its own options by name.

    The command has the options of a client: a server with a key, or a data directory with an agent.
    With `show` it also has `--json`, unless it prints JSON anyway.

    group: the group that gets the command as a subcommand; default: none
    show: prints the result of the function for people; default: the function prints
    show_json: prints the result with `--json`; default: one JSON document
    prepare: checks and changes the options before the client is opened; default: nothing
    name: the name of the command; default: that of the function
    short_help: the line in the help of the group; default: the first sentence of the docstring
    options: adds the options of the client; default: those without `--user` and `--in-session`
    cls: the class of the command
    """
    has_json = show not in (None, print_json)

    def add(function: Callable[..., Any]) -> click.Command:
        def run(**given: Any) -> None:
            place = {one: _read_option(one, given.pop(one)) for one in PLACE}
            as_json = has_json and _read_option("as_json", given.pop("as_json"))
            if prepare is not None:
                prepare(given)
            with open_client(**place) as client:
                result = function(client, **given)
                if show is not None:
                    (show_json if as_json else show)(result)

        options(run)
        command = cls(
            name or function.__name__.rstrip("_"),
            callback=run,
            params=[*_parameters(run), *_parameters(function)],
            help=inspect.cleandoc(function.__doc__ or ""),
            short_help=short_help,
        )
        if has_json:
            json_option(command)
        if group is not None:
            group.add_command(command)
        return command

    return add


def memory_command(
    group: click.Group | None = None, show: Show | None = None, **settings: Any
) -> Callable[[Callable[..., Any]], click.Command]:
    """`client_command` with `--user` and `--in-session`, for a command that reads or writes memory;
    its client is bound to these people, inside that session."""
    return client_command(group, show, options=memory_options, **settings)


def _parameters(function: Callable[..., Any]) -> Iterator[click.Parameter]:
    """The parameters that decorators have added to a function."""
    return reversed(getattr(function, "__click_params__", ()))


def _read_option(name: str, value: Any) -> Any:
    """The value of an option of the client, which may also stand before the subcommand."""
    context = click.get_current_context()
    if context.get_parameter_source(name) is ParameterSource.COMMANDLINE or context.parent is None:
        return value
    return context.parent.params.get(name, value)


@contextmanager
def open_client(
    url: str | None, key: str | None, agent: str | None, data: Path | None
) -> Iterator[Client]:
    """Opens the client for these options, bound to the people that `--user` names, inside the
    session that `--in-session` names. Raises ConfigurationError."""
    meta = click.get_current_context().meta
    session, users = meta.get(_SESSION), given_users()
    if (connection := given_connection()) is not None:
        url, key, agent = connection.url, connection.key, connection.agent
        data = None if connection.data is None else Path(connection.data)
    with named_by_options(), _open_outside(url, key, agent, data) as client:
        bound = client.for_user(*users) if users else client
        yield bound if session is None else _inside(bound, session, is_bound=bool(users))


def given_connection() -> HostConnection | None:
    """The connection of `--connection` of the running command. Raises ConfigurationError."""
    meta = click.get_current_context().meta
    given = meta.get(_CONNECTION)
    if isinstance(given, str):
        from memorywall.adapters.hosts.connection import require_connection

        # A command asks more than once, and the file may change meanwhile.
        given = meta[_CONNECTION] = require_connection(given)
    connection: HostConnection | None = given
    return connection


def given_users() -> tuple[str, ...]:
    """The people of `--user` of the running command; default: the person of its connection."""
    users: tuple[str, ...] = click.get_current_context().meta.get(_USERS, ())
    connection = None if users else given_connection()
    return (connection.user,) if connection is not None and connection.user else users


def _inside(client: Client, session: str, *, is_bound: bool) -> Client:
    """The client inside a session, which knows the names of entries about the session's subject."""
    subject = None if is_bound else client.sessions.get(session).info.subject
    named = client if subject is None else client.for_user(subject)
    return named.in_session(session)


def choose_directory(url: str | None, key: str | None, data: Path | None) -> Path | None:
    """The data directory that the options of a client name; None for a server. Raises
    ConfigurationError if they name neither."""
    # Servers use the variable as well, so that it decides only where no server is named.
    if data is None and key is None and url is None:
        named = os.environ.get("MEMORYWALL_DATA")
        data = Path(named) if named else None
    if data is None and key is None:
        raise ConfigurationError(_NO_PLACE)
    return data


def _open_outside(url: str | None, key: str | None, agent: str | None, data: Path | None) -> Client:
    directory = choose_directory(url, key, data)
    if directory is not None:
        return _open_directory(directory, agent)
    from memorywall.sdk.client import Client

    return Client(url, key, agent=agent)


def _open_directory(data: Path, agent: str | None) -> Client:
    from memorywall.assembly import settings_for
    from memorywall.in_process.opening import open_settings
    from memorywall.service.requests.validation import check_agent

    storage = settings_for(data)
    require_database(storage)
    if agent is None:
        raise ConfigurationError(
            "give --agent (or MEMORYWALL_AGENT): the agent to act for in this directory, such as"
            " `local`, that of memorywall.open"
        )
    try:
        return open_settings(storage, check_agent("--agent", agent))
    except StoreLockedError:
        from memorywall.in_process.shared_directory import find_shared_directory

        if (shared := find_shared_directory(data, agent)) is not None:
            return shared
        raise StoreLockedError(
            "another process (a server or memorywall.open) has this directory open; ask a server"
            " with --url and --key instead of --data"
        ) from None
