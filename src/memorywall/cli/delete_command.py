"""`memorywall delete`."""

from __future__ import annotations

from typing import Any

import click

from memorywall.cli.client_command import Client, given_users, memory_command
from memorywall.cli.options import filter_arguments, filter_options
from memorywall.cli.output import ENTRIES, count_of
from memorywall.records.errors import ConfigurationError, MemoryNotFoundError

_ID_PREFIX = "mem_"
_BY_NAME = (
    ". The arguments are ids; by name: `memorywall delete --namespace NAMESPACE --key-name KEY`"
)


def _check(given: dict[str, Any]) -> None:
    wanted = {name: value for name, value in given.items() if name not in ("yes", "entry_ids")}
    if bool(given["entry_ids"]) == bool(_conditions(wanted)):
        raise ConfigurationError("give ids, or a filter such as --namespace; not both, not neither")


@memory_command(prepare=_check)
@filter_options
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.argument("entry_ids", nargs=-1, metavar="[ID]...")
def command(client: Client, yes: bool, entry_ids: tuple[str, ...], **wanted: Any) -> None:
    """Delete entries permanently: those with the given IDs, or all that match a filter."""
    if entry_ids:
        deleted = _delete_ids(client, entry_ids)
    else:
        conditions = _conditions(wanted)
        found = client.memory.count(**conditions)
        if not yes:
            click.confirm(f"Delete {count_of(found, *ENTRIES)} permanently?", abort=True)
        deleted = client.memory.delete_matching(**conditions)
    click.echo(f"{deleted} deleted")


def _conditions(options: dict[str, Any]) -> dict[str, Any]:
    """The conditions of the deletion; the people of `--user` are one."""
    users = given_users()
    named = {"user": ",".join(users)} if users else {}
    return {**filter_arguments(options), **named}


def _delete_ids(client: Client, entry_ids: tuple[str, ...]) -> int:
    for deleted, entry_id in enumerate(entry_ids):
        try:
            client.memory.delete_by_id(entry_id)
        except MemoryNotFoundError:
            hint = "" if any(one.startswith(_ID_PREFIX) for one in entry_ids) else _BY_NAME
            raise MemoryNotFoundError(
                f"there is no entry {entry_id[:64]}; {deleted} deleted before it{hint}"
            ) from None
    return len(entry_ids)
