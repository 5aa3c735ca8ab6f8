"""`memorywall history`."""

from __future__ import annotations

from pathlib import Path

import click

from memorywall.cli.entries import print_entries
from memorywall.cli.options import json_option, memory_options, open_client
from memorywall.cli.output import print_json
from memorywall.records.errors import MemoryNotFoundError


@click.command()
@memory_options
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 100))
@click.option(
    "--before-version", type=click.IntRange(min=1), help="Only versions with a smaller number."
)
@json_option
@click.argument("name", nargs=-1, required=True, metavar="ID | NAMESPACE KEY")
def command(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    limit: int,
    before_version: int | None,
    as_json: bool,
    name: tuple[str, ...],
) -> None:
    """List the versions of an entry, newest first.

    Tiers without earlier versions (working, session, episodic) have the current one only.
    """
    if len(name) > 2:
        raise click.UsageError("give an id, or a namespace and a key")
    with open_client(url, key, agent, data) as client:
        entry_id = name[0]
        if len(name) == 2:
            found = client.memory.get(*name)
            if found is None:
                raise MemoryNotFoundError("there is no entry with this name")
            entry_id = found.id
        versions = client.memory.history(entry_id, limit=limit, before_version=before_version)
    if as_json:
        print_json(versions)
    else:
        print_entries(versions)
