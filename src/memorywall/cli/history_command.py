"""`memorywall history`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memorywall.cli.client_command import Client, memory_command
from memorywall.cli.entries import print_entries
from memorywall.cli.options import limit_option
from memorywall.records.errors import MemoryNotFoundError

if TYPE_CHECKING:
    from memorywall.sdk.models import MemoryEntry


def _check(given: dict[str, Any]) -> None:
    if len(given["name"]) > 2:
        raise click.UsageError("give an id, or a namespace and a key")


@memory_command(show=print_entries, prepare=_check)
@limit_option(20, 100)
@click.option(
    "--before-version", type=click.IntRange(min=1), help="Only versions with a smaller number."
)
@click.argument("name", nargs=-1, required=True, metavar="ID | NAMESPACE KEY")
def command(
    client: Client, name: tuple[str, ...], limit: int, before_version: int | None
) -> list[MemoryEntry]:
    """List the versions of an entry, newest first.

    Tiers without earlier versions (working, session, episodic) have the current one only.
    """
    entry_id = name[0]
    if len(name) == 2:
        found = client.memory.get(*name)
        if found is None:
            raise MemoryNotFoundError("there is no entry with this name")
        entry_id = found.id
    return client.memory.history(entry_id, limit=limit, before_version=before_version)
