"""`memorywall delete`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from memorywall.cli.options import filter_arguments, filter_options, memory_options, open_client
from memorywall.records.errors import ConfigurationError, MemoryNotFoundError


@click.command()
@memory_options
@filter_options
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.argument("entry_ids", nargs=-1, metavar="[ID]...")
def command(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    yes: bool,
    entry_ids: tuple[str, ...],
    **wanted: Any,
) -> None:
    """Delete entries permanently: those with the given IDs, or all that match a filter."""
    conditions = filter_arguments(wanted)
    if bool(entry_ids) == bool(conditions):
        raise ConfigurationError("give ids, or a filter such as --namespace; not both, not neither")
    with open_client(url, key, agent, data) as client:
        if entry_ids:
            for deleted, entry_id in enumerate(entry_ids):
                try:
                    client.memory.delete_by_id(entry_id)
                except MemoryNotFoundError:
                    raise MemoryNotFoundError(
                        f"there is no entry {entry_id[:64]}; {deleted} deleted before it"
                    ) from None
            deleted = len(entry_ids)
        else:
            found = client.memory.query(limit=1, **conditions).total
            if not yes:
                noun = "entry" if found == 1 else "entries"
                click.confirm(f"Delete {found} {noun} permanently?", abort=True)
            deleted = client.memory.delete_matching(**conditions)
    click.echo(f"{deleted} deleted")
