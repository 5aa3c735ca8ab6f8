"""`memorywall connect`."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import click
import msgspec

from memorywall.adapters.hosts.connection import HostConnection, default_data, known_connection
from memorywall.adapters.hosts.host_files import (
    FileChange,
    connecting_changes,
    disconnecting_changes,
)
from memorywall.adapters.hosts.host_formats import HostFormat, host_formats
from memorywall.adapters.hosts.spool import Spool
from memorywall.cli.client_command import given_users, user_option
from memorywall.cli.output import count_of
from memorywall.cli.setting_options import DATA
from memorywall.records.errors import ConfigurationError


@click.command()
@click.option("--url", help="A server, instead of a directory; needs --key.")
@click.option("--key", help="The API key of the server.")
@click.option("--agent", help="The agent to speak for; in a directory `local` by default.")
@click.option("--data", type=DATA, help="A data directory; by default one of your own.")
@user_option
@click.option(
    "--exclude",
    type=click.Path(path_type=Path),
    multiple=True,
    help="A folder in which hooks neither recall nor keep anything. May be given several times.",
)
@click.option("--name", help="The name of the connection; that of the host by default.")
@click.option("--hooks/--no-hooks", default=True, help="Whether hooks recall and keep turns.")
@click.option("--undo", is_flag=True, help="Take the connection from the host.")
@click.option("--dry-run", is_flag=True, help="Show the difference and change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.argument("host", type=click.Choice(list(host_formats())))
def command(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    exclude: tuple[Path, ...],
    name: str | None,
    hooks: bool,
    undo: bool,
    dry_run: bool,
    yes: bool,
    host: str,
) -> None:
    """Give Claude Code, Codex or Cursor this memory.

    Adds an MCP server and two hooks to the configuration of the host: one recalls memory before a
    prompt is sent, one keeps what was said. Shows the difference and asks. Without --url or
    --data the memory is a directory of your own, which needs no server. The key is stored in a
    file that only you can read, not in the configuration.
    """
    form, name = host_formats()[host], name or host
    before = known_connection(name)
    if undo:
        connection = before or HostConnection(name=name, host=host)
        changes = disconnecting_changes(form, connection)
    else:
        place = _connection(name, host, (url, key, agent, data), given_users())
        excluded = tuple(str(one.expanduser().resolve()) for one in exclude)
        connection = msgspec.structs.replace(place, exclude=excluded)
        changes = connecting_changes(form, connection, _program(), with_hooks=hooks)
    _check_spool(before, None if undo else connection)
    for change in changes:
        click.echo(change.difference(), nl=False)
    if not changes and (before is None if undo else before == connection):
        click.echo("nothing to do: the configuration is like this already")
        return
    if dry_run or not (yes or click.confirm(f"Change the configuration of {form.title}?")):
        click.echo("nothing is changed")
        return
    _apply(changes, connection, undo=undo)
    click.echo(_outcome(form, connection, undo=undo))


def _connection(
    name: str,
    host: str,
    place: tuple[str | None, str | None, str | None, Path | None],
    users: Sequence[str],
) -> HostConnection:
    """Returns the connection that the options describe. Raises ConfigurationError, and
    ValidationError for a name."""
    from memorywall.in_process.opening import DEFAULT_AGENT
    from memorywall.service.access.subjects import check_subject
    from memorywall.service.requests.validation import check_agent

    url, key, agent, data = place
    if len(users) > 1:
        raise ConfigurationError("`--user` can be given once: the host of a person is about one")
    if find_spec("mcp") is None:
        raise ConfigurationError("hosts need the extra `mcp`: pip install '.[mcp]' in a clone")
    user = users[0] if users else None
    if user is not None:
        check_subject("--user", user)
    if agent is not None:
        check_agent("--agent", agent)
    if url is None and key is None:
        directory = str((data or default_data()).expanduser().resolve())
        return HostConnection(
            name=name, host=host, data=directory, agent=agent or DEFAULT_AGENT, user=user
        )
    if data is not None or url is None or key is None:
        raise ConfigurationError("give --url and --key for a server, or --data for a directory")
    _check_server(url, key, agent)
    return HostConnection(name=name, host=host, url=url, key=key, agent=agent, user=user)


def _check_server(url: str, key: str, agent: str | None) -> None:
    """Raises the errors of the SDK for a wrong URL, key or agent; a server that is away is told."""
    from memorywall.sdk.client import Client
    from memorywall.sdk.errors import MemoryTransportError

    with Client(url, key, agent=agent) as client:
        try:
            client.whoami()
        except MemoryTransportError as error:
            if not url.startswith(("http://", "https://")):
                raise
            click.echo(f"warning: {error.detail}; turns wait until it answers", err=True)


def _check_spool(before: HostConnection | None, connection: HostConnection | None) -> None:
    """Raises ConfigurationError if turns wait that belong to the place of the connection before."""
    waiting = 0 if before is None else len(Spool(before.folder).read().turns)
    if before is None or not waiting:
        return
    if connection is None or before.place != connection.place:
        raise ConfigurationError(
            f"{count_of(waiting, 'turn is', 'turns are')} waiting for the memory of this"
            f" connection; run `memorywall hook --drain {before.name}` first, or delete"
            f" {before.folder}"
        )


def _apply(changes: Sequence[FileChange], connection: HostConnection, *, undo: bool) -> None:
    """Writes the connection before the host refers to it, or removes it after."""
    if not undo:
        if connection.data is not None:
            _create_directory(Path(connection.data))
        connection.save()
    for change in changes:
        change.apply()
    if undo:
        connection.remove()


def _create_directory(data: Path) -> None:
    """Creates a data directory with a store, unless it has one."""
    from memorywall.assembly import settings_for
    from memorywall.in_process.opening import open_local

    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not settings_for(data).sqlite_path.exists():
        open_local(f"{data}{os.sep}").close()


def _outcome(form: HostFormat, connection: HostConnection, *, undo: bool) -> str:
    place = connection.data or connection.url
    agent = f" of the agent {connection.agent}" if connection.agent else ""
    about = f", about {connection.user}" if connection.user else ""
    if undo:
        kept = f"; what it stored is still in {place}{agent}" if place else ""
        return f"{form.title} no longer has this memory{kept}"
    return f"{form.title} has the memory{agent} in {place}{about}.\n{form.after_connecting}"


def _program() -> list[str]:
    """Returns the command line by which a host, which may have another PATH, runs memorywall."""
    found = shutil.which("memorywall", path=str(Path(sys.executable).parent))
    return [found] if found else [sys.executable, "-m", "memorywall"]
